// launch and graph: what it costs to start kernels that do nothing, one by one and as a graph.
#pragma once
#include <optional>

#include "../harness/options.h"
#include "../harness/plan.h"

class LaunchSubject : public Subject {
 public:
  LaunchSubject(Session& session, int kernels, bool graph) : session_(session), kernels_(kernels) {
    if (graph) graph_.emplace(session.stream, [&] { launch_all(); });
  }
  void enqueue(int) override { graph_ ? graph_->launch(session_.stream) : launch_all(); }
  Verdict verify() override { return nothing_to_check(); }

 private:
  void launch_all() {
    for (int i = 0; i < kernels_; ++i) {
      KV_LAUNCH(empty_kernel, dim3(1), dim3(kWarp), session_.stream);
      check(cudaGetLastError(), "launch of empty_kernel");
    }
  }
  Session& session_;
  int kernels_;
  std::optional<Graph> graph_;
};

inline void add_starts(Plan& plan, const Options& options, bool graph) {
  std::vector<int> counts = {1, 10, 100, 1000};
  if (options.tiny()) counts = {1, 3, 10, 40};
  for (const int kernels : counts)
    add_single(plan, 1, 0, {graph ? "graph" : "launch", "empty", Json().add("kernels", kernels), "fit", 0.0, 0.0},
               [=](Session& s) { return std::make_unique<LaunchSubject>(s, kernels, graph); });
  const int held = options.tiny() ? 20 : 300;
  add_single(plan, 2, 0, {graph ? "graph" : "launch", "empty", Json().add("kernels", held), "holdout", 0.0, 0.0},
             [=](Session& s) { return std::make_unique<LaunchSubject>(s, held, graph); });
}
inline void add_launches(Plan& plan, const Options& options, Session&) { add_starts(plan, options, false); }
inline void add_graphs(Plan& plan, const Options& options, Session&) { add_starts(plan, options, true); }

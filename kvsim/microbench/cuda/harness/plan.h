// What is measured: cases, in groups that share their data and are sampled in turns.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lines.h"
#include "session.h"

// Whether an output was right. `state`: 1 yes, 0 no, -1 nothing to check.
struct Verdict {
  int state;
  const char* check;  // exact, rel_l2 or sampled
  double error;       // relative, NaN where there is none
};
inline Verdict nothing_to_check() { return {-1, nullptr, NAN}; }
inline Verdict exactly(bool equal) { return {equal ? 1 : 0, "exact", equal ? 0.0 : NAN}; }

// A NaN is no success.
inline Verdict within(double error, double tolerance, bool sampled) {
  return {error <= tolerance ? 1 : 0, sampled ? "sampled" : "rel_l2", error};
}

// Something that can be run again and again. Its data are there when it has been constructed.
class Subject {
 public:
  virtual ~Subject() = default;
  // Enqueues one pass; `pass` counts on, and picks among buffers that together exceed the L2 cache.
  virtual void enqueue(int pass) = 0;
  // Runs a pass on poisoned outputs and looks at them.
  virtual Verdict verify() = 0;
  // Seconds per pass over `passes` of them: between two events of the stream, unless the pass is work of the host.
  virtual double seconds(Session& session, int first, int passes) {
    session.start.record(session.stream);
    for (int i = 0; i < passes; ++i) enqueue(first + i);
    session.stop.record(session.stream);
    CUDA(cudaEventSynchronize, session.stop.get());
    float ms = 0.0f;
    CUDA(cudaEventElapsedTime, &ms, session.start.get(), session.stop.get());
    return 1e-3 * ms / passes;
  }
  // Fields of its own on the point's line.
  virtual Json more() { return {}; }
};

struct Case {
  std::string bench, variant;
  Json params;
  std::string role;  // fit, holdout or anchor
  double bytes, flops;
};

using Subjects = std::vector<std::unique_ptr<Subject>>;

struct Group {
  int importance;       // the smallest first
  size_t device_bytes;  // needed at once; what is more than there is is skipped
  std::vector<Case> cases;
  std::function<Subjects(Session&)> build;  // one a case, in their order; throws Absent or Failure
};

// Something the group needs is not on this machine: a reason for a skip line.
struct Absent {
  std::string reason;
};

using Plan = std::vector<Group>;

inline void add_single(Plan& plan, int importance, size_t bytes, Case one,
                       std::function<std::unique_ptr<Subject>(Session&)> build) {
  plan.push_back({importance, bytes, {std::move(one)}, [build = std::move(build)](Session& session) {
                    Subjects all;
                    all.push_back(build(session));
                    return all;
                  }});
}

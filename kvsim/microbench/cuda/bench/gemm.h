// gemm: the products of a model's weights with the activations of a batch, by cuBLAS.
#pragma once
#include "../harness/dump.h"
#include "../harness/options.h"
#include "../harness/plan.h"

class GemmSubject : public Subject {
 public:
  GemmSubject(Session& session, int m, int n, int k)
      : session_(session), m_(m), n_(n), k_(k),
        rotations_(session.rotations(2 * static_cast<size_t>(n) * k)),
        x_(static_cast<size_t>(m) * k), w_(static_cast<size_t>(n) * k * rotations_), y_(static_cast<size_t>(m) * n) {
    if (!session.cublas.usable()) throw Absent{session.cublas.reason()};
    session.fill(reinterpret_cast<u32*>(x_.data()), x_.size() / 2, 1);
    session.fill(reinterpret_cast<u32*>(w_.data()), w_.size() / 2, 2);
  }
  void enqueue(int pass) override {
    const size_t offset = static_cast<size_t>(pass % rotations_) * n_ * k_;
    session_.cublas.gemm(m_, n_, k_, x_.data(), w_.data() + offset, y_.data());
  }
  // The whole product where it is small, else 64 elements spread over it. The tolerance is a bf16 output's rounding.
  Verdict verify() override {
    y_.poison(session_.stream);
    enqueue(0);
    session_.finish();
    if (!session_.dump.empty()) dump(session_, "gemm", y_.read());
    const u64 elements = static_cast<u64>(m_) * n_;
    const bool all = elements * k_ <= (u64{1} << 22);
    const std::vector<u16> y = all ? y_.read() : std::vector<u16>();
    RelativeError error;
    for (u64 i = 0; i < (all ? elements : 64); ++i) {
      const u64 at = all ? i : (elements - 1) * i / 63, row = at / n_, column = at % n_;
      double sum = 0.0;
      for (int j = 0; j < k_; ++j)
        sum += bf16_at(row * k_ + j, session_.seed_of(1)) * bf16_at(column * k_ + j, session_.seed_of(2));
      error.add(bf16_value(all ? y[at] : y_.read(at, 1)[0]), sum);
    }
    return within(error.value(), 4e-3, !all);
  }

 private:
  Session& session_;
  int m_, n_, k_, rotations_;
  Device<u16> x_, w_, y_;
};

inline Group gemm_group(Session& session, int m, int n, int k, const char* role, int importance) {
  const double md = m, nd = n, kd = k;
  const size_t weights = 2 * static_cast<size_t>(n) * k;
  Plan plan;
  add_single(plan, importance, weights * session.rotations(weights) + 2 * static_cast<size_t>(m) * (n + k),
             {"gemm", "bf16", Json().add("m", m).add("n", n).add("k", k), role, 2.0 * (md * kd + nd * kd + md * nd),
              2.0 * md * nd * kd},
             [=](Session& s) { return std::make_unique<GemmSubject>(s, m, n, k); });
  return std::move(plan.front());
}

// The weights of Llama 8B and 70B are fitted; a 7B model's of another family, and batches in between, are held out.
inline void add_gemms(Plan& plan, const Options& options, Session& session) {
  struct Shape {
    int n, k, importance;
  };
  std::vector<Shape> shapes = {{6144, 4096, 1}, {4096, 4096, 1}, {28672, 4096, 1}, {4096, 14336, 1}, {128256, 4096, 2}};
  std::vector<Shape> held = {{4608, 3584, 2}, {18944, 3584, 2}};
  std::vector<int> batches = {1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096};
  std::vector<int> between = {100, 192, 300, 3000};
  if (options.full()) {
    batches = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
    for (const Shape& more : std::vector<Shape>{{10240, 8192, 3}, {8192, 8192, 3}, {57344, 8192, 3}, {8192, 28672, 3}})
      shapes.push_back(more);
  }
  if (options.tiny()) {
    shapes = {{64, 64, 1}, {192, 64, 1}, {96, 128, 1}};
    held = {{112, 96, 2}};
    batches = {1, 2, 4, 8, 16, 32, 64};
    between = {3, 24, 48};
  }
  for (const Shape& s : shapes) {
    for (const int m : batches) plan.push_back(gemm_group(session, m, s.n, s.k, "fit", s.importance));
    for (const int m : between) plan.push_back(gemm_group(session, m, s.n, s.k, "holdout", s.importance + 2));
  }
  for (const Shape& s : held)
    for (size_t i = 0; i < batches.size(); i += 2)
      plan.push_back(gemm_group(session, batches[i], s.n, s.k, "holdout", s.importance));
}

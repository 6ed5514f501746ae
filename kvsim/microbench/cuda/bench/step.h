// step: some layers of real kernels, as one graph and one by one. Held out: nothing is fitted to it.
//
// A layer: norm, product to Q, K and V, attention of those that decode and of a chunk, product, norm, product to gate and
// up, gate, product. Left out: rotary embedding, writing the new KV, residual sums, sampling; each is small beside these.
#pragma once
#include <algorithm>
#include <optional>

#include "decode.h"
#include "gemm.h"

struct StepShape {
  BatchShape decode;  // batch 0: a chunk alone
  int chunk, prefix;
  int layers, hidden, intermediate, heads, kv_heads, block;
  int tokens() const { return decode.batch + chunk; }
  int qkv_rows() const { return heads + 2 * kv_heads; }
  size_t weights() const {  // elements of one layer
    return static_cast<size_t>(hidden) * (static_cast<size_t>(qkv_rows() + heads) * kHeadDim + 3 * static_cast<size_t>(intermediate));
  }
};

// Weights, activations and KV of a step.
class StepModel {
 public:
  static constexpr u32 kInputBuffer = 11, kWeightBuffer = 12;
  StepModel(Session& session, const StepShape& shape)
      : session_(session), s(shape), contexts(contexts_of(shape.decode)), layout_(contexts, s.block, session.seed),
        table_(layout_.table()), weights_(s.weights() * s.layers), x_(rows(s.hidden)), normed_(rows(s.hidden)),
        qkv_(rows(s.qkv_rows() * kHeadDim)), attended_(rows(s.heads * kHeadDim)), gate_up_(rows(2 * s.intermediate)),
        gated_(rows(s.intermediate)), chunk_k_(chunk_rows() * s.layers), chunk_v_(chunk_rows() * s.layers) {
    if (!session.cublas.usable()) throw Absent{session.cublas.reason()};
    if (s.decode.batch) pool_.emplace(session, contexts, s.kv_heads, s.layers);
    const int longest = s.decode.batch ? *std::max_element(contexts.begin(), contexts.end()) : 0;
    splits_ = s.decode.batch ? splits_for(s.kv_heads * s.decode.batch, longest, session.sms()) : 1;
    partial_ = Device<float>(static_cast<size_t>(s.decode.batch) * s.heads * splits_ * kHeadDim);
    stats_ = Device<float>(static_cast<size_t>(s.decode.batch) * s.heads * splits_ * 2);
    session.fill(reinterpret_cast<u32*>(weights_.data()), weights_.size() / 2, kWeightBuffer);
    session.fill(reinterpret_cast<u32*>(chunk_k_.data()), chunk_k_.size() / 2, KvPool::kKeyBuffer);
    session.fill(reinterpret_cast<u32*>(chunk_v_.data()), chunk_v_.size() / 2, KvPool::kValueBuffer);
    reset();
  }
  // The same input again, and outputs that nobody has written.
  void reset() {
    for (const Device<u16>* buffer : {&normed_, &qkv_, &attended_, &gate_up_, &gated_}) buffer->poison(session_.stream);
    session_.fill(reinterpret_cast<u32*>(x_.data()), x_.size() / 2, kInputBuffer);
  }
  void enqueue() {
    for (int layer = 0; layer < s.layers; ++layer) enqueue_layer(layer);
  }
  // The largest relative error among the last layer's operations, each against float64 on what it was given; NaN if one is.
  double error() const {
    const size_t attention = static_cast<size_t>(s.heads) * kHeadDim * s.hidden;
    const size_t qkv = static_cast<size_t>(s.qkv_rows()) * kHeadDim * s.hidden;
    const size_t up = 2 * static_cast<size_t>(s.intermediate) * s.hidden;
    std::vector<double> errors = {
        product_error(normed_, gate_up_, 2 * s.intermediate, s.hidden, qkv + attention), gate_error(),
        product_error(gated_, x_, s.hidden, s.intermediate, qkv + attention + up)};
    if (s.decode.batch) errors.push_back(decode_error());
    if (s.chunk) errors.push_back(chunk_error());
    double worst = 0.0;
    for (const double one : errors) worst = one <= worst ? worst : one;
    return std::any_of(errors.begin(), errors.end(), [](double one) { return std::isnan(one); }) ? NAN : worst;
  }
  std::vector<u16> output() const { return x_.read(); }

 private:
  size_t rows(int width) const { return static_cast<size_t>(s.tokens()) * width; }
  size_t chunk_rows() const {
    return s.chunk ? static_cast<size_t>(s.prefix + s.chunk) * s.kv_heads * kHeadDim : 0;
  }
  void enqueue_layer(int layer) {
    const u16* w = weights_.data() + s.weights() * layer;
    const int attention = s.heads * kHeadDim;
    norm();
    w = product(normed_.data(), w, qkv_.data(), s.qkv_rows() * kHeadDim, s.hidden);
    if (s.decode.batch) decode(layer);
    if (s.chunk) prefill(layer);
    w = product(attended_.data(), w, x_.data(), s.hidden, attention);
    norm();
    w = product(normed_.data(), w, gate_up_.data(), 2 * s.intermediate, s.hidden);
    const GateArgs gate{reinterpret_cast<const u32*>(gate_up_.data()), reinterpret_cast<u32*>(gated_.data()), s.intermediate / 2};
    LAUNCH(silu_mul, dim3(static_cast<unsigned>((gate.row_words + kStreamThreads - 1) / kStreamThreads), static_cast<unsigned>(s.tokens())),
           dim3(kStreamThreads), session_.stream, gate);
    product(gated_.data(), w, x_.data(), s.hidden, s.intermediate);
  }
  void norm() {
    const NormArgs a{reinterpret_cast<const u32*>(x_.data()), reinterpret_cast<u32*>(normed_.data()), s.hidden / 2};
    LAUNCH(rms_norm, dim3(static_cast<unsigned>(s.tokens())), dim3(kStreamThreads), session_.stream, a);
  }
  const u16* product(const u16* x, const u16* w, u16* y, int n, int k) {
    session_.cublas.gemm(s.tokens(), n, k, x, w, y);
    return w + static_cast<size_t>(n) * k;
  }
  void decode(int layer) {
    const DecodeArgs a{pool_->view(layout_, table_, layer), qkv_.data(), s.qkv_rows(), attended_.data(), partial_.data(),
                       stats_.data(), s.heads / s.kv_heads, score_scale()};
    const dim3 grid(static_cast<unsigned>(s.kv_heads), static_cast<unsigned>(splits_), static_cast<unsigned>(s.decode.batch));
    LAUNCH(decode_attention<true>, grid, dim3(kDecodeThreads), session_.stream, a);
    if (splits_ == 1) return;
    const CombineArgs c{partial_.data(), stats_.data(), attended_.data(), splits_};
    LAUNCH(combine_splits, dim3(static_cast<unsigned>(s.decode.batch * s.heads)), dim3(kHeadDim), session_.stream, c);
  }
  void prefill(int layer) {
    const size_t past = static_cast<size_t>(s.decode.batch);
    const PrefillArgs a{qkv_.data() + past * s.qkv_rows() * kHeadDim, chunk_k_.data() + chunk_rows() * layer,
                        chunk_v_.data() + chunk_rows() * layer,
                        reinterpret_cast<u32*>(attended_.data() + past * s.heads * kHeadDim), s.chunk, s.prefix,
                        s.qkv_rows(), s.heads, s.kv_heads, score_scale()};
    const dim3 grid(static_cast<unsigned>((s.chunk + kQueries - 1) / kQueries), static_cast<unsigned>(s.heads));
    LAUNCH(prefill_attention, grid, dim3(kPrefillThreads), session_.stream, a);
  }

  double weight(size_t offset, size_t at) const {
    return bf16_at(s.weights() * (s.layers - 1) + offset + at, session_.seed_of(kWeightBuffer));
  }
  double product_error(const Device<u16>& x, const Device<u16>& y, int n, int k, size_t offset) const {
    RelativeError error;
    for (int i = 0; i < 32; ++i) {
      const size_t token = static_cast<size_t>(s.tokens() - 1) * i / 31, column = static_cast<size_t>(n - 1) * (i * 7 % 32) / 31;
      const std::vector<u16> row = x.read(token * k, k);
      double sum = 0.0;
      for (int j = 0; j < k; ++j) sum += bf16_value(row[j]) * weight(offset, column * k + j);
      error.add(bf16_value(y.read(token * n + column, 1)[0]), sum);
    }
    return error.value();
  }
  double gate_error() const {
    RelativeError error;
    for (int i = 0; i < 8; ++i) {
      const size_t token = static_cast<size_t>(s.tokens() - 1) * i / 7;
      const std::vector<u16> from = gate_up_.read(token * 2 * s.intermediate, 2 * s.intermediate);
      const std::vector<u16> got = gated_.read(token * s.intermediate, s.intermediate);
      for (int j = 0; j < s.intermediate; ++j) {
        const double gate = bf16_value(from[j]), up = bf16_value(from[s.intermediate + j]);
        error.add(bf16_value(got[j]), gate / (1.0 + std::exp(-gate)) * up);
      }
    }
    return error.value();
  }
  template <class K, class V>
  void add_attention(RelativeError& error, size_t token, int head, int context, K k, V v) const {
    const std::vector<u16> q = qkv_.read((token * s.qkv_rows() + head) * kHeadDim, kHeadDim);
    const std::vector<u16> got = attended_.read((token * s.heads + head) * kHeadDim, kHeadDim);
    const std::vector<double> right = attention_row(context, [&](int d) { return bf16_value(q[d]); }, k, v);
    for (int d = 0; d < kHeadDim; ++d) error.add(bf16_value(got[d]), right[d]);
  }
  double decode_error() const {
    RelativeError error;
    const int copy = s.layers - 1;
    for (int i = 0; i < 4; ++i) {
      const int request = (s.decode.batch - 1) * i / 3, head = (s.heads - 1) * i / 3, kv = head / (s.heads / s.kv_heads);
      add_attention(error, request, head, contexts[request],
                    [&](int t, int d) { return pool_->key(layout_.slot(request, t), kv, d, copy); },
                    [&](int t, int d) { return pool_->value(layout_.slot(request, t), kv, d, copy); });
    }
    return error.value();
  }
  double chunk_error() const {
    RelativeError error;
    for (int i = 0; i < 4; ++i) {
      const int token = (s.chunk - 1) * i / 3, head = (s.heads - 1) * i / 3, kv = head / (s.heads / s.kv_heads);
      const auto at = [&](u32 buffer, int t, int d) {
        const u64 row = (chunk_rows() * (s.layers - 1)) + (static_cast<u64>(t) * s.kv_heads + kv) * kHeadDim + d;
        return bf16_at(row, session_.seed_of(buffer));
      };
      add_attention(error, static_cast<size_t>(s.decode.batch) + token, head, s.prefix + token + 1,
                    [&](int t, int d) { return at(KvPool::kKeyBuffer, t, d); },
                    [&](int t, int d) { return at(KvPool::kValueBuffer, t, d); });
    }
    return error.value();
  }

  Session& session_;

 public:
  const StepShape s;
  const std::vector<int> contexts;

 private:
  Layout layout_;
  Device<int> table_;
  Device<u16> weights_, x_, normed_, qkv_, attended_, gate_up_, gated_, chunk_k_, chunk_v_;
  std::optional<KvPool> pool_;
  int splits_ = 1;
  Device<float> partial_, stats_;
};

class StepSubject : public Subject {
 public:
  StepSubject(Session& session, std::shared_ptr<StepModel> model, bool graph) : session_(session), model_(std::move(model)) {
    if (!graph) return;
    model_->enqueue();  // libraries load what they need before a stream is captured
    session.finish();
    graph_.emplace(session.stream, [&] { model_->enqueue(); });
  }
  void enqueue(int) override { graph_ ? graph_->launch(session_.stream) : model_->enqueue(); }
  Verdict verify() override {
    model_->reset();
    enqueue(0);
    session_.finish();
    return within(model_->error(), kAttentionTolerance, true);
  }

 private:
  Session& session_;
  std::shared_ptr<StepModel> model_;
  std::optional<Graph> graph_;
};

inline Group step_group(const StepShape& shape) {
  const std::vector<int> contexts = contexts_of(shape.decode);
  const double tokens = shape.tokens(), sum = static_cast<double>(total(contexts));
  const double pairs = static_cast<double>(shape.chunk) * shape.prefix + 0.5 * shape.chunk * (shape.chunk + 1.0) + sum;
  const double kv = 4.0 * (sum + shape.prefix + shape.chunk) * shape.kv_heads * kHeadDim;
  const double weights = static_cast<double>(shape.weights());
  const size_t activations = 2 * static_cast<size_t>(tokens) *
                             (2 * shape.hidden + 3 * shape.intermediate + (shape.qkv_rows() + shape.heads) * kHeadDim);
  const size_t partial = 64 * 4 * static_cast<size_t>(shape.decode.batch) * shape.heads * kHeadDim / 8;
  const size_t pool = KvPool::bytes_of(contexts, shape.kv_heads) + 4 * static_cast<size_t>(shape.prefix + shape.chunk) * shape.kv_heads * kHeadDim;
  Group group{3, shape.layers * (2 * shape.weights() + pool) + activations + partial, {}, [shape](Session& s) {
                Subjects all;
                const auto model = std::make_shared<StepModel>(s, shape);
                for (const bool graph : {true, false}) all.push_back(std::make_unique<StepSubject>(s, model, graph));
                return all;
              }};
  for (const char* variant : {"graph", "eager"})
    group.cases.push_back({"step", variant,
                           Json().add("layers", shape.layers).add("batch", shape.decode.batch)
                               .add("context", shape.decode.batch ? shape.decode.context : 0)
                               .add("context_sum", total(contexts))
                               .add("context_max", contexts.empty() ? 0 : *std::max_element(contexts.begin(), contexts.end()))
                               .add("spread", shape.decode.lognormal ? "lognormal" : "even").add("chunk", shape.chunk)
                               .add("prefix", shape.prefix).add("hidden", shape.hidden)
                               .add("intermediate", shape.intermediate).add("heads", shape.heads)
                               .add("kv_heads", shape.kv_heads).add("head_dim", kHeadDim).add("block", shape.block),
                           "holdout", shape.layers * (2.0 * weights + kv),
                           shape.layers * (2.0 * weights * tokens + 4.0 * pairs * shape.heads * kHeadDim)});
  return group;
}

// Eight layers of an 8B model: decode alone, with even and uneven contexts, and with a chunk of a prompt.
inline void add_steps(Plan& plan, const Options& options, Session&) {
  struct Batch {
    BatchShape decode;
    int chunk, prefix;
  };
  std::vector<Batch> batches = {{{1, 512}, 0, 0},   {{16, 4096}, 0, 0},       {{64, 512}, 0, 0},       {{64, 2048, true}, 0, 0},
                                {{256, 512}, 0, 0}, {{32, 2048}, 512, 0},     {{32, 2048}, 2048, 4096}, {{0, 0}, 2048, 0}};
  if (options.full())
    for (const Batch& more : std::vector<Batch>{{{1, 4096}, 0, 0}, {{16, 512}, 0, 0}, {{64, 4096}, 0, 0}, {{128, 1024, true}, 0, 0},
                                                {{256, 4096}, 0, 0}, {{64, 1024, true}, 512, 2048}})
      batches.push_back(more);
  StepShape shape{{}, 0, 0, 8, 4096, 14336, 32, 8, 16};
  if (options.tiny()) {
    batches = {{{2, 60}, 0, 0}, {{3, 120, true}, 0, 0}, {{2, 60}, 24, 40}, {{0, 0}, 30, 0}};
    shape = {{}, 0, 0, 2, 96, 64, 4, 2, 16};
  }
  for (const Batch& batch : batches) {
    shape.decode = batch.decode, shape.chunk = batch.chunk, shape.prefix = batch.prefix;
    plan.push_back(step_group(shape));
  }
}

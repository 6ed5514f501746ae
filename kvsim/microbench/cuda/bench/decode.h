// decode_attn: decode attention of a batch over each layout, for the head counts of models in use.
#pragma once
#include "../harness/dump.h"
#include "../harness/options.h"
#include "kv_cache.h"

// As many splits of each request as it takes to give every SM three CTAs, none shorter than 256 tokens.
inline int splits_for(int ctas, int context, int sms) {
  const int wanted = (3 * sms + ctas - 1) / ctas, most = std::max(1, context / 256);
  return std::max(1, std::min({wanted, most, 64}));
}

// log2(e) / sqrt(head_dim)
inline float score_scale() { return 1.44269504f / std::sqrt(static_cast<float>(kHeadDim)); }

// The attention of one row in float64. `q`, `k`, `v` give elements by dimension, and by token and dimension.
template <class Q, class K, class V>
std::vector<double> attention_row(int tokens, Q q, K k, V v) {
  std::vector<double> weights(tokens), out(kHeadDim, 0.0), query(kHeadDim);
  for (int d = 0; d < kHeadDim; ++d) query[d] = q(d) / std::sqrt(static_cast<double>(kHeadDim));
  double highest = -1e300, sum = 0.0;
  for (int t = 0; t < tokens; ++t) {
    double score = 0.0;
    for (int d = 0; d < kHeadDim; ++d) score += query[d] * k(t, d);
    weights[t] = score;
    highest = std::max(highest, score);
  }
  for (double& weight : weights) sum += weight = std::exp(weight - highest);
  for (int t = 0; t < tokens; ++t)
    for (int d = 0; d < kHeadDim; ++d) out[d] += weights[t] / sum * v(t, d);
  return out;
}

constexpr double kAttentionTolerance = 6e-3;  // weights are rounded to bf16 before the second product, and so is the output

class DecodeSubject : public Subject {
 public:
  static constexpr u32 kQueryBuffer = 5;
  DecodeSubject(Session& session, std::shared_ptr<KvPool> pool, int heads, int block)
      : session_(session), pool_(std::move(pool)), layout_(pool_->contexts, block, session.seed), table_(layout_.table()),
        requests_(static_cast<int>(pool_->contexts.size())), heads_(heads),
        splits_(splits_for(pool_->kv_heads * requests_, *std::max_element(pool_->contexts.begin(), pool_->contexts.end()),
                           session.sms())),
        q_(static_cast<size_t>(requests_) * heads * kHeadDim), out_(q_.size()), partial_(q_.size() * splits_),
        stats_(2 * static_cast<size_t>(requests_) * heads * splits_) {
    session.fill(reinterpret_cast<u32*>(q_.data()), q_.size() / 2, kQueryBuffer, kSharpExponent);
  }
  void enqueue(int pass) override {
    const DecodeArgs a{pool_->view(layout_, table_, pass), q_.data(), heads_, out_.data(), partial_.data(),
                       stats_.data(), heads_ / pool_->kv_heads, score_scale()};
    const dim3 grid(static_cast<unsigned>(pool_->kv_heads), static_cast<unsigned>(splits_),
                    static_cast<unsigned>(requests_));
    if (layout_.block()) LAUNCH(decode_attention<true>, grid, dim3(kDecodeThreads), session_.stream, a);
    else LAUNCH(decode_attention<false>, grid, dim3(kDecodeThreads), session_.stream, a);
    if (splits_ == 1) return;
    const CombineArgs c{partial_.data(), stats_.data(), out_.data(), splits_};
    LAUNCH(combine_splits, dim3(static_cast<unsigned>(requests_ * heads_)), dim3(kHeadDim), session_.stream, c);
  }
  // Every head of every request where that is little work, else four of them.
  Verdict verify() override {
    pool_->fill();
    pool_->poison(layout_);
    partial_.poison(session_.stream);
    out_.poison(session_.stream);
    enqueue(0);
    session_.finish();
    const std::vector<u16> got = out_.read();
    dump(session_, "decode_attn", got);
    const bool all = total(pool_->contexts) * heads_ <= (1 << 14);
    const int rows = requests_ * heads_;
    RelativeError error;
    for (int i = 0; i < (all ? rows : 4); ++i) add_row(all ? i : (rows - 1) * i / 3, got, error);
    return within(error.value(), kAttentionTolerance, !all);
  }
  Json more() override { return Json().add("splits", splits_); }

 private:
  void add_row(int row, const std::vector<u16>& got, RelativeError& error) const {
    const int request = row / heads_, head = row % heads_ / (heads_ / pool_->kv_heads);
    const std::vector<double> right = attention_row(
        pool_->contexts[request],
        [&](int d) { return bf16_at(static_cast<u64>(row) * kHeadDim + d, session_.seed_of(kQueryBuffer), kSharpExponent); },
        [&](int t, int d) { return pool_->key(layout_.slot(request, t), head, d); },
        [&](int t, int d) { return pool_->value(layout_.slot(request, t), head, d); });
    for (int d = 0; d < kHeadDim; ++d) error.add(bf16_value(got[static_cast<size_t>(row) * kHeadDim + d]), right[d]);
  }

  Session& session_;
  std::shared_ptr<KvPool> pool_;
  Layout layout_;
  Device<int> table_;
  int requests_, heads_, splits_;
  Device<u16> q_, out_;
  Device<float> partial_, stats_;
};

inline Group decode_group(Session& session, BatchShape shape, int heads, int kv_heads, const char* role, int importance) {
  const std::vector<int> contexts = contexts_of(shape);
  const double bytes = 4.0 * static_cast<double>(total(contexts)) * kv_heads * kHeadDim;
  const size_t pool = KvPool::bytes_of(contexts, kv_heads) * session.rotations(static_cast<size_t>(bytes));
  Group group{importance, pool + (size_t{64} << 10) * shape.batch * heads / 8, {}, [=](Session& s) {
                Subjects all;
                const auto shared = std::make_shared<KvPool>(s, contexts, kv_heads);
                for (const int block : all_layouts())
                  all.push_back(std::make_unique<DecodeSubject>(s, shared, heads, block));
                return all;
              }};
  const double flops = 4.0 * static_cast<double>(total(contexts)) * heads * kHeadDim;
  for (const int block : all_layouts())
    group.cases.push_back({"decode_attn", block ? "paged" : "contiguous",
                           Json().add("batch", shape.batch).add("context", shape.context).add("heads", heads)
                               .add("kv_heads", kv_heads).add("head_dim", kHeadDim).add("block", block)
                               .add("spread", shape.lognormal ? "lognormal" : "even")
                               .add("context_sum", total(contexts))
                               .add("context_max", *std::max_element(contexts.begin(), contexts.end())),
                           role, bytes, flops});
  return group;
}

inline void add_decodes(Plan& plan, const Options& options, Session& session) {
  std::vector<BatchShape> shapes = {{1, 1024}, {1, 16384}, {16, 1024}, {16, 8192}, {64, 1024}, {64, 4096}, {256, 512}};
  if (options.full())
    for (const BatchShape& more : std::vector<BatchShape>{{1, 256}, {1, 65536}, {4, 4096}, {4, 16384}, {16, 32768}, {256, 2048}})
      shapes.push_back(more);
  std::vector<std::pair<int, int>> heads = {{32, 8}, {64, 8}, {32, 32}};  // query heads, KV heads
  std::vector<std::pair<int, int>> spots = {{28, 4}, {40, 8}, {64, 4}};   // measured at two shapes
  std::vector<BatchShape> spot_shapes = {{16, 1024}, {64, 4096}};
  std::vector<BatchShape> held = {{32, 3000}, {100, 700}, {32, 2048, true}, {128, 1024, true}};
  if (options.tiny()) {
    shapes = {{1, 70}, {1, 600}, {3, 150}, {5, 260}};
    heads = {{4, 2}, {8, 1}};
    spots = {{2, 2}, {16, 1}, {7, 1}};
    spot_shapes = {{3, 150}};
    held = {{2, 210}, {6, 90, true}};
  }
  for (size_t i = 0; i < heads.size(); ++i) {
    const auto [query, kv] = heads[i];
    for (const BatchShape& s : shapes) plan.push_back(decode_group(session, s, query, kv, "fit", i ? 2 : 1));
    if (i == 2 && !options.full()) continue;
    for (const BatchShape& s : held) plan.push_back(decode_group(session, s, query, kv, "holdout", i ? 4 : 2));
  }
  for (const auto& [query, kv] : spots)
    for (const BatchShape& s : spot_shapes) plan.push_back(decode_group(session, s, query, kv, "fit", 3));
}

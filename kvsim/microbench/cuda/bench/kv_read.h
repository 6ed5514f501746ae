// kv_read: reading a batch's KV and nothing else, through block tables of each size and contiguous, in turns.
#pragma once
#include "../harness/dump.h"
#include "../harness/options.h"
#include "kv_cache.h"

// As many splits of each request as it takes to give every SM eight CTAs, none shorter than 64 tokens.
inline int read_splits(const std::vector<int>& contexts, int sms) {
  return std::max(1, std::min(sms * 8 / static_cast<int>(contexts.size()), contexts[0] / 64));
}

class KvReadSubject : public Subject {
 public:
  KvReadSubject(Session& session, std::shared_ptr<KvPool> pool, int block)
      : session_(session), pool_(std::move(pool)), layout_(pool_->contexts, block, session.seed), table_(layout_.table()),
        requests_(static_cast<int>(pool_->contexts.size())),
        splits_(read_splits(pool_->contexts, session.sms())),
        sums_(static_cast<size_t>(requests_) * splits_) {}
  void enqueue(int pass) override {
    const KvReadArgs a{pool_->view(layout_, table_, pass), sums_.data()};
    const dim3 grid(static_cast<unsigned>(splits_), static_cast<unsigned>(requests_));
    if (layout_.block()) LAUNCH(kv_read<true>, grid, dim3(kStreamThreads), session_.stream, a);
    else LAUNCH(kv_read<false>, grid, dim3(kStreamThreads), session_.stream, a);
  }
  Json more() override { return Json().add("splits", splits_); }
  // Each request's sum where there are few tokens, else that of the first and of the last request.
  Verdict verify() override {
    pool_->fill();
    pool_->poison(layout_);
    sums_.poison(session_.stream);
    enqueue(0);
    session_.finish();
    const std::vector<u32> sums = sums_.read();
    dump(session_, "kv_read", sums);
    const bool all = total(pool_->contexts) * static_cast<long long>(pool_->row) <= (1LL << 23);
    for (int request = 0; request < requests_; ++request) {
      if (!all && request && request != requests_ - 1) continue;
      u32 got = 0;
      for (int split = 0; split < splits_; ++split) got += sums[static_cast<size_t>(request) * splits_ + split];
      if (got != right_sum(request)) return exactly(false);
    }
    return exactly(true);
  }

 private:
  u32 right_sum(int request) const {
    u32 sum = 0;
    for (int token = 0; token < pool_->contexts[request]; ++token) {
      const u64 first = static_cast<u64>(layout_.slot(request, token)) * pool_->row / 2;
      for (u64 word = first; word < first + pool_->row / 2; ++word)
        sum += bf16_pair(word, session_.seed_of(KvPool::kKeyBuffer), kExponent) +
               bf16_pair(word, session_.seed_of(KvPool::kValueBuffer), kExponent);
    }
    return sum;
  }

  Session& session_;
  std::shared_ptr<KvPool> pool_;
  Layout layout_;
  Device<int> table_;
  int requests_, splits_;
  Device<u32> sums_;
};

inline Group kv_read_group(Session& session, BatchShape shape, int kv_heads, const char* role, int importance) {
  const std::vector<int> contexts = contexts_of(shape);
  const double bytes = 4.0 * static_cast<double>(total(contexts)) * kv_heads * kHeadDim;
  Group group{importance, KvPool::bytes_of(contexts, kv_heads) * session.rotations(static_cast<size_t>(bytes)), {},
              [=](Session& s) {
                Subjects all;
                const auto pool = std::make_shared<KvPool>(s, contexts, kv_heads);
                for (const int block : all_layouts()) all.push_back(std::make_unique<KvReadSubject>(s, pool, block));
                return all;
              }};
  for (const int block : all_layouts())
    group.cases.push_back({"kv_read", block ? "paged" : "contiguous",
                           Json().add("batch", shape.batch).add("context", shape.context).add("kv_heads", kv_heads)
                               .add("head_dim", kHeadDim).add("block", block),
                           role, bytes, 0.0});
  return group;
}

inline void add_kv_reads(Plan& plan, const Options& options, Session& session) {
  std::vector<BatchShape> shapes = {{8, 256}, {8, 1024}, {64, 1024}, {64, 4096}};
  std::vector<BatchShape> held = {{24, 1536}};
  if (options.full()) shapes.push_back({256, 4096}), shapes.push_back({16, 32768}), held.push_back({3, 20000});
  const int kv_heads = options.tiny() ? 2 : 8;
  if (options.tiny()) shapes = {{1, 90}, {2, 70}, {3, 150}, {4, 300}, {8, 200}}, held = {{3, 200}};
  for (const BatchShape& s : shapes) plan.push_back(kv_read_group(session, s, kv_heads, "fit", 1));
  for (const BatchShape& s : held) plan.push_back(kv_read_group(session, s, kv_heads, "holdout", 2));
}

// prefill_attn: causal attention of a prompt's chunk behind what is computed already.
#pragma once
#include "decode.h"

class PrefillSubject : public Subject {
 public:
  PrefillSubject(Session& session, int tokens, int prefix, int heads, int kv_heads)
      : session_(session), tokens_(tokens), prefix_(prefix), heads_(heads), kv_heads_(kv_heads),
        q_(static_cast<size_t>(tokens) * heads * kHeadDim),
        k_(static_cast<size_t>(prefix + tokens) * kv_heads * kHeadDim), v_(k_.size()), out_(q_.size() / 2) {
    session.fill(reinterpret_cast<u32*>(q_.data()), q_.size() / 2, DecodeSubject::kQueryBuffer, kSharpExponent);
    session.fill(reinterpret_cast<u32*>(k_.data()), k_.size() / 2, KvPool::kKeyBuffer);
    session.fill(reinterpret_cast<u32*>(v_.data()), v_.size() / 2, KvPool::kValueBuffer);
  }
  void enqueue(int) override {
    const PrefillArgs a{q_.data(), k_.data(), v_.data(), out_.data(), tokens_, prefix_, heads_, heads_, kv_heads_,
                        score_scale()};
    const dim3 grid(static_cast<unsigned>((tokens_ + kQueries - 1) / kQueries), static_cast<unsigned>(heads_));
    LAUNCH(prefill_attention, grid, dim3(kPrefillThreads), session_.stream, a);
  }
  // Each row where there are few, else eight from the first token to the last, each of another head.
  Verdict verify() override {
    out_.poison(session_.stream);
    enqueue(0);
    session_.finish();
    if (!session_.dump.empty()) dump(session_, "prefill_attn", out_.read());
    const int rows = tokens_ * heads_;
    const bool all = rows <= (1 << 11);
    RelativeError error;
    for (int i = 0; i < (all ? rows : 8); ++i) {
      const int token = all ? i / heads_ : static_cast<int>(static_cast<long long>(tokens_ - 1) * i / 7);
      add_row(token, all ? i % heads_ : (i * 5) % heads_, error);
    }
    return within(error.value(), kAttentionTolerance, !all);
  }

 private:
  void add_row(int token, int head, RelativeError& error) const {
    const u64 row = static_cast<u64>(token) * heads_ + head;
    const int kv_head = head / (heads_ / kv_heads_);
    const auto at = [&](int t, int d) { return (static_cast<u64>(t) * kv_heads_ + kv_head) * kHeadDim + d; };
    const std::vector<double> right = attention_row(
        prefix_ + token + 1,
        [&](int d) { return bf16_at(row * kHeadDim + d, session_.seed_of(DecodeSubject::kQueryBuffer), kSharpExponent); },
        [&](int t, int d) { return bf16_at(at(t, d), session_.seed_of(KvPool::kKeyBuffer)); },
        [&](int t, int d) { return bf16_at(at(t, d), session_.seed_of(KvPool::kValueBuffer)); });
    const std::vector<u32> got = out_.read(row * kHeadDim / 2, kHeadDim / 2);
    for (int d = 0; d < kHeadDim; ++d) error.add(bf16_value(d % 2 ? got[d / 2] >> 16 : got[d / 2] & 0xFFFFu), right[d]);
  }

  Session& session_;
  int tokens_, prefix_, heads_, kv_heads_;
  Device<u16> q_, k_, v_;
  Device<u32> out_;
};

inline void add_prefills(Plan& plan, const Options& options, Session&) {
  struct Chunk {
    int tokens, prefix;
    const char* role;
  };
  std::vector<Chunk> chunks = {{512, 0, "fit"},     {2048, 0, "fit"},    {8192, 0, "fit"},      {512, 4096, "fit"},
                               {2048, 4096, "fit"}, {512, 16384, "fit"}, {3000, 0, "holdout"}, {1024, 8192, "holdout"}};
  if (options.full())
    for (const Chunk& more : std::vector<Chunk>{{1024, 0, "fit"}, {4096, 0, "fit"}, {16384, 0, "fit"}, {32768, 0, "fit"},
                                                {2048, 16384, "fit"}, {6000, 2000, "holdout"}})
      chunks.push_back(more);
  int heads = 32, kv_heads = 8;
  if (options.tiny()) {
    chunks = {{20, 0, "fit"}, {64, 0, "fit"}, {130, 0, "fit"}, {40, 90, "fit"}, {70, 200, "fit"}, {100, 30, "holdout"}};
    heads = 4, kv_heads = 2;
  }
  for (const Chunk& c : chunks) {
    const double pairs = static_cast<double>(c.tokens) * c.prefix + 0.5 * c.tokens * (c.tokens + 1.0);
    const double bytes = 2.0 * kHeadDim * (2.0 * c.tokens * heads + 2.0 * (c.prefix + c.tokens) * kv_heads);
    add_single(plan, 2, static_cast<size_t>(bytes),
               {"prefill_attn", "causal",
                Json().add("tokens", c.tokens).add("prefix", c.prefix).add("heads", heads).add("kv_heads", kv_heads)
                    .add("head_dim", kHeadDim),
                c.role, bytes, 4.0 * pairs * heads * kHeadDim},
               [=](Session& s) { return std::make_unique<PrefillSubject>(s, c.tokens, c.prefix, heads, kv_heads); });
  }
}

// KV caches of a batch: contexts, block tables of each layout, and one pool of rows that all layouts of a shape share.
#pragma once
#include <cmath>
#include <numeric>

#include "../harness/plan.h"

constexpr int kSlotAlignment = 128;  // the largest block: regions begin at multiples of it

struct BatchShape {
  int batch, context;  // mean tokens of a request
  bool lognormal = false;
};

// The contexts of a batch: all the mean, or the quantiles of a lognormal law (sigma 0.8) scaled to it.
inline std::vector<int> contexts_of(const BatchShape& shape) {
  std::vector<int> contexts(shape.batch, shape.context);
  if (!shape.lognormal) return contexts;
  std::vector<double> raw;
  for (int i = 0; i < shape.batch; ++i) {
    // The normal quantile by bisection of erfc: exact enough, and the same on every host.
    const double share = (i + 0.5) / shape.batch;
    double low = -8.0, high = 8.0;
    while (high - low > 1e-12) {
      const double mid = 0.5 * (low + high);
      (0.5 * std::erfc(-mid / std::sqrt(2.0)) < share ? low : high) = mid;
    }
    raw.push_back(std::exp(0.8 * low));
  }
  const double mean = std::accumulate(raw.begin(), raw.end(), 0.0) / shape.batch;
  for (int i = 0; i < shape.batch; ++i)
    contexts[i] = std::max(1, static_cast<int>(std::lround(raw[i] / mean * shape.context)));
  // Long and short ones mixed, the same way each time.
  for (int i = shape.batch; i > 1; --i) std::swap(contexts[i - 1], contexts[hash_word(i, 7) % i]);
  return contexts;
}

inline long long total(const std::vector<int>& values) { return std::accumulate(values.begin(), values.end(), 0LL); }

// Which slot each token of each request has: blocks of a size in random order, or (block 0) one run of slots.
class Layout {
 public:
  Layout(const std::vector<int>& contexts, int block, u32 seed) : contexts_(contexts), block_(block) {
    std::vector<int> first(contexts.size() + 1, 0);
    for (size_t i = 0; i < contexts.size(); ++i)
      first[i + 1] = first[i] + (contexts[i] + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
    slots_ = first.back();
    if (contexts.empty()) return;
    if (!block) {
      table_.assign(first.begin(), first.end() - 1);
      return;
    }
    stride_ = (*std::max_element(contexts.begin(), contexts.end()) + block - 1) / block + 1;
    std::vector<int> blocks(slots_ / block);
    std::iota(blocks.begin(), blocks.end(), 0);
    for (size_t i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[hash_word(i, seed) % i]);
    table_.assign(contexts.size() * stride_, -1);  // what is not used leads out of the cache
    size_t taken = 0;
    for (size_t i = 0; i < contexts.size(); ++i)
      for (int j = 0; j * block < contexts[i]; ++j) table_[i * stride_ + j] = blocks[taken++];
  }
  int slot(int request, int token) const {
    if (!block_) return table_[request] + token;
    return table_[static_cast<size_t>(request) * stride_ + token / block_] * block_ + token % block_;
  }
  // Slots that hold nobody's token.
  std::vector<int> unused() const {
    std::vector<char> used(slots_, 0);
    for (size_t i = 0; i < contexts_.size(); ++i)
      for (int token = 0; token < contexts_[i]; ++token) used[slot(static_cast<int>(i), token)] = 1;
    std::vector<int> rest;
    for (int s = 0; s < slots_; ++s)
      if (!used[s]) rest.push_back(s);
    return rest;
  }
  const std::vector<int>& table() const { return table_; }
  int slots() const { return slots_; }
  int stride() const { return stride_; }
  int block() const { return block_; }
  int shift() const { return block_ ? static_cast<int>(std::lround(std::log2(block_))) : -1; }

 private:
  std::vector<int> contexts_;
  int block_, slots_ = 0, stride_ = 0;
  std::vector<int> table_;
};

// Rows of K and V of a batch, as many times as it takes to exceed the L2 cache.
class KvPool {
 public:
  static constexpr u32 kKeyBuffer = 3, kValueBuffer = 4;
  static size_t bytes_of(const std::vector<int>& contexts, int kv_heads) {
    size_t slots = 0;
    for (const int context : contexts) slots += (context + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
    return 4 * slots * kv_heads * kHeadDim;
  }
  // At least `copies` of them; pass number i reads copy i.
  KvPool(Session& session, const std::vector<int>& contexts, int kv_heads, int copies = 1)
      : session_(session), contexts(contexts), kv_heads(kv_heads),
        row(static_cast<size_t>(kv_heads) * kHeadDim), slots_(Layout(contexts, 0, 0).slots()),
        rotations(std::max(copies, session.rotations(4 * static_cast<size_t>(total(contexts)) * row))),
        k(row * slots_ * rotations), v(row * slots_ * rotations), context(contexts) {
    fill();
  }
  void fill() {
    session_.fill(reinterpret_cast<u32*>(k.data()), k.size() / 2, kKeyBuffer);
    session_.fill(reinterpret_cast<u32*>(v.data()), v.size() / 2, kValueBuffer);
  }
  // Makes what no token of this layout holds NaN, in the copy that pass 0 reads.
  void poison(const Layout& layout) {
    const std::vector<int> unused = layout.unused();
    if (unused.empty()) return;
    const Device<int> rows(unused);
    for (const Device<u16>* part : {&k, &v})
      LAUNCH(poison_rows, dim3(static_cast<unsigned>(unused.size())), dim3(kStreamThreads), session_.stream,
             reinterpret_cast<u32*>(part->data()), rows.data(), static_cast<int>(row / 2));
    session_.finish();
  }
  KvCache view(const Layout& layout, const Device<int>& table, int pass) const {
    const size_t offset = static_cast<size_t>(pass % rotations) * slots_ * row;
    return {k.data() + offset, v.data() + offset, table.data(), context.data(), layout.stride(), layout.shift(), kv_heads};
  }
  // What element `dim` of a token's row of a head is, in a copy.
  double key(int slot, int head, int dim, int copy = 0) const { return element(kKeyBuffer, slot, head, dim, copy); }
  double value(int slot, int head, int dim, int copy = 0) const { return element(kValueBuffer, slot, head, dim, copy); }

 private:
  double element(u32 buffer, int slot, int head, int dim, int copy) const {
    const u64 at = (static_cast<u64>(copy) * slots_ + slot) * row + static_cast<u64>(head) * kHeadDim + dim;
    return bf16_at(at, session_.seed_of(buffer));
  }
  Session& session_;

 public:
  const std::vector<int> contexts;
  const int kv_heads;
  const size_t row;  // elements of a slot

 private:
  const int slots_;

 public:
  const int rotations;
  Device<u16> k, v;
  Device<int> context;
};

inline std::vector<int> all_layouts() { return {0, 1, 8, 16, 32, 64, 128}; }

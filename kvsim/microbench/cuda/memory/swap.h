// swap_blocks: scattered blocks of a cache to host memory and back, in four ways.
#pragma once
#include <memory>

#include "../harness/options.h"
#include "../harness/plan.h"

enum class SwapMethod { kLoop, kBatch, kGather, kMapped };

// A cache, every other block of which is swapped, in random order; the host side is dense. All methods share it.
struct SwapBlocks {
  SwapBlocks(Session& session, int blocks, size_t block_bytes, bool out)
      : blocks(blocks), block_bytes(block_bytes), out(out), cache(2 * blocks * block_bytes / 4),
        host(blocks * block_bytes), staging(blocks * block_bytes / 4), places(blocks) {
    for (int i = 0; i < blocks; ++i) places[i] = 2 * i + 1;
    for (int i = blocks; i > 1; --i) std::swap(places[i - 1], places[hash_word(i, session.seed) % i]);
    index = Device<int>(places);
    for (int i = 0; i < blocks; ++i) {
      void* on_device = cache.data() + places[i] * (block_bytes / 4);
      void* on_host = static_cast<u32*>(host.data()) + i * (block_bytes / 4);
      to.push_back(out ? on_host : on_device);
      from.push_back(out ? on_device : on_host);
    }
    sizes.assign(blocks, block_bytes);
    if (out) return;
    for (size_t word = 0; word < host.size() / 4; ++word)
      static_cast<u32*>(host.data())[word] = bf16_pair(word, session.seed_of(kBuffer), kExponent);
  }
  static constexpr u32 kBuffer = 8;
  const int blocks;
  const size_t block_bytes;
  const bool out;
  Device<u32> cache;
  Pinned host;
  Device<u32> staging;
  std::vector<int> places;
  Device<int> index;
  std::vector<void*> to;
  std::vector<const void*> from;
  std::vector<size_t> sizes;
};

class SwapSubject : public Subject {
 public:
  SwapSubject(Session& session, std::shared_ptr<SwapBlocks> data, SwapMethod method)
      : session_(session), d_(std::move(data)), method_(method) {}
  void enqueue(int) override {
    const cudaStream_t stream = session_.stream;
    const cudaMemcpyKind kind = d_->out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
    switch (method_) {
      case SwapMethod::kLoop:
        for (int i = 0; i < d_->blocks; ++i) CUDA(cudaMemcpyAsync, d_->to[i], d_->from[i], d_->block_bytes, kind, stream);
        break;
      case SwapMethod::kBatch: {
        cudaMemcpyAttributes attributes{};
        attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
        size_t first = 0;
        CUDA(cudaMemcpyBatchAsync, d_->to.data(), d_->from.data(), d_->sizes.data(), d_->to.size(), &attributes, &first, size_t{1}, stream);
        break;
      }
      case SwapMethod::kGather:
        if (!d_->out) CUDA(cudaMemcpyAsync, d_->staging.data(), d_->host.data(), d_->host.size(), kind, stream);
        copy(d_->staging.data());
        if (d_->out) CUDA(cudaMemcpyAsync, d_->host.data(), d_->staging.data(), d_->host.size(), kind, stream);
        break;
      case SwapMethod::kMapped:
        copy(static_cast<u32*>(d_->host.mapped()));
        break;
    }
  }
  Verdict verify() override {
    u32* host = static_cast<u32*>(d_->host.data());
    if (d_->out) {
      std::fill(host, host + d_->host.size() / 4, ~0u);
      session_.fill(d_->cache.data(), d_->cache.size(), SwapBlocks::kBuffer);
    } else {
      d_->cache.poison(session_.stream);
    }
    session_.finish();
    enqueue(0);
    session_.finish();
    return exactly(d_->out ? host_is_right(host) : cache_is_right());
  }

 private:
  static constexpr int kMostChecked = 64;  // blocks; of more, as many spread over all
  size_t block_words() const { return d_->block_bytes / 4; }
  int stride() const { return std::max(1, d_->blocks / kMostChecked); }
  u32 right(size_t word) const { return bf16_pair(word, session_.seed_of(SwapBlocks::kBuffer), kExponent); }
  void copy(u32* dense) {
    const auto* cache = reinterpret_cast<const uint4*>(d_->cache.data());
    const int vectors = static_cast<int>(d_->block_bytes / 16);
    const BlockCopyArgs a = d_->out ? BlockCopyArgs{cache, reinterpret_cast<uint4*>(dense), d_->index.data(), nullptr, vectors}
                                 : BlockCopyArgs{reinterpret_cast<const uint4*>(dense),
                                                 reinterpret_cast<uint4*>(d_->cache.data()), nullptr, d_->index.data(), vectors};
    LAUNCH(copy_blocks, dim3(static_cast<unsigned>(d_->blocks)), dim3(kStreamThreads), session_.stream, a);
  }
  bool host_is_right(const u32* host) const {
    for (int i = 0; i < d_->blocks; i += stride())
      for (size_t word = 0; word < block_words(); ++word)
        if (host[i * block_words() + word] != right(d_->places[i] * block_words() + word)) return false;
    return true;
  }
  // What is not swapped in must be as it was: the block in front of each that is.
  bool cache_is_right() const {
    for (int i = 0; i < d_->blocks; i += stride()) {
      const std::vector<u32> two = d_->cache.read((d_->places[i] - 1) * block_words(), 2 * block_words());
      for (size_t word = 0; word < block_words(); ++word)
        if (two[word] != ~0u || two[block_words() + word] != right(i * block_words() + word)) return false;
    }
    return true;
  }

  Session& session_;
  std::shared_ptr<SwapBlocks> d_;
  SwapMethod method_;
};

inline void add_swaps(Plan& plan, const Options& options, Session&) {
  std::vector<int> counts = {256, 2048};
  std::vector<int> kib = {4, 16, 64, 256};
  int held_count = 1000, held_kib = 32;
  if (options.full()) kib = {4, 8, 16, 32, 64, 128, 256, 512}, held_kib = 48;
  if (options.tiny()) counts = {4, 20}, kib = {1, 4}, held_count = 10, held_kib = 2;
  const auto add = [&](int blocks, int size, const char* role) {
    for (const bool out : {true, false}) {
      const size_t block_bytes = static_cast<size_t>(size) << 10, bytes = blocks * block_bytes;
      Group group{2, 3 * bytes, {}, [=](Session& s) {
                    Subjects all;
                    const auto data = std::make_shared<SwapBlocks>(s, blocks, block_bytes, out);
                    for (int method = 0; method < 4; ++method)
                      all.push_back(std::make_unique<SwapSubject>(s, data, SwapMethod(method)));
                    return all;
                  }};
      for (const char* variant : {"loop", "batch", "gather", "mapped"})
        group.cases.push_back({"swap_blocks", variant,
                               Json().add("blocks", blocks).add("block_bytes", block_bytes).add("direction", out ? "out" : "in"),
                               role, static_cast<double>(bytes), 0.0});
      plan.push_back(std::move(group));
    }
  };
  for (const int blocks : counts)
    for (const int size : kib) add(blocks, size, "fit");
  add(held_count, held_kib, "holdout");
}

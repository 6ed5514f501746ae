// swap_blocks: scattered blocks of a cache to host memory and back, in four ways.
#pragma once
#include <numeric>

#include "../harness/options.h"
#include "../harness/plan.h"

enum class SwapMethod { kLoop, kBatch, kGather, kMapped };

class SwapSubject : public Subject {
 public:
  // Every other block of a cache twice as large is swapped, in random order; the host side is dense.
  SwapSubject(Session& session, SwapMethod method, int blocks, size_t block_bytes, bool out)
      : session_(session), method_(method), blocks_(blocks), block_bytes_(block_bytes), out_(out),
        cache_(2 * blocks * block_bytes / 4), host_(blocks * block_bytes),
        staging_(method == SwapMethod::kGather ? blocks * block_bytes / 4 : 0), places_(blocks) {
    for (int i = 0; i < blocks; ++i) places_[i] = 2 * i + 1;
    for (int i = blocks; i > 1; --i) std::swap(places_[i - 1], places_[hash_word(i, session.seed) % i]);
    index_ = Device<int>(places_);
    for (int i = 0; i < blocks; ++i) {
      void* device = cache_.data() + places_[i] * block_words();
      void* host = static_cast<u32*>(host_.data()) + i * block_words();
      to_.push_back(out ? host : device);
      from_.push_back(out ? device : host);
    }
    sizes_.assign(blocks, block_bytes);
  }
  void enqueue(int) override {
    const cudaStream_t stream = session_.stream;
    const cudaMemcpyKind kind = out_ ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
    switch (method_) {
      case SwapMethod::kLoop:
        for (int i = 0; i < blocks_; ++i) CUDA(cudaMemcpyAsync, to_[i], from_[i], block_bytes_, kind, stream);
        break;
      case SwapMethod::kBatch: {
        cudaMemcpyAttributes attributes{};
        attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
        size_t first = 0;
        CUDA(cudaMemcpyBatchAsync, to_.data(), from_.data(), sizes_.data(), to_.size(), &attributes, &first, size_t{1}, stream);
        break;
      }
      case SwapMethod::kGather:
        if (!out_) CUDA(cudaMemcpyAsync, staging_.data(), host_.data(), host_.size(), kind, stream);
        copy(staging_.data());
        if (out_) CUDA(cudaMemcpyAsync, host_.data(), staging_.data(), host_.size(), kind, stream);
        break;
      case SwapMethod::kMapped:
        copy(static_cast<u32*>(host_.mapped()));
        break;
    }
  }
  Verdict verify() override {
    u32* host = static_cast<u32*>(host_.data());
    if (out_) {
      std::fill(host, host + host_.size() / 4, ~0u);
      session_.fill(cache_.data(), cache_.size(), kBuffer);
    } else {
      for (size_t i = 0; i < host_.size() / 4; ++i) host[i] = bf16_pair(i, session_.seed_of(kBuffer), kExponent);
      cache_.poison(session_.stream);
    }
    session_.finish();
    enqueue(0);
    session_.finish();
    return exactly(out_ ? host_is_right(host) : cache_is_right());
  }

 private:
  static constexpr u32 kBuffer = 8;
  size_t block_words() const { return block_bytes_ / 4; }
  void copy(u32* dense) {
    const auto* cache = reinterpret_cast<const uint4*>(cache_.data());
    const int vectors = static_cast<int>(block_bytes_ / 16);
    const BlockCopyArgs a = out_ ? BlockCopyArgs{cache, reinterpret_cast<uint4*>(dense), index_.data(), nullptr, vectors}
                                 : BlockCopyArgs{reinterpret_cast<const uint4*>(dense),
                                                 reinterpret_cast<uint4*>(cache_.data()), nullptr, index_.data(), vectors};
    LAUNCH(copy_blocks, dim3(static_cast<unsigned>(blocks_)), dim3(kStreamThreads), session_.stream, a);
  }
  bool host_is_right(const u32* host) const {
    for (int i = 0; i < blocks_; ++i)
      for (size_t word = 0; word < block_words(); ++word)
        if (host[i * block_words() + word] != bf16_pair(places_[i] * block_words() + word, session_.seed_of(kBuffer), kExponent))
          return false;
    return true;
  }
  // What is not swapped in must be as it was.
  bool cache_is_right() const {
    const std::vector<u32> cache = cache_.read();
    for (int i = 0; i < blocks_; ++i)
      for (size_t word = 0; word < block_words(); ++word)
        if (cache[places_[i] * block_words() + word] != bf16_pair(i * block_words() + word, session_.seed_of(kBuffer), kExponent) ||
            cache[2 * i * block_words() + word] != ~0u)
          return false;
    return true;
  }

  Session& session_;
  SwapMethod method_;
  int blocks_;
  size_t block_bytes_;
  bool out_;
  Device<u32> cache_;
  Pinned host_;
  Device<u32> staging_;
  std::vector<int> places_;
  Device<int> index_;
  std::vector<void*> to_;
  std::vector<const void*> from_;
  std::vector<size_t> sizes_;
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
      Group group{2, 13 * bytes, {}, [=](Session& s) {
                    Subjects all;
                    for (int method = 0; method < 4; ++method)
                      all.push_back(std::make_unique<SwapSubject>(s, SwapMethod(method), blocks, block_bytes, out));
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

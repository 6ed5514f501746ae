// alloc and grow: what memory costs to have, to give back, and to have more of by copying. Timed on the host's clock,
// each operation waited for, since an allocation may wait for the device.
#pragma once
#include "../harness/options.h"
#include "../harness/plan.h"
#include "vmm.h"

// Seconds of one part of an operation, on the host's clock; the rest of the operation is not timed.
class HostSubject : public Subject {
 public:
  explicit HostSubject(Session& session) : session_(session) {}
  void enqueue(int) override { once(); }
  Verdict verify() override { return nothing_to_check(); }
  double seconds(Session&, int, int passes) override {
    double sum = 0.0;
    for (int i = 0; i < passes; ++i) sum += once();
    return sum / passes;
  }

 protected:
  virtual double once() = 0;
  template <class Work>
  double timed(Work work) {
    session_.finish();
    const double begun = host_now_s();
    work();
    session_.finish();
    return host_now_s() - begun;
  }
  Session& session_;
};

class MallocSubject : public HostSubject {
 public:
  MallocSubject(Session& session, size_t bytes, bool free) : HostSubject(session), bytes_(bytes), free_(free) {}

 private:
  double once() override {
    void* data = nullptr;
    const double had = timed([&] { CUDA(cudaMalloc, &data, bytes_); });
    const double freed = timed([&] { CUDA(cudaFree, data); });
    return free_ ? freed : had;
  }
  size_t bytes_;
  bool free_;
};

// The stream-ordered pool: warm, it keeps what was freed; cold, it has nothing and keeps nothing.
class PoolSubject : public HostSubject {
 public:
  PoolSubject(Session& session, size_t bytes, bool warm) : HostSubject(session), bytes_(bytes), warm_(warm) {
    CUDA(cudaDeviceGetDefaultMemPool, &pool_, 0);
  }
  ~PoolSubject() override { cudaMemPoolTrimTo(pool_, 0); }

 private:
  double once() override {
    void* data = nullptr;
    u64 threshold = warm_ ? ~u64{0} : 0;
    CUDA(cudaMemPoolSetAttribute, pool_, cudaMemPoolAttrReleaseThreshold, &threshold);
    if (!warm_) CUDA(cudaMemPoolTrimTo, pool_, size_t{0});
    const double had = timed([&] { CUDA(cudaMallocAsync, &data, bytes_, session_.stream); });
    CUDA(cudaFreeAsync, data, session_.stream);
    session_.finish();
    return had;
  }
  size_t bytes_;
  bool warm_;
  cudaMemPool_t pool_ = nullptr;
};

class MapSubject : public HostSubject {
 public:
  MapSubject(Session& session, int chunks, bool unmap)
      : HostSubject(session), pages_(chunks), unmap_(unmap) {}
  Verdict verify() override {
    const MappedPages::Mapping mapped(pages_);
    session_.fill(reinterpret_cast<u32*>(pages_.data()), pages_.bytes() / 4, kBuffer);
    session_.finish();
    u32 last = 0;
    CUDA(cudaMemcpy, &last, pages_.data() + pages_.bytes() - 4, sizeof last, cudaMemcpyDeviceToHost);
    return exactly(last == bf16_pair(pages_.bytes() / 4 - 1, session_.seed_of(kBuffer), kExponent));
  }

 private:
  static constexpr u32 kBuffer = 9;
  double once() override {
    const double mapped = timed([&] { pages_.map(); });
    const double unmapped = timed([&] { pages_.unmap(); });
    return unmap_ ? unmapped : mapped;
  }
  MappedPages pages_;
  bool unmap_;
};

// A region that grows as a framework's concatenation does: a larger one, a copy, and the old one freed.
class GrowSubject : public HostSubject {
 public:
  GrowSubject(Session& session, size_t bytes, size_t more) : HostSubject(session), bytes_(bytes), more_(more) {}
  Verdict verify() override {
    const double unused = grow(true);
    (void)unused;
    return exactly(kept_);
  }

 private:
  static constexpr u32 kBuffer = 10;
  double once() override { return grow(false); }
  double grow(bool look) {
    Device<u32> region(bytes_ / 4);
    if (look) session_.fill(region.data(), region.size(), kBuffer);
    const double seconds = timed([&] {
      Device<u32> larger(more_ / 4);
      CUDA(cudaMemcpyAsync, larger.data(), region.data(), bytes_, cudaMemcpyDeviceToDevice, session_.stream);
      session_.finish();
      region = std::move(larger);  // and the old region goes with `larger`
    });
    if (!look) return seconds;
    const u64 words = bytes_ / 4;
    for (const u64 word : {u64{0}, words / 2, words - 1})
      kept_ = kept_ && region.read(word, 1)[0] == bf16_pair(word, session_.seed_of(kBuffer), kExponent);
    return seconds;
  }
  size_t bytes_, more_;
  bool kept_ = true;
};

inline void add_allocs(Plan& plan, const Options& options, Session&) {
  std::vector<size_t> mib = {2, 16, 128, 1024};
  std::vector<int> chunks = {1, 8, 64, 256};
  if (options.full()) mib = {2, 8, 32, 128, 512, 2048, 4096}, chunks = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  if (options.tiny()) mib = {1, 2, 4, 8}, chunks = {1, 2, 4, 8};
  const size_t held_mib = options.tiny() ? 3 : 300;
  const int held_chunks = options.tiny() ? 6 : 100;
  mib.push_back(held_mib), chunks.push_back(held_chunks);
  for (const size_t size : mib) {
    const size_t bytes = size << 20;
    const char* role = size == held_mib ? "holdout" : "fit";
    const Json params = Json().add("bytes", bytes).add("chunks", 1);
    const auto add = [&](const char* variant, auto build) {
      add_single(plan, 2, bytes, {"alloc", variant, params, role, static_cast<double>(bytes), 0.0}, build);
    };
    add("malloc", [=](Session& s) { return std::make_unique<MallocSubject>(s, bytes, false); });
    add("free", [=](Session& s) { return std::make_unique<MallocSubject>(s, bytes, true); });
    add("pool_warm", [=](Session& s) { return std::make_unique<PoolSubject>(s, bytes, true); });
    add("pool_cold", [=](Session& s) { return std::make_unique<PoolSubject>(s, bytes, false); });
  }
  for (const int count : chunks)
    for (const bool unmap : {false, true}) {
      const size_t bytes = static_cast<size_t>(count) * kMapChunk;
      add_single(plan, 2, bytes,
                 {"alloc", unmap ? "vmm_unmap" : "vmm_map", Json().add("bytes", bytes).add("chunks", count),
                  count == held_chunks ? "holdout" : "fit", static_cast<double>(bytes), 0.0},
                 [=](Session& s) { return std::make_unique<MapSubject>(s, count, unmap); });
    }
}

inline void add_grows(Plan& plan, const Options& options, Session&) {
  std::vector<size_t> mib = {16, 128, 1024};
  if (options.full()) mib = {16, 64, 256, 1024, 4096, 8192};
  if (options.tiny()) mib = {1, 2, 4, 8};
  const size_t held = options.tiny() ? 3 : 500;
  mib.push_back(held);
  for (const size_t size : mib) {
    const size_t bytes = size << 20, more = bytes + bytes / 8;
    add_single(plan, 3, bytes + more,
               {"grow", "alloc_copy_free", Json().add("bytes", bytes).add("new_bytes", more),
                size == held ? "holdout" : "fit", 2.0 * static_cast<double>(bytes), 0.0},
               [=](Session& s) { return std::make_unique<GrowSubject>(s, bytes, more); });
  }
}

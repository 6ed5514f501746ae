// h2d, d2h and duplex: copies between host and device, pinned and pageable, one way and both ways at once.
#pragma once
#include <cstring>
#include <optional>

#include "../harness/options.h"
#include "../harness/plan.h"

enum class Way { kToDevice, kToHost, kBoth };

class TransferSubject : public Subject {
 public:
  TransferSubject(Session& session, Way way, bool pinned, size_t bytes)
      : session_(session), way_(way), bytes_(bytes), device_(bytes / 4), back_(way == Way::kBoth ? bytes / 4 : 0) {
    if (pinned) pinned_.emplace(bytes * (way == Way::kBoth ? 2 : 1));
    else pageable_.resize(bytes / 4);
    host_ = pinned ? static_cast<u32*>(pinned_->data()) : pageable_.data();
    for (size_t i = 0; i < bytes / 4; ++i) host_[i] = bf16_pair(i, session.seed_of(kHostBuffer), kExponent);
    if (way == Way::kBoth) std::memset(host_ + bytes / 4, 0xFF, bytes);
  }
  void enqueue(int) override {
    if (way_ == Way::kToDevice) copy_in(session_.stream);
    if (way_ == Way::kToHost) CUDA(cudaMemcpyAsync, host_, device_.data(), bytes_, cudaMemcpyDeviceToHost, session_.stream);
    if (way_ != Way::kBoth) return;
    // The way out runs on a stream of its own, between two events of the one that is timed.
    fork_.record(session_.stream);
    CUDA(cudaStreamWaitEvent, side_, fork_.get(), 0U);
    copy_in(session_.stream);
    CUDA(cudaMemcpyAsync, host_ + bytes_ / 4, back_.data(), bytes_, cudaMemcpyDeviceToHost, side_);
    join_.record(side_);
    CUDA(cudaStreamWaitEvent, session_.stream, join_.get(), 0U);
  }
  Verdict verify() override {
    device_.poison(session_.stream);
    if (back_.size()) session_.fill(back_.data(), back_.size(), kDeviceBuffer);
    if (way_ == Way::kToHost) {
      session_.fill(device_.data(), device_.size(), kDeviceBuffer);
      std::memset(host_, 0xFF, bytes_);
    }
    session_.finish();
    enqueue(0);
    session_.finish();
    if (way_ == Way::kToHost) return exactly(filled(host_, kDeviceBuffer));
    const bool out = way_ == Way::kToDevice || filled(host_ + bytes_ / 4, kDeviceBuffer);
    return exactly(out && filled(device_.read().data(), kHostBuffer));
  }

 private:
  void copy_in(cudaStream_t stream) {
    CUDA(cudaMemcpyAsync, device_.data(), host_, bytes_, cudaMemcpyHostToDevice, stream);
  }
  bool filled(const u32* words, u32 buffer) const {
    for (size_t i = 0; i < bytes_ / 4; ++i)
      if (words[i] != bf16_pair(i, session_.seed_of(buffer), kExponent)) return false;
    return true;
  }
  static constexpr u32 kHostBuffer = 6, kDeviceBuffer = 7;

  Session& session_;
  Way way_;
  size_t bytes_;
  Device<u32> device_, back_;
  std::optional<Pinned> pinned_;
  std::vector<u32> pageable_;
  u32* host_ = nullptr;
  Stream side_;
  Event fork_, join_;
};

inline void add_transfers_of(Plan& plan, const Options& options, const char* bench, Way way) {
  std::vector<size_t> kib = {4, 64, 1 << 10, 16 << 10, 128 << 10};
  if (options.full()) kib = {4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10};
  if (options.tiny()) kib = {1, 4, 16, 64};
  const size_t held = options.tiny() ? 40 : 10 << 10;
  kib.push_back(held);
  for (const bool pinned : {true, false})
    for (const size_t size : kib) {
      if (!pinned && way == Way::kBoth) continue;  // a pageable copy holds the host up: there is no both ways at once
      const size_t bytes = size << 10;
      add_single(plan, 2, 2 * bytes,
                 {bench, pinned ? "pinned" : "pageable", Json().add("bytes", bytes), size == held ? "holdout" : "fit",
                  static_cast<double>(bytes) * (way == Way::kBoth ? 2 : 1), 0.0},
                 [=](Session& s) { return std::make_unique<TransferSubject>(s, way, pinned, bytes); });
    }
}
inline void add_h2d(Plan& plan, const Options& o, Session&) { add_transfers_of(plan, o, "h2d", Way::kToDevice); }
inline void add_d2h(Plan& plan, const Options& o, Session&) { add_transfers_of(plan, o, "d2h", Way::kToHost); }
inline void add_duplex(Plan& plan, const Options& o, Session&) { add_transfers_of(plan, o, "duplex", Way::kBoth); }

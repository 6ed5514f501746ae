// hbm: what the memory gives, read, written and copied, over sizes from within the L2 cache to far beyond.
#pragma once
#include "../harness/options.h"
#include "../harness/plan.h"

class StreamSubject : public Subject {
 public:
  enum Kind { kRead, kWrite, kCopy };
  StreamSubject(Session& session, Kind kind, size_t bytes)
      : session_(session), kind_(kind), bytes_(bytes), rotations_(session.rotations(bytes)),
        from_(kind == kWrite ? 0 : bytes / 4 * rotations_), to_(kind == kRead ? 0 : bytes / 4 * rotations_),
        grid_(session.grid_for(bytes / 16)), sums_(grid_.x) {
    if (from_.size()) session.fill(from_.data(), from_.size(), 0);
  }
  void enqueue(int pass) override {
    const size_t offset = static_cast<size_t>(pass % rotations_) * (bytes_ / 16);
    const StreamArgs a{kind_ == kWrite ? nullptr : reinterpret_cast<const uint4*>(from_.data()) + offset,
                       kind_ == kRead ? nullptr : reinterpret_cast<uint4*>(to_.data()) + offset, bytes_ / 16,
                       sums_.data()};
    if (kind_ == kRead) LAUNCH(stream_read, grid_, dim3(kStreamThreads), session_.stream, a);
    if (kind_ == kWrite) LAUNCH(stream_write, grid_, dim3(kStreamThreads), session_.stream, a);
    if (kind_ == kCopy) LAUNCH(stream_copy, grid_, dim3(kStreamThreads), session_.stream, a);
  }
  Verdict verify() override {
    if (to_.size()) to_.poison(session_.stream);
    sums_.poison(session_.stream);
    enqueue(0);
    session_.finish();
    return exactly(kind_ == kRead ? sums_agree() : words_agree());
  }

 private:
  // Of a large buffer the first CTA's sum alone: the host computes millions of hashes a second, not billions.
  bool sums_agree() const {
    const std::vector<u32> sums = sums_.read();
    const u64 vectors = bytes_ / 16, stride = static_cast<u64>(grid_.x) * kStreamThreads;
    const unsigned ctas = vectors <= kMostChecked ? grid_.x : 1;
    for (unsigned cta = 0; cta < ctas; ++cta) {
      u32 sum = 0;
      for (u64 base = static_cast<u64>(cta) * kStreamThreads; base < vectors; base += stride)
        for (u64 at = base; at < std::min(base + kStreamThreads, vectors); ++at)
          for (int word = 0; word < 4; ++word) sum += bf16_pair(at * 4 + word, session_.seed_of(0), kExponent);
      if (sum != sums[cta]) return false;
    }
    return true;
  }
  bool words_agree() const {
    const u64 words = bytes_ / 4, part = std::min(words, kMostChecked);
    for (const u64 first : {u64{0}, words - part}) {
      const std::vector<u32> got = to_.read(first, part);
      for (u64 i = 0; i < part; ++i) {
        const u64 word = first + i;
        const u32 written = static_cast<u32>(word / 4) * 0x9E3779B1u + static_cast<u32>(word % 4);
        if (got[i] != (kind_ == kWrite ? written : bf16_pair(word, session_.seed_of(0), kExponent))) return false;
      }
    }
    return true;
  }
  static constexpr u64 kMostChecked = 1 << 18;

  Session& session_;
  Kind kind_;
  size_t bytes_;
  int rotations_;
  Device<u32> from_, to_;
  dim3 grid_;
  Device<u32> sums_;
};

inline Group stream_group(Session& session, size_t bytes, const char* role, int importance) {
  const size_t pool = bytes * session.rotations(bytes);
  Group group{importance, 2 * pool, {}, [bytes](Session& s) {
                Subjects all;
                for (const auto kind : {StreamSubject::kRead, StreamSubject::kWrite, StreamSubject::kCopy})
                  all.push_back(std::make_unique<StreamSubject>(s, kind, bytes));
                return all;
              }};
  const double once = static_cast<double>(bytes);
  for (const char* variant : {"read", "write", "copy"})
    group.cases.push_back({"hbm", variant, Json().add("bytes", bytes), role, variant[0] == 'c' ? 2 * once : once, 0.0});
  group.device_bytes = 4 * pool;  // the three lie beside one another
  return group;
}

inline Group copy_anchor(size_t bytes) {
  Group group{0, 4 * bytes, {}, [bytes](Session& s) {
                Subjects all;
                all.push_back(std::make_unique<StreamSubject>(s, StreamSubject::kCopy, bytes));
                return all;
              }};
  group.cases.push_back({"hbm", "copy", Json().add("bytes", bytes), "anchor", 2.0 * static_cast<double>(bytes), 0.0});
  return group;
}

inline void add_streams(Plan& plan, const Options& options, Session& session) {
  std::vector<size_t> kib = {1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
  if (options.full()) kib.push_back(4 << 20);
  if (options.tiny()) kib = {8, 24, 64, 160};
  for (size_t i = 0; i < kib.size(); ++i) plan.push_back(stream_group(session, kib[i] << 10, "fit", i < 4 ? 1 : 3));
  // Between the fitted sizes.
  for (const size_t held : options.tiny() ? std::vector<size_t>{96} : std::vector<size_t>{40 << 10, 640 << 10})
    plan.push_back(stream_group(session, held << 10, "holdout", 4));
}

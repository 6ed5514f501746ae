// What a run has in common: the device, a stream, the way to fill buffers, and the clock of the host.
#pragma once
#include <time.h>

#include <algorithm>
#include <cstdint>

#include "api.h"
#include "../kernels/kernels.h"
#include "cublas.h"

// Seconds of a clock that only goes forward.
inline double host_now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

constexpr u32 kExponent = 126;       // elements below one
constexpr u32 kSharpExponent = 129;  // queries: scores then differ by more than one, and a softmax by much

struct Session {
  cudaDeviceProp device{};
  Stream stream;
  Event start, stop;
  Cublas cublas;
  u32 seed = 1;
  std::string dump;  // a folder for the outputs that are checked, or empty

  size_t l2_bytes() const { return static_cast<size_t>(std::max(device.l2CacheSize, 1 << 10)); }
  int sms() const { return device.multiProcessorCount; }

  // Copies of something of so many bytes that a cycle over them needs to be read from memory: 4 x L2, and one more.
  int rotations(size_t bytes) const {
    return static_cast<int>(std::min<size_t>(4 * l2_bytes() / std::max<size_t>(bytes, 1) + 1, 256));
  }
  dim3 grid_for(u64 vectors) const {
    const u64 wanted = (vectors + 4 * kStreamThreads - 1) / (4 * kStreamThreads);
    return dim3(static_cast<unsigned>(std::max<u64>(1, std::min<u64>(wanted, static_cast<u64>(sms()) * 16))));
  }
  void fill(u32* words, u64 count, u32 buffer, u32 exponent = kExponent) {
    LAUNCH(fill_bf16, grid_for(count / 4), dim3(kStreamThreads), stream, words, count, seed_of(buffer), exponent);
  }
  u32 seed_of(u32 buffer) const { return seed * 16 + buffer; }
  void finish() { CUDA(cudaStreamSynchronize, stream); }
};

// One element of a buffer that `Session::fill` filled, as the host computes it.
inline double bf16_at(u64 element, u32 seed, u32 exponent = kExponent) {
  const u32 pair = bf16_pair(element / 2, seed, exponent);
  const u32 bits = (element % 2 ? pair & 0xFFFF0000u : pair << 16);
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// What a bf16 of an output is worth.
inline double bf16_value(u32 bits) {
  bits <<= 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// sqrt(sum of squared differences / sum of squares), over what it is given bit by bit.
class RelativeError {
 public:
  void add(double got, double right) {
    difference_ += (got - right) * (got - right);
    size_ += right * right;
  }
  double value() const { return std::sqrt(difference_ / size_); }

 private:
  double difference_ = 0.0, size_ = 0.0;
};

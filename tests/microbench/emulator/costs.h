// What the kernels cost on the oracle GPU: the formulas of the fit, with the parameters of EMU_GPU. They count the
// bytes and operations themselves, from what a launch is given, and not from what the harness says of a point.
#pragma once
#include "kernels/kernels.h"
#include "machine.h"

namespace emu {
inline double bandwidth() { return machine().get("bandwidth", 1e9); }
inline double tokens_of(const KvCache& cache, unsigned requests) {
  double sum = 0;
  for (unsigned i = 0; i < requests; ++i) sum += cache.context[i];
  return sum;
}
inline double row_bytes(const KvCache& cache) { return 2.0 * 2.0 * cache.kv_heads * kHeadDim; }
inline double block_overhead(const KvCache& cache) {
  if (cache.block_shift < 0) return 1.0;
  return 1.0 + machine().get("overhead_" + std::to_string(1 << cache.block_shift), 0.0);
}
}  // namespace emu

inline double cost_of(const StreamArgs& a, dim3) {
  const double sides = (a.from != nullptr) + (a.to != nullptr);
  return emu::machine().get("stream_s", 0.0) + sides * 16.0 * double(a.vectors) / emu::bandwidth();
}
inline double cost_of(const KvReadArgs& a, dim3 grid) {
  return emu::machine().get("kv_read_s", 0.0) + emu::tokens_of(a.cache, grid.y) * emu::row_bytes(a.cache) *
                                                     emu::block_overhead(a.cache) /
                                                     emu::machine().get("kv_read_bandwidth", emu::bandwidth());
}
inline double cost_of(const DecodeArgs& a, dim3 grid) {
  const double bytes = emu::tokens_of(a.cache, grid.z) * emu::row_bytes(a.cache);
  const double penalty = 1.0 + emu::machine().get("group_penalty", 0.0) * (a.group - 1);
  return emu::machine().get("decode_s", 0.0) +
         bytes * emu::block_overhead(a.cache) * penalty / emu::machine().get("attention_bandwidth", emu::bandwidth());
}
inline double cost_of(const CombineArgs&, dim3) { return emu::machine().get("combine_s", 0.0); }
inline double cost_of(const PrefillArgs& a, dim3) {
  const double pairs = double(a.tokens) * a.prefix + 0.5 * double(a.tokens) * (a.tokens + 1.0);
  return emu::machine().get("prefill_s", 0.0) +
         4.0 * pairs * a.heads * kHeadDim / emu::machine().get("prefill_flops", 1e10);
}
inline double cost_of(const BlockCopyArgs& a, dim3 grid) {
  const double bytes = 16.0 * a.vectors * grid.x;
  if (emu::is_pinned(a.from)) return bytes / emu::machine().get("h2d_bandwidth", 1e8);
  if (emu::is_pinned(a.to)) return bytes / emu::machine().get("d2h_bandwidth", 1e8);
  return 2.0 * bytes / emu::bandwidth();
}

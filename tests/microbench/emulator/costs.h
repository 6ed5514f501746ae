// What the kernels cost on the oracle GPU: the formulas of the fit, with the parameters of EMU_GPU. They count the
// bytes and operations themselves, from what a launch is given, and not from what the harness says of a point.
#pragma once
#include "kernels/kernels.h"
#include "machine.h"

namespace emu {
inline double bandwidth() { return machine().get("bandwidth", 1e9); }
inline std::pair<double, int> contexts_of(const KvCache& cache, unsigned requests) {  // their sum and the longest
  double sum = 0;
  int longest = 0;
  for (unsigned i = 0; i < requests; ++i) sum += cache.context[i], longest = std::max(longest, cache.context[i]);
  return {sum, longest};
}
inline double factor_of(const char* kind, int size) {
  return machine().get(std::string(kind) + "_" + std::to_string(size) + "_factor", 1.0);
}
inline double block_factor(const KvCache& cache) {
  return cache.block_shift < 0 ? 1.0 : factor_of("block", 1 << cache.block_shift);
}
constexpr double kKeyAndValue = 2.0 * 2.0 * kHeadDim;  // bytes of one token and KV head
}  // namespace emu

inline double cost_of(const StreamArgs& a, dim3) {
  const double sides = (a.from != nullptr) + (a.to != nullptr);
  return emu::machine().get("stream_s", 0.0) + sides * 16.0 * double(a.vectors) / emu::bandwidth();
}
inline double cost_of(const KvReadArgs& a, dim3 grid) {
  const auto [sum, longest] = emu::contexts_of(a.cache, grid.y);
  const double row = a.cache.kv_heads * emu::kKeyAndValue;
  const double walk = double(longest) / grid.x * row / emu::machine().get("read_walk", 1e9);
  const double whole = sum * row / emu::machine().get("read_bandwidth", 1e9);
  return emu::machine().get("read_s", 0.0) + emu::block_factor(a.cache) * std::max(whole, walk);
}
inline double cost_of(const DecodeArgs& a, dim3 grid) {
  const auto [sum, longest] = emu::contexts_of(a.cache, grid.z);
  const double bytes = sum * a.cache.kv_heads * emu::kKeyAndValue;
  const double walk = double(longest) / grid.y * emu::kKeyAndValue / emu::machine().get("decode_walk", 1e9);
  return emu::machine().get("decode_s", 0.0) + emu::factor_of("group", a.group) * emu::block_factor(a.cache) *
                                                   std::max(bytes / emu::machine().get("decode_bandwidth", 1e9), walk);
}
inline double cost_of(const CombineArgs&, dim3) { return emu::machine().get("combine_s", 0.0); }
inline double cost_of(const PrefillArgs& a, dim3) {
  const double pairs = double(a.tokens) * a.prefix + 0.5 * double(a.tokens) * (a.tokens + 1.0);
  const double ramp = emu::machine().get("prefill_ramp", 0.0) * a.tokens;
  return emu::machine().get("prefill_s", 0.0) +
         4.0 * (pairs + ramp) * a.heads * kHeadDim / emu::machine().get("prefill_flops", 1e10);
}
inline double cost_of(const BlockCopyArgs& a, dim3 grid) {
  const double bytes = 16.0 * a.vectors * grid.x;
  if (emu::is_pinned(a.from)) return bytes / emu::machine().get("h2d_bandwidth", 1e8);
  if (emu::is_pinned(a.to)) return bytes / emu::machine().get("d2h_bandwidth", 1e8);
  return 2.0 * bytes / emu::bandwidth();
}

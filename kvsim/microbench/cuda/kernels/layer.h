// What a layer of a model has between its products: the norm of a row, and the gate of the feed-forward part.
#pragma once
#include "stream.h"

struct NormArgs {
  const u32* from;  // rows of bf16 pairs
  u32* to;
  int row_words;
};

// Root-mean-square norm without a gain. One CTA a row.
__global__ void __launch_bounds__(kStreamThreads) rms_norm(NormArgs a) {
  const u32* from = a.from + static_cast<u64>(blockIdx.x) * a.row_words;
  u32* to = a.to + static_cast<u64>(blockIdx.x) * a.row_words;
  KV_SHARED(float, warps, [kStreamThreads / kWarp]);
  float sum = 0.0f;
  for (int at = threadIdx.x; at < a.row_words; at += kStreamThreads) {
    const float low = widen(from[at] & 0xFFFFu), high = widen(from[at] >> 16);
    sum += low * low + high * high;
  }
  for (int mask = kWarp / 2; mask; mask /= 2) sum += shuffle_xor(sum, mask);
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int warp = 0; warp < kStreamThreads / kWarp; ++warp) sum += warps[warp];
  const float scale = rsqrtf(sum / (2.0f * a.row_words) + 1e-6f);
  for (int at = threadIdx.x; at < a.row_words; at += kStreamThreads)
    to[at] = narrow_pair(widen(from[at] & 0xFFFFu) * scale, widen(from[at] >> 16) * scale);
}

struct GateArgs {
  const u32* gate_up;  // rows of `row_words` words of the gate, then as many of the other branch
  u32* to;
  int row_words;
};

KV_DEVICE float silu(float x) { return x / (1.0f + exp2f(-1.4426950f * x)); }

// to = silu(gate) * up. Grid: (parts of a row, rows).
__global__ void __launch_bounds__(kStreamThreads) silu_mul(GateArgs a) {
  const int at = blockIdx.x * kStreamThreads + threadIdx.x;
  if (at >= a.row_words) return;
  const u32* row = a.gate_up + static_cast<u64>(blockIdx.y) * 2 * a.row_words;
  const u32 gate = row[at], up = row[a.row_words + at];
  a.to[static_cast<u64>(blockIdx.y) * a.row_words + at] =
      narrow_pair(silu(widen(gate & 0xFFFFu)) * widen(up & 0xFFFFu), silu(widen(gate >> 16)) * widen(up >> 16));
}

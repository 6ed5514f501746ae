// Memory alone: fill, poison, read, write, copy; and the kernels that a layer has between its products.
#pragma once
#include "device.h"

struct StreamArgs {
  const uint4* from;
  uint4* to;
  u64 vectors;  // of 16 bytes
  u32* sums;    // one a CTA, of what was read
};

constexpr int kStreamThreads = 256;

// A sum that does not depend on the order, so that it can be checked exactly.
KV_DEVICE u32 add_words(u32 sum, const uint4& v) { return sum + v.x + v.y + v.z + v.w; }

KV_DEVICE void store_block_sum(u32 sum, u32* to) {
  KV_SHARED(u32, warps, [kStreamThreads / kWarp]);
  for (int mask = kWarp / 2; mask; mask /= 2) sum += shuffle_xor(sum, mask);
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = sum;
  __syncthreads();  // before the reduction
  if (threadIdx.x == 0) {
    u32 total = 0;
    for (int warp = 0; warp < kStreamThreads / kWarp; ++warp) total += warps[warp];
    *to = total;
  }
}

__global__ void __launch_bounds__(kStreamThreads) stream_read(StreamArgs a) {
  const u64 stride = static_cast<u64>(gridDim.x) * kStreamThreads;
  u32 sum = 0;
  u64 at = static_cast<u64>(blockIdx.x) * kStreamThreads + threadIdx.x;
  for (; at + 3 * stride < a.vectors; at += 4 * stride) {
    const uint4 v0 = a.from[at], v1 = a.from[at + stride], v2 = a.from[at + 2 * stride], v3 = a.from[at + 3 * stride];
    sum = add_words(add_words(add_words(add_words(sum, v0), v1), v2), v3);
  }
  for (; at < a.vectors; at += stride) sum = add_words(sum, a.from[at]);
  store_block_sum(sum, a.sums + blockIdx.x);
}

__global__ void __launch_bounds__(kStreamThreads) stream_write(StreamArgs a) {
  const u64 stride = static_cast<u64>(gridDim.x) * kStreamThreads;
  for (u64 at = static_cast<u64>(blockIdx.x) * kStreamThreads + threadIdx.x; at < a.vectors; at += stride) {
    const u32 word = static_cast<u32>(at) * 0x9E3779B1u;
    a.to[at] = uint4{word, word + 1u, word + 2u, word + 3u};
  }
}

__global__ void __launch_bounds__(kStreamThreads) stream_copy(StreamArgs a) {
  const u64 stride = static_cast<u64>(gridDim.x) * kStreamThreads;
  u64 at = static_cast<u64>(blockIdx.x) * kStreamThreads + threadIdx.x;
  for (; at + 3 * stride < a.vectors; at += 4 * stride) {
    const uint4 v0 = a.from[at], v1 = a.from[at + stride], v2 = a.from[at + 2 * stride], v3 = a.from[at + 3 * stride];
    a.to[at] = v0, a.to[at + stride] = v1, a.to[at + 2 * stride] = v2, a.to[at + 3 * stride] = v3;
  }
  for (; at < a.vectors; at += stride) a.to[at] = a.from[at];
}

// Word i of the buffer is the bf16 pair of hash i; no zeros, on which memory would seem faster.
__global__ void __launch_bounds__(kStreamThreads) fill_bf16(u32* to, u64 words, u32 seed, u32 exponent) {
  const u64 stride = static_cast<u64>(gridDim.x) * kStreamThreads;
  for (u64 at = static_cast<u64>(blockIdx.x) * kStreamThreads + threadIdx.x; at < words; at += stride)
    to[at] = bf16_pair(at, seed, exponent);
}

// The rows named by `rows` become NaN: whoever reads them cannot hide it.
__global__ void __launch_bounds__(kStreamThreads) poison_rows(u32* to, const int* rows, int row_words) {
  u32* row = to + static_cast<u64>(rows[blockIdx.x]) * row_words;
  for (int at = threadIdx.x; at < row_words; at += kStreamThreads) row[at] = 0x7FFF7FFFu;
}

__global__ void empty_kernel() {}

struct BlockCopyArgs {
  const uint4* from;
  uint4* to;
  const int* from_blocks;  // nullptr: block i is at i
  const int* to_blocks;
  int vectors;             // of 16 bytes a block
};

// One CTA a block, from a scattered place to a dense one or the other way; either side may be mapped host memory.
__global__ void __launch_bounds__(kStreamThreads) copy_blocks(BlockCopyArgs a) {
  const u64 from = a.from_blocks ? a.from_blocks[blockIdx.x] : blockIdx.x;
  const u64 to = a.to_blocks ? a.to_blocks[blockIdx.x] : blockIdx.x;
  for (int at = threadIdx.x; at < a.vectors; at += kStreamThreads)
    a.to[to * a.vectors + at] = a.from[from * a.vectors + at];
}

// Decode attention: one query token a request against its KV, split over CTAs, then combined.
//
// All query heads of one KV head are rows of one matrix (16 rows of an mma, whatever the group), so that every group
// reads each KV byte once, in 16-byte loads straight into registers. The order of head_dim inside a product is free:
// a lane takes eight neighbouring elements of a row as two k-steps (K), and eight neighbouring columns as one column of
// eight products (V). A fragment element of lane (g = lane / 4, c = lane % 4): A rows g and g + 8, k 2c.. and 2c + 8..;
// B k the same, column g; D rows g and g + 8, columns 2c and 2c + 1.
#pragma once
#include "kv_read.h"

struct DecodeArgs {
  KvCache cache;
  const u16* q;    // [request][row][head_dim], of which the query heads are the first rows
  int q_rows;      // rows of a request in q: the query heads, and K and V where one product made all three
  u16* out;        // [request][head][head_dim], of bf16; written here where there is one split
  float* partial;  // [request][head][split][head_dim], where there are several
  float* stats;    // [request][head][split][2]: largest score (log2), sum of weights
  int group;       // query heads a KV head, at most 16
  float scale;     // of scores, times log2(e)
};

constexpr int kDecodeThreads = 128;
constexpr int kDecodeWarps = kDecodeThreads / kWarp;
constexpr int kTile = 16;      // tokens a warp takes at once
constexpr int kRows = 16;      // of an mma
constexpr int kRowsAtOnce = 4; // rows that the warps add up in shared memory at once

KV_DEVICE uint4 load_row(const u16* cache, u64 row, int vector, bool valid) {
  return valid ? reinterpret_cast<const uint4*>(cache)[row * kRowVectors + vector] : uint4{0u, 0u, 0u, 0u};
}

KV_DEVICE u32 low_halves(u32 a, u32 b) { return (a & 0xFFFFu) | (b << 16); }
KV_DEVICE u32 high_halves(u32 a, u32 b) { return (a >> 16) | (b & 0xFFFF0000u); }

// The running softmax of one row over its quad of lanes: takes a tile's scores, leaves weights.
KV_DEVICE float rescale_row(float& best, float& total, float (&w)[4]) {
  float highest = fmaxf(fmaxf(w[0], w[1]), fmaxf(w[2], w[3]));
  highest = fmaxf(highest, shuffle_xor(highest, 1));
  highest = fmaxf(highest, shuffle_xor(highest, 2));
  highest = fmaxf(highest, best);
  const float shrink = exp2f(best - highest);
  float sum = 0.0f;
  KV_UNROLL
  for (int i = 0; i < 4; ++i) {
    w[i] = w[i] <= kLowest ? 0.0f : exp2f(w[i] - highest);
    sum += w[i];
  }
  best = highest;
  total = total * shrink + sum;
  return shrink;
}

// Grid: (KV heads, splits, requests).
template <bool kPaged>
__global__ void __launch_bounds__(kDecodeThreads, 3) decode_attention(DecodeArgs a) {
  const int head = blockIdx.x, split = blockIdx.y, splits = gridDim.y, request = blockIdx.z;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, g = lane / 4, c = lane % 4;
  const int heads = a.cache.kv_heads, context = a.cache.context[request];
  const int step = kDecodeWarps * kTile;
  const int share = ((context + splits - 1) / splits + step - 1) / step * step;
  const int first = split * share, last = first + share < context ? first + share : context;
  const u64 query = static_cast<u64>(request) * a.q_rows + head * a.group;

  u32 q[8][4];
  KV_UNROLL
  for (int j = 0; j < 4; ++j) {
    const uint4 upper = load_row(a.q, query + g, j * 4 + c, g < a.group);
    const uint4 lower = load_row(a.q, query + g + 8, j * 4 + c, g + 8 < a.group);
    q[2 * j][0] = upper.x, q[2 * j][1] = lower.x, q[2 * j][2] = upper.y, q[2 * j][3] = lower.y;
    q[2 * j + 1][0] = upper.z, q[2 * j + 1][1] = lower.z, q[2 * j + 1][2] = upper.w, q[2 * j + 1][3] = lower.w;
  }
  float out[16][4] = {};
  float best[2] = {kLowest, kLowest}, total[2] = {0.0f, 0.0f};

  const int begin = first + warp * kTile;
  int ahead = begin + lane % kTile < last ? slot_of<kPaged>(a.cache, request, begin + lane % kTile) : 0;
  KV_NO_UNROLL
  for (int tile = begin; tile < last; tile += step) {
    const int slot = ahead, following = tile + step + lane % kTile;
    ahead = following < last ? slot_of<kPaged>(a.cache, request, following) : 0;
    uint4 k[2][4], v[2][4];
    KV_UNROLL
    for (int t = 0; t < 2; ++t) {
      const u64 row = static_cast<u64>(__shfl_sync(0xFFFFFFFFu, slot, t * 8 + g)) * heads + head;
      KV_UNROLL
      for (int j = 0; j < 4; ++j) k[t][j] = load_row(a.cache.k, row, j * 4 + c, tile + t * 8 + g < last);
    }
    u64 value_rows[4];
    bool valid[4];
    KV_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int token = 2 * c + (i & 1) + (i & 2) * 4;
      value_rows[i] = static_cast<u64>(__shfl_sync(0xFFFFFFFFu, slot, token)) * heads + head;
      valid[i] = tile + token < last;
    }
    KV_UNROLL
    for (int i = 0; i < 4; ++i) v[i / 2][i % 2] = load_row(a.cache.v, value_rows[i], g, valid[i]);
    KV_UNROLL
    for (int i = 0; i < 4; ++i) v[i / 2][2 + i % 2] = load_row(a.cache.v, value_rows[i], 8 + g, valid[i]);

    float scores[2][4] = {};
    KV_UNROLL
    for (int t = 0; t < 2; ++t) {
      KV_UNROLL
      for (int j = 0; j < 4; ++j) {
        mma_bf16(scores[t], q[2 * j], k[t][j].x, k[t][j].y);
        mma_bf16(scores[t], q[2 * j + 1], k[t][j].z, k[t][j].w);
      }
    }
    float shrink[2];
    u32 weights[4];
    KV_UNROLL
    for (int half = 0; half < 2; ++half) {
      float row[4];
      KV_UNROLL
      for (int i = 0; i < 4; ++i) {
        const bool inside = tile + (i / 2) * 8 + 2 * c + i % 2 < last;
        row[i] = inside ? scores[i / 2][half * 2 + i % 2] * a.scale : kLowest;
      }
      shrink[half] = rescale_row(best[half], total[half], row);
      weights[half] = narrow_pair(row[0], row[1]);
      weights[half + 2] = narrow_pair(row[2], row[3]);
    }
    KV_UNROLL
    for (int i = 0; i < 16; ++i) {
      out[i][0] *= shrink[0], out[i][1] *= shrink[0], out[i][2] *= shrink[1], out[i][3] *= shrink[1];
    }
    KV_UNROLL
    for (int half = 0; half < 2; ++half) {
      const uint4 v0 = v[0][2 * half], v1 = v[0][2 * half + 1], v8 = v[1][2 * half], v9 = v[1][2 * half + 1];
      const u32 early0[4] = {v0.x, v0.y, v0.z, v0.w}, early1[4] = {v1.x, v1.y, v1.z, v1.w};
      const u32 late0[4] = {v8.x, v8.y, v8.z, v8.w}, late1[4] = {v9.x, v9.y, v9.z, v9.w};
      KV_UNROLL
      for (int i = 0; i < 4; ++i) {
        mma_bf16(out[half * 8 + 2 * i], weights, low_halves(early0[i], early1[i]), low_halves(late0[i], late1[i]));
        mma_bf16(out[half * 8 + 2 * i + 1], weights, high_halves(early0[i], early1[i]),
                 high_halves(late0[i], late1[i]));
      }
    }
  }

  KV_SHARED(float, warp_best, [kDecodeWarps][kRows]);
  KV_SHARED(float, warp_total, [kDecodeWarps][kRows]);
  KV_SHARED(float, rows, [kDecodeWarps][kRowsAtOnce][kHeadDim]);
  KV_UNROLL
  for (int half = 0; half < 2; ++half) {
    total[half] += shuffle_xor(total[half], 1);
    total[half] += shuffle_xor(total[half], 2);
    if (c == 0) {
      warp_best[warp][g + half * 8] = best[half];
      warp_total[warp][g + half * 8] = total[half];
    }
  }
  __syncthreads();  // before the reduction
  for (int low = 0; low < a.group; low += kRowsAtOnce) {
    KV_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int row = g + half * 8;
      if (row >= low && row < low + kRowsAtOnce) {
        KV_UNROLL
        for (int i = 0; i < 16; ++i) {
          const int column = (i / 8) * 64 + 2 * c * 8 + i % 8;
          rows[warp][row - low][column] = out[i][half * 2];
          rows[warp][row - low][column + 8] = out[i][half * 2 + 1];
        }
      }
    }
    __syncthreads();  // rows are written
    for (int row = low; row < a.group && row < low + kRowsAtOnce; ++row) {
      float highest = kLowest, sum = 0.0f, value = 0.0f;
      for (int w = 0; w < kDecodeWarps; ++w) highest = fmaxf(highest, warp_best[w][row]);
      for (int w = 0; w < kDecodeWarps; ++w) {
        const float shrink = exp2f(warp_best[w][row] - highest);
        sum += warp_total[w][row] * shrink;
        value += rows[w][row - low][threadIdx.x] * shrink;
      }
      const u64 at = (static_cast<u64>(request) * heads + head) * a.group + row, to = at * splits + split;
      value = sum > 0.0f ? value / sum : 0.0f;
      if (splits == 1) {
        a.out[at * kHeadDim + threadIdx.x] = static_cast<u16>(narrow(value));
      } else {
        a.partial[to * kHeadDim + threadIdx.x] = value;
        if (threadIdx.x == 0) a.stats[to * 2] = highest, a.stats[to * 2 + 1] = sum;
      }
    }
    __syncthreads();  // before rows are written again
  }
}

struct CombineArgs {
  const float* partial;
  const float* stats;
  u16* out;  // [request][head][head_dim]
  int splits;
};

// One CTA a (request, head): the weighted mean of what the splits found.
__global__ void __launch_bounds__(kHeadDim) combine_splits(CombineArgs a) {
  const u64 base = static_cast<u64>(blockIdx.x) * a.splits;
  float highest = kLowest, sum = 0.0f, value = 0.0f;
  for (int s = 0; s < a.splits; ++s) highest = fmaxf(highest, a.stats[(base + s) * 2]);
  for (int s = 0; s < a.splits; ++s) {
    const float weight = a.stats[(base + s) * 2 + 1] * exp2f(a.stats[(base + s) * 2] - highest);
    sum += weight;
    value += weight * a.partial[(base + s) * kHeadDim + threadIdx.x];
  }
  a.out[static_cast<u64>(blockIdx.x) * kHeadDim + threadIdx.x] = static_cast<u16>(narrow(value / sum));
}

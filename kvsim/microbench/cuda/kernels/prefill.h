// Prefill attention: causal, a chunk of query tokens behind a prefix, on tensor cores by plain mma.
//
// A CTA takes 64 queries of one head, a warp 16 of them; K and V go through shared memory in tiles of 64 tokens. This
// is the classic tiled form without asynchronous copies or warp specialisation: the best kernels of a GPU generation
// are faster, and the torch cross-check of the GPU session says by how much.
#pragma once
#include "decode.h"

struct PrefillArgs {
  const u16* q;  // [token][row][head_dim], of which the query heads are the first rows
  const u16* k;  // [prefix + token][KV head][head_dim]
  const u16* v;
  u32* out;      // [token][head][head_dim] of bf16 pairs
  int tokens;
  int prefix;
  int q_rows;    // rows of a token in q
  int heads;
  int kv_heads;
  float scale;   // of scores, times log2(e)
};

constexpr int kPrefillThreads = 128;
constexpr int kQueries = 64;
constexpr int kKeys = 64;
constexpr int kKeyPitch = 160;   // elements of a row of K: 320 bytes, so that eight lanes' 16-byte loads hit all banks
constexpr int kPairPitch = 36;   // words of a row of V transposed, in pairs of tokens: conflict-free likewise

// Grid: (tiles of queries, heads).
__global__ void __launch_bounds__(kPrefillThreads, 2) prefill_attention(PrefillArgs a) {
  KV_SHARED(u16, keys, [kKeys * kKeyPitch]);
  KV_SHARED(u32, values, [kHeadDim * kPairPitch]);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, g = lane / 4, c = lane % 4;
  const int tile = gridDim.x - 1 - blockIdx.x, head = blockIdx.y;  // the longest rows first
  const int kv_head = head / (a.heads / a.kv_heads), context = a.prefix + a.tokens;
  const int query[2] = {tile * kQueries + warp * 16 + g, tile * kQueries + warp * 16 + g + 8};

  u32 q[8][4];
  KV_UNROLL
  for (int j = 0; j < 4; ++j) {
    const uint4 upper = load_row(a.q, static_cast<u64>(query[0]) * a.q_rows + head, j * 4 + c, query[0] < a.tokens);
    const uint4 lower = load_row(a.q, static_cast<u64>(query[1]) * a.q_rows + head, j * 4 + c, query[1] < a.tokens);
    q[2 * j][0] = upper.x, q[2 * j][1] = lower.x, q[2 * j][2] = upper.y, q[2 * j][3] = lower.y;
    q[2 * j + 1][0] = upper.z, q[2 * j + 1][1] = lower.z, q[2 * j + 1][2] = upper.w, q[2 * j + 1][3] = lower.w;
  }
  float out[16][4] = {};
  float best[2] = {kLowest, kLowest}, total[2] = {0.0f, 0.0f};
  const int behind = a.prefix + (tile + 1) * kQueries;
  const int end = behind < context ? behind : context;

  KV_NO_UNROLL
  for (int low = 0; low < end; low += kKeys) {
    __syncthreads();  // before the tile is overwritten
    KV_UNROLL
    for (int i = 0; i < kKeys * kRowVectors / kPrefillThreads; ++i) {
      const int at = i * kPrefillThreads + threadIdx.x, token = at / kRowVectors, vector = at % kRowVectors;
      const u64 row = static_cast<u64>(low + token) * a.kv_heads + kv_head;
      *reinterpret_cast<uint4*>(keys + token * kKeyPitch + vector * 8) =
          load_row(a.k, row, vector, low + token < context);
    }
    KV_UNROLL
    for (int i = 0; i < kRowVectors / 4; ++i) {
      const int token = low + 2 * lane, vector = warp * (kRowVectors / 4) + i;
      const u64 row = static_cast<u64>(token) * a.kv_heads + kv_head;
      const uint4 even = load_row(a.v, row, vector, token < context);
      const uint4 odd = load_row(a.v, row + a.kv_heads, vector, token + 1 < context);
      const u32 first[4] = {even.x, even.y, even.z, even.w}, second[4] = {odd.x, odd.y, odd.z, odd.w};
      KV_UNROLL
      for (int j = 0; j < 4; ++j) {
        values[(vector * 8 + 2 * j) * kPairPitch + lane] = low_halves(first[j], second[j]);
        values[(vector * 8 + 2 * j + 1) * kPairPitch + lane] = high_halves(first[j], second[j]);
      }
    }
    __syncthreads();  // the tile is there

    KV_UNROLL
    for (int part = 0; part < kKeys / 16; ++part) {
      float scores[2][4] = {};
      KV_UNROLL
      for (int t = 0; t < 2; ++t) {
        const u16* key = keys + (part * 16 + t * 8 + g) * kKeyPitch;
        KV_UNROLL
        for (int j = 0; j < 4; ++j) {
          const uint4 k = *reinterpret_cast<const uint4*>(key + j * 32 + c * 8);
          mma_bf16(scores[t], q[2 * j], k.x, k.y);
          mma_bf16(scores[t], q[2 * j + 1], k.z, k.w);
        }
      }
      float shrink[2];
      u32 weights[4];
      KV_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int seen = a.prefix + query[half];
        float row[4];
        KV_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int token = low + part * 16 + (i / 2) * 8 + 2 * c + i % 2;
          row[i] = token <= seen && token < context ? scores[i / 2][half * 2 + i % 2] * a.scale : kLowest;
        }
        shrink[half] = rescale_row(best[half], total[half], row);
        weights[half] = narrow_pair(row[0], row[1]);
        weights[half + 2] = narrow_pair(row[2], row[3]);
      }
      KV_UNROLL
      for (int i = 0; i < 16; ++i) {
        out[i][0] *= shrink[0], out[i][1] *= shrink[0], out[i][2] *= shrink[1], out[i][3] *= shrink[1];
        const u32* pairs = values + (i * 8 + g) * kPairPitch + part * 8 + c;
        mma_bf16(out[i], weights, pairs[0], pairs[4]);
      }
    }
  }
  KV_UNROLL
  for (int half = 0; half < 2; ++half) {
    total[half] += shuffle_xor(total[half], 1);
    total[half] += shuffle_xor(total[half], 2);
    if (query[half] >= a.tokens) continue;
    u32* to = a.out + (static_cast<u64>(query[half]) * a.heads + head) * (kHeadDim / 2);
    KV_UNROLL
    for (int i = 0; i < 16; ++i)
      to[i * 4 + c] = narrow_pair(out[i][half * 2] / total[half], out[i][half * 2 + 1] / total[half]);
  }
}

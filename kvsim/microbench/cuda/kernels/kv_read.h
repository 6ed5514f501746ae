// Reading the KV of a batch and nothing else: what a block table costs, apart from any arithmetic.
#pragma once
#include "stream.h"

// Where the KV of a request lies. K and V are arrays of rows [slot][KV head][head_dim] of bf16.
struct KvCache {
  const u16* k;
  const u16* v;
  const int* table;    // paged: [request][table_stride] blocks; contiguous: [request] first slots
  const int* context;  // tokens of each request
  int table_stride;
  int block_shift;     // log2 of the block size
  int kv_heads;
};

template <bool kPaged>
KV_DEVICE int slot_of(const KvCache& cache, int request, int token) {
  if (!kPaged) return cache.table[request] + token;
  const int block = cache.table[static_cast<u64>(request) * cache.table_stride + (token >> cache.block_shift)];
  return (block << cache.block_shift) | (token & ((1 << cache.block_shift) - 1));
}

struct KvReadArgs {
  KvCache cache;
  u32* sums;  // [request][split]
};

// Grid: (splits, requests). Each CTA adds up all words of its share of the tokens.
template <bool kPaged>
__global__ void __launch_bounds__(kStreamThreads, 4) kv_read(KvReadArgs a) {
  const int request = blockIdx.y, splits = gridDim.x, context = a.cache.context[request];
  const int share = (context + splits - 1) / splits;
  const int first = blockIdx.x * share, last = first + share < context ? first + share : context;
  const int row = a.cache.kv_heads * kRowVectors;
  const int vectors = last > first ? (last - first) * row : 0;
  const uint4* k = reinterpret_cast<const uint4*>(a.cache.k);
  const uint4* v = reinterpret_cast<const uint4*>(a.cache.v);
  u32 sum = 0;
  int at = threadIdx.x;
  KV_NO_UNROLL
  for (; at + 3 * kStreamThreads < vectors; at += 4 * kStreamThreads) {
    uint4 seen[8];
    KV_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int here = at + i * kStreamThreads, token = here / row;
      const u64 from = static_cast<u64>(slot_of<kPaged>(a.cache, request, first + token)) * row + (here - token * row);
      seen[2 * i] = k[from];
      seen[2 * i + 1] = v[from];
    }
    KV_UNROLL
    for (int i = 0; i < 8; ++i) sum = add_words(sum, seen[i]);
  }
  for (; at < vectors; at += kStreamThreads) {
    const int token = at / row;
    const u64 from = static_cast<u64>(slot_of<kPaged>(a.cache, request, first + token)) * row + (at - token * row);
    sum = add_words(add_words(sum, k[from]), v[from]);
  }
  store_block_sum(sum, a.sums + static_cast<u64>(request) * splits + blockIdx.x);
}

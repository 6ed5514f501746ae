// What every kernel needs, in words that nvcc, NVRTC and g++ (under the tests' host emulator) all accept.
//
// Rules of these sources: KV_LAUNCH stands for <<<>>>, KV_SHARED for __shared__; no cuda_bf16.h (bf16 is 16 bits that
// are widened by a shift); the lanes of a warp reach every shuffle and every mma together.
#pragma once

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define KV_DEVICE static __device__ __forceinline__
#define KV_BOTH static __host__ __device__ __forceinline__
#define KV_SHARED(type, name, ...) __shared__ type name __VA_ARGS__
#define KV_UNROLL _Pragma("unroll")
#define KV_NO_UNROLL _Pragma("unroll 1")
#define KV_LAUNCH(kernel, grid, block, stream, ...) kernel<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__)
#else
#define KV_DEVICE static inline
#define KV_BOTH static inline
#define KV_UNROLL
#define KV_NO_UNROLL
#endif

constexpr int kWarp = 32;
constexpr int kHeadDim = 128;               // of every model that is measured
constexpr int kRowVectors = kHeadDim / 8;   // 16-byte vectors of one head's row
constexpr float kLowest = -1e30f;           // stands for minus infinity without making NaN of a difference

// Counter-based hash (two multiply-xorshift rounds): the host recomputes any word of a buffer from its index.
KV_BOTH u32 hash_word(u64 index, u32 seed) {
  u32 h = static_cast<u32>(index) * 0x9E3779B1u + static_cast<u32>(index >> 32) * 0x85EBCA77u + seed * 0xC2B2AE3Du;
  h ^= h >> 16;
  h *= 0x7FEB352Du;
  h ^= h >> 15;
  h *= 0x846CA68Bu;
  return h ^ (h >> 16);
}

// 16 random bits as a finite bf16: sign, one of four exponents up to `exponent`, seven bits of mantissa.
KV_BOTH u32 bf16_bits(u32 random, u32 exponent) {
  return (random & 0x8000u) | ((exponent - ((random >> 8) & 3u)) << 7) | (random & 0x7Fu);
}

// Two neighbouring bf16 elements, the lower half first.
KV_BOTH u32 bf16_pair(u64 word, u32 seed, u32 exponent) {
  const u32 h = hash_word(word, seed);
  return bf16_bits(h & 0xFFFFu, exponent) | (bf16_bits(h >> 16, exponent) << 16);
}

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
KV_DEVICE float bits_to_float(u32 bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
KV_DEVICE u32 float_to_bits(float value) {
  u32 bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}
#else
KV_DEVICE float bits_to_float(u32 bits) { return __uint_as_float(bits); }
KV_DEVICE u32 float_to_bits(float value) { return __float_as_uint(value); }
#endif

KV_DEVICE float widen(u32 bf16) { return bits_to_float(bf16 << 16); }

// Round to nearest even; finite values only.
KV_DEVICE u32 narrow(float value) {
  const u32 bits = float_to_bits(value);
  return (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
}

KV_DEVICE u32 narrow_pair(float low, float high) { return narrow(low) | (narrow(high) << 16); }

KV_DEVICE float shuffle_xor(float value, int mask) { return __shfl_xor_sync(0xFFFFFFFFu, value, mask); }
KV_DEVICE u32 shuffle_xor(u32 value, int mask) { return __shfl_xor_sync(0xFFFFFFFFu, value, mask); }

// d += a b: a warp's 16x16 by 16x8 bf16 product with float sums (PTX mma.m16n8k16; the emulator has its own).
KV_DEVICE void mma_bf16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  emu::mma_m16n8k16(d, a, b0, b1);
#endif
}

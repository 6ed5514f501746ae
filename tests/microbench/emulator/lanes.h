// Runs the threads of a CUDA block: as fibers, in an order reshuffled at every barrier, or (EMU_THREADS, for
// ThreadSanitizer) one OS thread each. A warp operation is a barrier of the warp and an exchange of cells.
#pragma once
#include <pthread.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

inline thread_local uint3 threadIdx, blockIdx;
inline thread_local dim3 blockDim, gridDim;

namespace emu {

constexpr int kLanes = 32;
constexpr size_t kStack = 256 << 10;
constexpr size_t kCell = 48;  // bytes that a lane can show the others at once

[[noreturn]] inline void die(const char* what) {
  std::fprintf(stderr, "emulator: %s\n", what);
  std::abort();
}

struct Warp {
  alignas(16) unsigned char cells[2][kLanes][kCell];
  pthread_barrier_t barrier;  // of EMU_THREADS
};

// Shared memory of one block: one heap array a declaration, so that AddressSanitizer knows its ends.
class Shared {
 public:
  void* find(const void* key, size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& found = arrays_[key];
    if (!found) {
      found.reset(static_cast<unsigned char*>(std::aligned_alloc(16, (bytes + 15) / 16 * 16)));
      std::memset(found.get(), 0xFF, bytes);  // what an earlier block left would hide a missing barrier
    }
    return found.get();
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::map<const void*, std::unique_ptr<unsigned char, Free>> arrays_;
  std::mutex mutex_;
};

enum class Wait { none, warp, block, done };

struct Lane {
  int index = 0;
  unsigned operations = 0;  // of the warp, whose cells alternate
  Wait wait = Wait::none;
};

// A stack and where it stands; it runs lane after lane, block after block.
struct Fiber {
  ucontext_t context;
  void* jump[5];  // of __builtin_setjmp
  bool entered = false;
  void* fake_stack = nullptr;
  std::unique_ptr<char[]> stack{new char[kStack]};
};

struct Block {
  std::vector<Lane> lanes;
  std::vector<Warp> warps;
  Shared shared;
  std::function<void()> body;
  pthread_barrier_t barrier;  // of EMU_THREADS
};

inline thread_local Block* block = nullptr;
inline thread_local Lane* lane = nullptr;

#if defined(EMU_THREADS)
inline void wait_for(Wait what) {
  pthread_barrier_wait(what == Wait::block ? &block->barrier : &block->warps[lane->index / kLanes].barrier);
}
#else
struct Scheduler {
  ucontext_t context;
  void* jump[5];
  const void* bottom = nullptr;
  size_t size = 0;
  std::vector<std::unique_ptr<Fiber>> fibers;  // number i runs lane i
};
inline Scheduler scheduler;
inline Fiber& fiber() { return *scheduler.fibers[size_t(lane->index)]; }

#if defined(__SANITIZE_ADDRESS__)
inline void wait_for(Wait what) {
  Fiber& self = fiber();
  lane->wait = what;
  __sanitizer_start_switch_fiber(&self.fake_stack, scheduler.bottom, scheduler.size);
  swapcontext(&self.context, &scheduler.context);
  __sanitizer_finish_switch_fiber(self.fake_stack, &scheduler.bottom, &scheduler.size);
}
inline void enter(Fiber& next) {
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, next.stack.get(), kStack);
  swapcontext(&scheduler.context, &next.context);
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
}
#else
// The compiler's own setjmp after the first entry: swapcontext asks the kernel for the signal mask each time.
// It must not jump out of the function that set its own mark.
[[gnu::noinline, noreturn]] inline void jump_to(void** mark) { __builtin_longjmp(mark, 1); }
[[gnu::noinline]] inline void wait_for(Wait what) {
  lane->wait = what;
  if (__builtin_setjmp(fiber().jump) == 0) jump_to(scheduler.jump);
}
[[gnu::noinline]] inline void enter(Fiber& next) {
  if (__builtin_setjmp(scheduler.jump) != 0) return;
  if (next.entered) jump_to(next.jump);
  next.entered = true;
  swapcontext(&scheduler.context, &next.context);
}
#endif

inline void lane_main() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &scheduler.bottom, &scheduler.size);
#endif
  for (;;) {
    block->body();
    wait_for(Wait::done);
  }
}

// Lets those go on for whom nobody is missing: warps whose lanes are all at their barrier (each with a chance of one
// half, so that warps drift apart as they do on a GPU), or the block.
inline bool release(Block& b, std::mt19937& random) {
  bool released = false, held = false;
  size_t at_block = 0, done = 0;
  for (size_t low = 0; low < b.lanes.size(); low += kLanes) {
    const size_t high = std::min(low + kLanes, b.lanes.size());
    size_t at_warp = 0, ended = 0;
    for (size_t i = low; i < high; ++i) {
      at_warp += b.lanes[i].wait == Wait::warp;
      at_block += b.lanes[i].wait == Wait::block;
      ended += b.lanes[i].wait == Wait::done;
    }
    done += ended;
    if (at_warp != high - low) continue;
    if (random() % 2) {
      held = true;
      continue;
    }
    for (size_t i = low; i < high; ++i) b.lanes[i].wait = Wait::none;
    released = true;
  }
  if (held && !released) return release(b, random);
  if (released || done == b.lanes.size()) return released;
  if (at_block != b.lanes.size()) die("mismatched barriers: some threads of a block or warp do not come");
  for (Lane& one : b.lanes) one.wait = Wait::none;
  return true;
}
#endif

inline void run_block(dim3 grid, dim3 threads, uint3 index, const std::function<void()>& body, std::mt19937& random) {
  Block b;
  const size_t count = size_t(threads.x) * threads.y * threads.z;
  b.lanes.resize(count);
  b.warps.resize((count + kLanes - 1) / kLanes);
  b.body = body;
  const auto identify = [&](size_t i) {
    block = &b, lane = &b.lanes[i], lane->index = int(i);
    blockIdx = index, gridDim = grid, blockDim = threads;
    threadIdx = {unsigned(i), 0, 0};
  };
  if (threads.y != 1 || threads.z != 1) die("blocks of one dimension alone are emulated");
#if defined(EMU_THREADS)
  (void)random;
  pthread_barrier_init(&b.barrier, nullptr, unsigned(count));
  for (size_t w = 0; w < b.warps.size(); ++w)
    pthread_barrier_init(&b.warps[w].barrier, nullptr, unsigned(std::min<size_t>(kLanes, count - w * kLanes)));
  std::vector<std::thread> all;
  for (size_t i = 0; i < count; ++i) all.emplace_back([&, i] { identify(i), b.body(); });
  for (std::thread& one : all) one.join();
#else
  while (scheduler.fibers.size() < count) {
    Fiber& made = *scheduler.fibers.emplace_back(new Fiber);
    getcontext(&made.context);
    made.context.uc_stack.ss_sp = made.stack.get();
    made.context.uc_stack.ss_size = kStack;
    made.context.uc_link = nullptr;
    makecontext(&made.context, lane_main, 0);
  }
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  do {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i : order)
      if (b.lanes[i].wait == Wait::none) identify(i), enter(*scheduler.fibers[i]);
  } while (release(b, random));
#endif
}

// Shows `mine` to the warp; returns the cells of all its lanes, good until this lane's next operation but one.
template <class T>
const unsigned char (*publish(const T& mine))[kCell] {
  static_assert(sizeof(T) <= kCell, "a cell is too small");
  auto& cells = block->warps[lane->index / kLanes].cells[lane->operations++ % 2];
  std::memcpy(cells[lane->index % kLanes], &mine, sizeof(T));
  wait_for(Wait::warp);
  return cells;
}

template <class T>
T shuffle(T mine, int from) {
  const auto cells = publish(mine);
  T other;
  std::memcpy(&other, cells[from & (kLanes - 1)], sizeof(T));
  return other;
}

inline float bf16(unsigned bits) {
  float value;
  const unsigned wide = bits << 16;
  std::memcpy(&value, &wide, 4);
  return value;
}

// PTX mma.m16n8k16, row by column, as its specification lays the fragments out over the lanes.
inline void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  struct Fragment {
    float a[8], b[4];  // word by word, the lower half first
  } mine;
  for (int i = 0; i < 8; ++i) mine.a[i] = bf16(i % 2 ? a[i / 2] >> 16 : a[i / 2] & 0xFFFFu);
  for (int i = 0; i < 4; ++i) mine.b[i] = bf16(i % 2 ? (i / 2 ? b1 : b0) >> 16 : (i / 2 ? b1 : b0) & 0xFFFFu);
  const auto cells = publish(mine);
  const int g = lane->index % kLanes / 4, c = lane->index % 4;
  const auto shown = [&](int holder) { return reinterpret_cast<const Fragment*>(cells[holder]); };
  for (int i = 0; i < 4; ++i) {
    const int lower = i / 2, column = 2 * c + i % 2;
    double sum = d[i];
    for (int k = 0; k < 16; ++k) {
      const int pair = k % 8 / 2, high = k / 8;
      sum += double(shown(g * 4 + pair)->a[2 * (lower + 2 * high) + k % 2]) * shown(column * 4 + pair)->b[2 * high + k % 2];
    }
    d[i] = float(sum);
  }
}

}  // namespace emu

inline void __syncthreads() { emu::wait_for(emu::Wait::block); }
template <class T>
T __shfl_sync(unsigned, T value, int from) {
  return emu::shuffle(value, from);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emu::shuffle(value, (emu::lane->index % emu::kLanes) ^ mask);
}

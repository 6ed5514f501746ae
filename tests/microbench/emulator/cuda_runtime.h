// Stands in for the CUDA runtime's header when g++ compiles the harness for the tests: the same words, done on the CPU.
#pragma once
#include <math.h>
#include <time.h>

#include <cstddef>
#include <tuple>

#include "machine.h"

#define __global__
#define __launch_bounds__(...)
#define KV_EMULATED 1
#define KV_SHARED(type, name, ...)    \
  using name##_type = type __VA_ARGS__; \
  name##_type& name = *static_cast<name##_type*>(emu::block->shared.find([] { static char key; return &key; }(), sizeof(name##_type)))
#define KV_LAUNCH(kernel, grid, threads, stream, ...) \
  emu::launch(kernel, dim3(grid), dim3(threads)__VA_OPT__(, ) __VA_ARGS__)
// The host's clock is the machine's.
#define clock_gettime(id, to) emu_clock_gettime(to)
inline int emu_clock_gettime(timespec* to) {
  const double now = emu::machine().now_s;
  to->tv_sec = time_t(now);
  to->tv_nsec = long((now - double(to->tv_sec)) * 1e9);
  return 0;
}
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

#include "runtime_api.h"

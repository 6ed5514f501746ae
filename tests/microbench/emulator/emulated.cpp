// The whole harness on the CPU: its sources unchanged, under the emulator's runtime.
#include "cuda_runtime.h"
#include "costs.h"
#include "microbench.cu"

// For the fake cuBLAS, which the harness finds by dlopen as it finds the real one.
extern "C" void emu_submit(const std::function<void()>* work, double seconds) { emu::submit(*work, seconds); }
extern "C" double emu_parameter(const char* name, double otherwise) { return emu::machine().get(name, otherwise); }

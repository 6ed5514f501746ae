// A CUDA runtime for the program that nvcc built, on a machine without a GPU: memory is the host's, kernels are counted
// by name (into the file FAKE_LAUNCHES names) and not run. So no output is ever written, and none may be verified.
#include <driver_types.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {
struct Kernels {
  std::map<const void*, std::string> names;
  std::map<std::string, int> launches;
  ~Kernels() {
    const char* path = std::getenv("FAKE_LAUNCHES");
    std::FILE* file = path ? std::fopen(path, "w") : nullptr;
    if (!file) return;
    for (const auto& [name, count] : launches) std::fprintf(file, "%s %d\n", name.c_str(), count);
    std::fclose(file);
  }
};
Kernels& kernels() {
  static Kernels all;
  return all;
}
int something(void** to) { return *to = std::malloc(1), 0; }
}  // namespace

// Calls that do nothing, whatever they are given.
#define NOTHING(name) \
  int name() { return 0; }

extern "C" {
void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  kernels();
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, void*, void*, int*) {
  kernels().names[host] = name;
}
int __cudaGetKernel(const void** kernel, const void* host) { return *kernel = host, 0; }
int __cudaLaunchKernel(const void* kernel, ...) { return ++kernels().launches[kernels().names.at(kernel)], 0; }
unsigned __cudaPushCallConfiguration() { return 0; }
NOTHING(__cudaPopCallConfiguration)

int cudaGetDeviceCount(int* count) { return *count = 1, 0; }
int cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {};
  std::strcpy(p->name, "fake");
  p->totalGlobalMem = size_t{1} << 30, p->major = 9, p->multiProcessorCount = 4, p->l2CacheSize = 32 << 10;
  return 0;
}
int cudaMemGetInfo(size_t* free, size_t* total) { return *free = *total = size_t{1} << 30, 0; }
int cudaDriverGetVersion(int* v) { return *v = 13000, 0; }
int cudaRuntimeGetVersion(int* v) { return *v = 13000, 0; }
const char* cudaGetErrorString(int) { return "an error of the fake runtime"; }
int cudaMalloc(void** to, size_t bytes) { return *to = std::malloc(bytes), std::memset(*to, 0xFF, bytes), 0; }
int cudaMallocAsync(void** to, size_t bytes, void*) { return cudaMalloc(to, bytes); }
int cudaHostAlloc(void** to, size_t bytes, unsigned) { return cudaMalloc(to, bytes); }
int cudaHostGetDevicePointer(void** to, void* from, unsigned) { return *to = from, 0; }
int cudaFree(void* p) { return std::free(p), 0; }
int cudaFreeAsync(void* p, void*) { return std::free(p), 0; }
int cudaFreeHost(void* p) { return std::free(p), 0; }
int cudaMemcpy(void* to, const void* from, size_t bytes, int) { return std::memcpy(to, from, bytes), 0; }
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int, void*) { return std::memcpy(to, from, bytes), 0; }
int cudaMemsetAsync(void* to, int value, size_t bytes, void*) { return std::memset(to, value, bytes), 0; }
int cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes, size_t count, void*, size_t*, size_t, void*) {
  for (size_t i = 0; i < count; ++i) std::memcpy(to[i], from[i], sizes[i]);
  return 0;
}
int cudaEventElapsedTime(float* ms, void*, void*) { return *ms = 1.0f, 0; }
int cudaEventCreate(void** to) { return something(to); }
int cudaStreamCreateWithFlags(void** to, unsigned) { return something(to); }
int cudaStreamEndCapture(void*, void** to) { return something(to); }
int cudaGraphInstantiate(void** to, void*, unsigned long long) { return something(to); }
int cudaDeviceGetDefaultMemPool(void** to, int) { return something(to); }
int cudaMemPoolGetAttribute(void*, int, void* value) { return std::memset(value, 0, 8), 0; }
int cudaGetDriverEntryPointByVersion() { return 1; }
NOTHING(cudaDeviceSynchronize)
NOTHING(cudaEventDestroy)
NOTHING(cudaEventRecord)
NOTHING(cudaEventSynchronize)
NOTHING(cudaGetLastError)
NOTHING(cudaGraphDestroy)
NOTHING(cudaGraphExecDestroy)
NOTHING(cudaGraphLaunch)
NOTHING(cudaMemPoolSetAttribute)
NOTHING(cudaMemPoolTrimTo)
NOTHING(cudaStreamBeginCapture)
NOTHING(cudaStreamDestroy)
NOTHING(cudaStreamSynchronize)
NOTHING(cudaStreamWaitEvent)
}

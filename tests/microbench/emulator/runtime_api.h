// The calls of the CUDA runtime that the harness uses. Everything happens at once; only the clock goes on.
#pragma once
#include "machine.h"

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInvalidConfiguration = 9,
                   cudaErrorInsufficientDriver = 35, cudaErrorLaunchFailure = 719 };
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaDeviceAttr { cudaDevAttrClockRate = 13, cudaDevAttrMemoryClockRate = 36 };
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4, cudaMemPoolAttrReservedMemCurrent = 5, cudaMemPoolAttrUsedMemCurrent = 7 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0 };
enum cudaMemcpySrcAccessOrder { cudaMemcpySrcAccessOrderInvalid, cudaMemcpySrcAccessOrderStream };
struct cudaMemLocation { int type, id; };
struct cudaMemcpyAttributes { cudaMemcpySrcAccessOrder srcAccessOrder; cudaMemLocation srcLocHint, dstLocHint; unsigned flags; };
constexpr unsigned cudaHostAllocMapped = 2, cudaStreamNonBlocking = 1, cudaEnableDefault = 0;
struct emuStream {};
struct emuEvent { double at_s = 0; };
struct emuGraph { std::vector<emu::Node> nodes; };
typedef emuStream* cudaStream_t;
typedef emuEvent* cudaEvent_t;
typedef emuGraph* cudaGraph_t;
typedef emuGraph* cudaGraphExec_t;
typedef int* cudaMemPool_t;
struct cudaUUID_t { char bytes[16]; };
struct cudaDeviceProp { char name[256]; cudaUUID_t uuid; size_t totalGlobalMem; int major, minor, multiProcessorCount, l2CacheSize, ECCEnabled, pciBusID, pciDeviceID, pciDomainID; };

#define EMU_CALL(call, code) \
  if (emu::machine().fails(#call)) return cudaError_t(emu::last_error = code)

inline const char* cudaGetErrorString(cudaError_t e) {
  switch (int(e)) {
    case 0: return "no error";
    case 2: return "out of memory";
    case 35: return "CUDA driver version is insufficient for CUDA runtime version";
    case 719: return "unspecified launch failure";
    default: return "emulated error";
  }
}
inline cudaError_t cudaPeekAtLastError() { return cudaError_t(emu::last_error); }
inline cudaError_t cudaGetLastError() {
  const int error = emu::last_error;
  if (error != 719) emu::last_error = 0;  // a launch failure stays: the context is lost
  return cudaError_t(error);
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  if (const char* devices = std::getenv("EMU_DEVICES"); devices && !std::atoi(devices)) return cudaErrorInsufficientDriver;
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaDriverGetVersion(int* v) { return *v = 13000, cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* v) { return *v = 13000, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr, int) { return *v = 1000000, cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {};
  std::snprintf(p->name, sizeof p->name, "emulated GPU");
  p->totalGlobalMem = size_t(emu::machine().get("mem_bytes", double(256 << 20)));
  p->major = 9, p->multiProcessorCount = int(emu::machine().get("sm_count", 4));
  p->l2CacheSize = int(emu::machine().get("l2_bytes", 32 << 10));
  return cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = size_t(emu::machine().get("mem_bytes", double(256 << 20)));
  *free = *total - emu::machine().allocated;
  return cudaSuccess;
}

inline cudaError_t cudaDeviceSynchronize() { EMU_CALL(cudaDeviceSynchronize, 719); return cudaError_t(emu::last_error == 719 ? 719 : 0); }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { EMU_CALL(cudaStreamSynchronize, 719); return cudaDeviceSynchronize(); }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { *s = new emuStream; return cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t s) { delete s; return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* e) { *e = new emuEvent; return cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t e) { delete e; return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t) { EMU_CALL(cudaEventRecord, 719); e->at_s = emu::machine().now_s; return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaDeviceSynchronize(); }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) { *ms = float((b->at_s - a->at_s) * 1e3); return cudaSuccess; }

namespace emu {
inline void* allocate(size_t bytes) {
  Machine& m = machine();
  if (m.allocated + bytes > size_t(m.get("mem_bytes", double(256 << 20)))) return nullptr;
  void* p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
#if defined(__SANITIZE_ADDRESS__)
  std::free(p), p = nullptr;
  if (posix_memalign(&p, 256, bytes)) p = nullptr;  // to the byte, so that reads past the end are seen
#endif
  if (!p) return nullptr;
  if (!m.dry) std::memset(p, 0xFF, bytes);
  m.sizes[p] = bytes, m.allocated += bytes;
  return p;
}
inline double alloc_s(const char* what, size_t bytes) {
  return machine().get(std::string(what) + "_s", 1e-5) + double(bytes) * machine().get(std::string(what) + "_s_per_byte", 0);
}
}  // namespace emu

template <class T>
cudaError_t cudaMalloc(T** to, size_t bytes) {
  EMU_CALL(cudaMalloc, 2);
  emu::machine().now_s += emu::alloc_s("malloc", bytes);
  void* p = emu::allocate(bytes);
  if (!p) return cudaError_t(emu::last_error = 2);
  *to = static_cast<T*>(p);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* p) {
  EMU_CALL(cudaFree, 719);
  if (!p) return cudaSuccess;
  if (!emu::machine().sizes.count(p)) return cudaErrorInvalidValue;
  emu::machine().now_s += emu::alloc_s("free", emu::machine().sizes[p]);
  emu::machine().allocated -= emu::machine().sizes[p];
  emu::machine().sizes.erase(p);
  std::free(p);
  return cudaSuccess;
}
template <class T>
cudaError_t cudaHostAlloc(T** to, size_t bytes, unsigned) {
  EMU_CALL(cudaHostAlloc, 2);
  *to = static_cast<T*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  emu::machine().pinned[reinterpret_cast<const char*>(*to)] = bytes;
  return *to ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaFreeHost(void* p) {
  emu::machine().pinned.erase(static_cast<const char*>(p));
  std::free(p);
  return cudaSuccess;
}
template <class T>
cudaError_t cudaHostGetDevicePointer(T** to, void* p, unsigned) { *to = static_cast<T*>(p); return cudaSuccess; }

// The stream-ordered pool: sizes are rounded to 512 bytes; what is freed stays reserved up to the release threshold.
inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) { static int one; *pool = &one; return cudaSuccess; }
inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t keep) {
  emu::Machine& m = emu::machine();
  for (auto it = m.pooled.begin(); it != m.pooled.end() && m.pool_reserved > keep;) {
    m.pool_reserved -= it->second;
    cudaFree(it->first);
    it = m.pooled.erase(it);
  }
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* v) {
  emu::machine().pool_threshold = size_t(*static_cast<uint64_t*>(v));
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr what, void* v) {
  *static_cast<uint64_t*>(v) = what == cudaMemPoolAttrUsedMemCurrent ? emu::machine().pool_used : emu::machine().pool_reserved;
  return cudaSuccess;
}
template <class T>
cudaError_t cudaMallocAsync(T** to, size_t bytes, cudaStream_t) {
  EMU_CALL(cudaMallocAsync, 2);
  emu::Machine& m = emu::machine();
  bytes = (bytes + 511) / 512 * 512;
  void* p = nullptr;
  for (auto it = m.pooled.begin(); it != m.pooled.end(); ++it)
    if (it->second == bytes) { p = it->first; m.pooled.erase(it); break; }
  m.now_s += emu::alloc_s(p ? "pool_warm" : "pool_cold", bytes);
  if (!p) {
    p = emu::allocate(bytes);
    if (!p) return cudaError_t(emu::last_error = 2);
    m.pool_reserved += bytes;
  }
  m.pool_used += bytes;
  *to = static_cast<T*>(p);
  return cudaSuccess;
}
inline cudaError_t cudaFreeAsync(void* p, cudaStream_t) {
  EMU_CALL(cudaFreeAsync, 719);
  emu::Machine& m = emu::machine();
  if (!m.sizes.count(p)) return cudaErrorInvalidValue;
  m.pool_used -= m.sizes[p];
  m.pooled[p] = m.sizes[p];
  if (m.pool_reserved - m.pool_used > m.pool_threshold) cudaMemPoolTrimTo(nullptr, m.pool_used);
  return cudaSuccess;
}

#include "copies.h"

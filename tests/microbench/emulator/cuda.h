// The driver's virtual memory calls, as far as the harness maps pages with them.
#pragma once
#include <sys/mman.h>

#include "machine.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
constexpr CUresult CUDA_SUCCESS = 0;
enum CUmemAllocationType { CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum CUmemLocationType { CU_MEM_LOCATION_TYPE_DEVICE = 1 };
enum CUmemAccess_flags { CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 };
enum CUmemAllocationGranularity_flags { CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0 };
struct CUmemLocation { CUmemLocationType type; int id; };
struct CUmemAllocationProp { CUmemAllocationType type; int requestedHandleTypes; CUmemLocation location; };
struct CUmemAccessDesc { CUmemLocation location; CUmemAccess_flags flags; };

namespace emu {
inline double vmm_s(const char* call) { return machine().get(std::string(call) + "_s", 1e-6); }
inline void* driver_entry(const std::string& name) {
  using Handle = CUmemGenericAllocationHandle;
  if (name == "cuMemGetAllocationGranularity")
    return reinterpret_cast<void*>(+[](size_t* g, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) -> CUresult {
      return *g = size_t(machine().get("granularity_bytes", 2 << 20)), 0;
    });
  if (name == "cuMemAddressReserve")
    return reinterpret_cast<void*>(+[](CUdeviceptr* p, size_t n, size_t, CUdeviceptr, unsigned long long) -> CUresult {
      *p = reinterpret_cast<CUdeviceptr>(mmap(nullptr, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
      return 0;
    });
  if (name == "cuMemAddressFree")
    return reinterpret_cast<void*>(+[](CUdeviceptr p, size_t n) -> CUresult { return munmap(reinterpret_cast<void*>(p), n); });
  if (name == "cuMemCreate")
    return reinterpret_cast<void*>(+[](Handle* h, size_t, const CUmemAllocationProp*, unsigned long long) -> CUresult {
      return *h = 1, machine().now_s += vmm_s("vmm_create"), 0;
    });
  if (name == "cuMemRelease")
    return reinterpret_cast<void*>(+[](Handle) -> CUresult { return machine().now_s += vmm_s("vmm_release"), 0; });
  if (name == "cuMemMap")
    return reinterpret_cast<void*>(+[](CUdeviceptr, size_t, size_t, Handle, unsigned long long) -> CUresult {
      return machine().now_s += vmm_s("vmm_map"), 0;
    });
  if (name == "cuMemSetAccess")
    return reinterpret_cast<void*>(+[](CUdeviceptr p, size_t n, const CUmemAccessDesc*, size_t) -> CUresult {
      machine().now_s += vmm_s("vmm_access");
      return mprotect(reinterpret_cast<void*>(p), n, PROT_READ | PROT_WRITE);
    });
  if (name == "cuMemUnmap")
    return reinterpret_cast<void*>(+[](CUdeviceptr p, size_t n) -> CUresult {
      machine().now_s += vmm_s("vmm_unmap");
      return mprotect(reinterpret_cast<void*>(p), n, PROT_NONE);
    });
  return nullptr;
}
}  // namespace emu

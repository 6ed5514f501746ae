// Pages mapped into reserved addresses by the driver's virtual memory calls, which the runtime finds for us: nothing
// links against the driver.
#pragma once
#include <cuda.h>

#include "../harness/api.h"
#include "../harness/plan.h"

constexpr size_t kMapChunk = size_t{2} << 20;  // the granularity of every device that is known

class Driver {
 public:
  Driver() {
    find(granularity, "cuMemGetAllocationGranularity");
    find(reserve, "cuMemAddressReserve");
    find(unreserve, "cuMemAddressFree");
    find(create, "cuMemCreate");
    find(release, "cuMemRelease");
    find(map, "cuMemMap");
    find(access, "cuMemSetAccess");
    find(unmap, "cuMemUnmap");
  }
  static void status(CUresult code, const char* call) {
    if (code != CUDA_SUCCESS) throw Failure{call, static_cast<int>(code), "driver error " + std::to_string(code)};
  }
  CUresult (*granularity)(size_t*, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) = nullptr;
  CUresult (*reserve)(CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long) = nullptr;
  CUresult (*unreserve)(CUdeviceptr, size_t) = nullptr;
  CUresult (*create)(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, unsigned long long) = nullptr;
  CUresult (*release)(CUmemGenericAllocationHandle) = nullptr;
  CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) = nullptr;
  CUresult (*access)(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) = nullptr;
  CUresult (*unmap)(CUdeviceptr, size_t) = nullptr;

 private:
  template <class F>
  static void find(F& function, const char* name) {
    constexpr unsigned kVersion = 12000;  // of the calls' signatures
    cudaDriverEntryPointQueryResult found{};
    void* address = nullptr;
    const cudaError_t code = cudaGetDriverEntryPointByVersion(name, &address, kVersion, cudaEnableDefault, &found);
    if (code != cudaSuccess || found != cudaDriverEntryPointSuccess || !address) {
      cudaGetLastError();
      throw Absent{std::string("the driver has no ") + name};
    }
    function = reinterpret_cast<F>(address);
  }
};

// An address range of `chunks` pages that can be backed by memory and not, again and again.
class MappedPages {
 public:
  explicit MappedPages(int chunks) : chunks_(chunks) {
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    size_t granularity = 0;
    Driver::status(driver_.granularity(&granularity, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                   "cuMemGetAllocationGranularity");
    if (kMapChunk % granularity) throw Absent{"pages are of " + std::to_string(granularity) + " bytes"};
    Driver::status(driver_.reserve(&base_, bytes(), 0, 0, 0), "cuMemAddressReserve");
  }
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;
  ~MappedPages() { driver_.unreserve(base_, bytes()); }

  void map() {
    for (int i = 0; i < chunks_; ++i) {
      CUmemGenericAllocationHandle handle = 0;
      Driver::status(driver_.create(&handle, kMapChunk, &properties_, 0), "cuMemCreate");
      Driver::status(driver_.map(base_ + i * kMapChunk, kMapChunk, 0, handle, 0), "cuMemMap");
      handles_.push_back(handle);
    }
    const CUmemAccessDesc access{properties_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    Driver::status(driver_.access(base_, bytes(), &access, 1), "cuMemSetAccess");
  }
  void unmap() {
    Driver::status(driver_.unmap(base_, bytes()), "cuMemUnmap");
    for (const CUmemGenericAllocationHandle handle : handles_) Driver::status(driver_.release(handle), "cuMemRelease");
    handles_.clear();
  }
  unsigned char* data() const { return reinterpret_cast<unsigned char*>(base_); }
  size_t bytes() const { return chunks_ * kMapChunk; }

  // Mapped as long as this lives.
  class Mapping {
   public:
    explicit Mapping(MappedPages& pages) : pages_(pages) { pages.map(); }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() {
      try {
        pages_.unmap();
      } catch (const Failure&) {  // the failure that unwinds matters more
      }
    }

   private:
    MappedPages& pages_;
  };

 private:
  Driver driver_;
  int chunks_;
  CUmemAllocationProp properties_{};
  CUdeviceptr base_ = 0;
  std::vector<CUmemGenericAllocationHandle> handles_;
};

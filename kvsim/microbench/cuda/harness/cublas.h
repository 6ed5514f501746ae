// cuBLAS, found at run time: built without its headers, and absent without harm.
#pragma once
#include <dlfcn.h>

#include <string>
#include <vector>

#include "api.h"

class Cublas {
 public:
  // Tries the names in order; `path` may be empty.
  void open(const std::string& path) {
    std::vector<std::string> names = {"libcublas.so.13", "libcublas.so.12"};
    if (!path.empty()) names = {path};
    for (const std::string& name : names)
      if ((library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL))) break;
    if (!library_) {
      const char* why = dlerror();
      reason_ = why ? why : "libcublas.so not found";
      return;
    }
    create_ = reinterpret_cast<Create>(dlsym(library_, "cublasCreate_v2"));
    set_stream_ = reinterpret_cast<SetStream>(dlsym(library_, "cublasSetStream_v2"));
    gemm_ = reinterpret_cast<Gemm>(dlsym(library_, "cublasGemmEx"));
    const auto version = reinterpret_cast<Version>(dlsym(library_, "cublasGetVersion_v2"));
    workspace_ = reinterpret_cast<Workspace>(dlsym(library_, "cublasSetWorkspace_v2"));
    if (!create_ || !set_stream_ || !gemm_ || !version || !workspace_) {
      reason_ = "libcublas.so lacks a function that is needed";
      return;
    }
    if (const int code = create_(&handle_)) {
      reason_ = "cublasCreate returned " + std::to_string(code);
      return;
    }
    version(handle_, &version_);
  }
  bool usable() const { return reason_.empty(); }
  const std::string& reason() const { return reason_; }
  int version() const { return version_; }

  // To be called once: with a workspace of its own it allocates nothing while a stream is captured.
  void use(cudaStream_t stream) {
    status(set_stream_(handle_, stream), "cublasSetStream");
    space_ = Device<unsigned char>(size_t{64} << 20);
    status(workspace_(handle_, space_.data(), space_.size()), "cublasSetWorkspace");
  }

  // y = x wT with rows x [m][k], w [n][k], y [m][n], all bf16, sums in float. cuBLAS counts by columns.
  void gemm(int m, int n, int k, const void* x, const void* w, void* y) const {
    const float one = 1.0f, zero = 0.0f;
    status(gemm_(handle_, kTranspose, kPlain, n, m, k, &one, w, kBf16, k, x, kBf16, k, &zero, y, kBf16, n, kFloatSums,
                 kDefault),
           "cublasGemmEx");
  }

 private:
  using Create = int (*)(void**);
  using SetStream = int (*)(void*, cudaStream_t);
  using Version = int (*)(void*, int*);
  using Workspace = int (*)(void*, void*, size_t);
  using Gemm = int (*)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
                       const void*, void*, int, int, int, int);
  // cublas_api.h and library_types.h: CUBLAS_OP_T, _OP_N, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT.
  static constexpr int kTranspose = 1, kPlain = 0, kBf16 = 14, kFloatSums = 68, kDefault = -1;

  static void status(int code, const char* call) {
    if (code) throw Failure{call, code, "cuBLAS status " + std::to_string(code)};
  }

  void* library_ = nullptr;
  void* handle_ = nullptr;
  Create create_ = nullptr;
  SetStream set_stream_ = nullptr;
  Gemm gemm_ = nullptr;
  Workspace workspace_ = nullptr;
  Device<unsigned char> space_;
  int version_ = 0;
  std::string reason_;
};

// The CUDA runtime with every return code looked at, and memory that frees itself.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

struct Failure {
  std::string call;
  int code;
  std::string message;
};

inline void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // what does not stay is cleared, so that the next point is not blamed for it
  throw Failure{call, static_cast<int>(code), cudaGetErrorString(code)};
}
#define CUDA(call, ...) check(call(__VA_ARGS__), #call)

// A launch returns nothing: its refusal is asked for.
#define LAUNCH(kernel, grid, block, stream, ...)        \
  do {                                                  \
    KV_LAUNCH(kernel, grid, block, stream, __VA_ARGS__); \
    check(cudaGetLastError(), "launch of " #kernel);    \
  } while (0)

// Device memory of `count` elements.
template <class T>
class Device {
 public:
  Device() = default;
  explicit Device(size_t count) : count_(count) {
    if (count) CUDA(cudaMalloc, reinterpret_cast<void**>(&data_), count * sizeof(T));
  }
  explicit Device(const std::vector<T>& values) : Device(values.size()) {
    CUDA(cudaMemcpy, data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
    // It may return before the last bytes have arrived, and streams that do not block wait for nobody.
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  Device(Device&& other) noexcept { swap(other); }
  Device& operator=(Device&& other) noexcept {
    swap(other);
    return *this;
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() { cudaFree(data_); }

  T* data() const { return data_; }
  size_t size() const { return count_; }

  // All bits one: NaN as a number, -1 as an index. Whoever does not write its output is seen.
  void poison(cudaStream_t stream) const { CUDA(cudaMemsetAsync, data_, 0xFF, count_ * sizeof(T), stream); }

  std::vector<T> read(size_t first, size_t count) const {
    std::vector<T> values(count);
    CUDA(cudaMemcpy, values.data(), data_ + first, count * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }
  std::vector<T> read() const { return read(0, count_); }

 private:
  void swap(Device& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
  }
  T* data_ = nullptr;
  size_t count_ = 0;
};

// Pinned host memory, which the device also sees at `mapped()`.
class Pinned {
 public:
  explicit Pinned(size_t bytes) : bytes_(bytes) {
    CUDA(cudaHostAlloc, &data_, bytes, cudaHostAllocMapped);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() { cudaFreeHost(data_); }
  void* data() const { return data_; }
  size_t size() const { return bytes_; }
  void* mapped() const {
    void* device = nullptr;
    CUDA(cudaHostGetDevicePointer, &device, data_, 0);
    return device;
  }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

class Event {
 public:
  Event() { CUDA(cudaEventCreate, &event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  void record(cudaStream_t stream) { CUDA(cudaEventRecord, event_, stream); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class Stream {
 public:
  Stream() { CUDA(cudaStreamCreateWithFlags, &stream_, cudaStreamNonBlocking); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// What a stream is given while `enqueue` runs, as a graph that can be launched again and again.
class Graph {
 public:
  template <class Enqueue>
  Graph(cudaStream_t stream, Enqueue enqueue) {
    cudaGraph_t graph = nullptr;
    CUDA(cudaStreamBeginCapture, stream, cudaStreamCaptureModeThreadLocal);
    try {
      enqueue();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      throw;
    }
    CUDA(cudaStreamEndCapture, stream, &graph);
    const cudaError_t code = cudaGraphInstantiate(&exec_, graph, 0ULL);
    cudaGraphDestroy(graph);
    check(code, "cudaGraphInstantiate");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(exec_); }
  void launch(cudaStream_t stream) const { CUDA(cudaGraphLaunch, exec_, stream); }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

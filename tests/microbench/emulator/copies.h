// Copies, graphs and the driver's entry points of the emulated runtime.
#pragma once
#include "runtime_api.h"

namespace emu {

inline bool is_pinned(const void* p) {
  const auto& all = machine().pinned;
  auto after = all.upper_bound(static_cast<const char*>(p));
  if (after == all.begin()) return false;
  --after;
  return static_cast<const char*>(p) < after->first + after->second;
}

inline double copy_s(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const Machine& m = machine();
  if (kind == cudaMemcpyDeviceToDevice) return 2.0 * double(bytes) / m.get("bandwidth", 1e9);
  const bool out = kind == cudaMemcpyDeviceToHost;
  if (!is_pinned(out ? to : from))
    return m.get(out ? "pageable_d2h_s" : "pageable_h2d_s", 1e-6) +
           double(bytes) / m.get(out ? "pageable_d2h_bandwidth" : "pageable_h2d_bandwidth", 1e8);
  return m.get(out ? "d2h_s" : "h2d_s", 1e-6) + double(bytes) / m.get(out ? "d2h_bandwidth" : "h2d_bandwidth", 1e8);
}

// Without the cost of a launch: a copy has its own. What costs are counted from is copied in a dry run, too.
inline void submit_copy(std::function<void()> work, double seconds, bool always = false) {
  Machine& m = machine();
  if (capturing) return capturing->push_back({std::move(work), seconds});
  if (!m.dry || always) work();
  m.now_s += seconds;
}

}  // namespace emu

inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  EMU_CALL(cudaMemcpyAsync, 719);
  const bool table = kind == cudaMemcpyHostToDevice && !emu::is_pinned(from);
  emu::submit_copy([=] { std::memcpy(to, from, bytes); }, emu::copy_s(to, from, bytes, kind), table);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  EMU_CALL(cudaMemcpy, 719);
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  EMU_CALL(cudaMemsetAsync, 719);
  emu::submit([=] { std::memset(to, value, bytes); }, double(bytes) / emu::machine().get("bandwidth", 1e9));
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes, size_t count,
                                        cudaMemcpyAttributes*, size_t*, size_t, cudaStream_t stream) {
  EMU_CALL(cudaMemcpyBatchAsync, 719);
  if (!stream) return cudaErrorInvalidValue;  // as the real one: the default stream is not allowed
  double seconds = emu::machine().get("batch_s", 1e-6);
  for (size_t i = 0; i < count; ++i) {
    const char* which = emu::is_pinned(to[i]) ? "d2h_bandwidth" : "h2d_bandwidth";
    seconds += emu::machine().get("batch_block_s", 1e-7) + double(sizes[i]) / emu::machine().get(which, 1e8);
  }
  std::vector<std::tuple<void*, const void*, size_t>> all;
  for (size_t i = 0; i < count; ++i) all.emplace_back(to[i], from[i], sizes[i]);
  emu::submit_copy([=] { for (const auto& [t, f, n] : all) std::memcpy(t, f, n); }, seconds);
  return cudaSuccess;
}

inline cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  EMU_CALL(cudaStreamBeginCapture, 719);
  emu::capturing = new std::vector<emu::Node>;
  return cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = new emuGraph{std::move(*emu::capturing)};
  delete emu::capturing;
  emu::capturing = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new emuGraph(*graph);
  return cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { delete graph; return cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { delete exec; return cudaSuccess; }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
  EMU_CALL(cudaGraphLaunch, 719);
  emu::Machine& m = emu::machine();
  m.now_s += m.get("replay_s", 3e-6);
  for (const emu::Node& node : exec->nodes) {
    if (!m.dry) node.work();
    m.now_s += m.get("node_s", 1e-6) + node.seconds;
  }
  return cudaSuccess;
}

#include "cuda.h"

inline cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** to, unsigned, unsigned long long,
                                                    cudaDriverEntryPointQueryResult* found) {
  *to = emu::driver_entry(name);
  *found = cudaDriverEntryPointSuccess;
  return *to ? cudaSuccess : cudaErrorInvalidValue;
}

// frag: an allocation trace that kvsim wrote, replayed against the real stream-ordered allocator.
//
// A trace is text: `# name NAME`, then a line for each operation: `a ID BYTES` (allocate) or `f ID` (free).
#pragma once
#include <fstream>
#include <map>
#include <sstream>

#include "../harness/options.h"
#include "allocs.h"

struct Operation {
  bool allocate;
  int id;
  size_t bytes;
};

struct AllocationTrace {
  std::string name;
  std::vector<Operation> operations;
  size_t peak_bytes = 0;
};

// Throws Failure that names file and line.
inline AllocationTrace read_trace(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Failure{"frag", 1, path + ": cannot be read"};
  AllocationTrace trace;
  std::map<int, size_t> live;
  size_t now = 0;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const auto wrong = [&](const char* what) {
      return Failure{"frag", 1, path + ", line " + std::to_string(number) + ": " + what};
    };
    std::istringstream words(line);
    std::string kind, key;
    words >> kind;
    if (kind == "#") {
      words >> key;
      if (key == "name") words >> trace.name;
      continue;
    }
    Operation one{kind == "a", 0, 0};
    if ((kind != "a" && kind != "f") || !(words >> one.id) || (one.allocate && !(words >> one.bytes)))
      throw wrong("is neither `a ID BYTES` nor `f ID`");
    if (one.allocate == (live.count(one.id) > 0)) throw wrong(one.allocate ? "ID is allocated already" : "ID is not allocated");
    if (one.allocate) {
      now += live[one.id] = one.bytes;
    } else {
      now -= live[one.id];
      live.erase(one.id);
    }
    trace.peak_bytes = std::max(trace.peak_bytes, now);
    trace.operations.push_back(one);
  }
  if (trace.name.empty() || trace.operations.empty()) throw Failure{"frag", 1, path + ": has no name or no operation"};
  return trace;
}

class FragSubject : public HostSubject {
 public:
  FragSubject(Session& session, AllocationTrace trace) : HostSubject(session), trace_(std::move(trace)) {
    CUDA(cudaDeviceGetDefaultMemPool, &pool_, 0);
    u64 threshold = ~u64{0};
    CUDA(cudaMemPoolSetAttribute, pool_, cudaMemPoolAttrReleaseThreshold, &threshold);
  }
  ~FragSubject() override { cudaMemPoolTrimTo(pool_, 0); }

  // The pool's own count of what is used must be at least what the trace holds, at its peak.
  Verdict verify() override {
    replay(true);
    return exactly(peak_used_ >= trace_.peak_bytes && reserved_ >= peak_used_);
  }
  Json more() override {
    return Json().add("reserved_bytes", reserved_).add("used_bytes", used_).add("peak_used_bytes", peak_used_);
  }

 private:
  double once() override { return replay(false); }
  u64 attribute(cudaMemPoolAttr which) const {
    u64 value = 0;
    CUDA(cudaMemPoolGetAttribute, pool_, which, &value);
    return value;
  }
  // Seconds of the whole trace, from an empty pool. With `look` the pool is asked after each operation.
  double replay(bool look) {
    CUDA(cudaMemPoolTrimTo, pool_, size_t{0});
    std::map<int, void*> live;
    const double seconds = timed([&] {
      for (const Operation& one : trace_.operations) {
        if (one.allocate) {
          CUDA(cudaMallocAsync, &live[one.id], one.bytes, session_.stream);
        } else {
          CUDA(cudaFreeAsync, live[one.id], session_.stream);
          live.erase(one.id);
        }
        if (look) note();
      }
    });
    for (const auto& [id, data] : live) CUDA(cudaFreeAsync, data, session_.stream);
    session_.finish();
    return seconds;
  }
  void note() {
    used_ = attribute(cudaMemPoolAttrUsedMemCurrent);
    peak_used_ = std::max(peak_used_, used_);
    reserved_ = std::max(reserved_, attribute(cudaMemPoolAttrReservedMemCurrent));
  }
  AllocationTrace trace_;
  cudaMemPool_t pool_ = nullptr;
  u64 reserved_ = 0, used_ = 0, peak_used_ = 0;
};

inline void add_frags(Plan& plan, const Options& options, Session&) {
  for (const std::string& path : options.traces) {
    const AllocationTrace trace = read_trace(path);
    add_single(plan, 3, 2 * trace.peak_bytes,
               {"frag", trace.name, Json().add("operations", trace.operations.size()), "fit",
                static_cast<double>(trace.peak_bytes), 0.0},
               [=](Session& s) { return std::make_unique<FragSubject>(s, trace); });
  }
}

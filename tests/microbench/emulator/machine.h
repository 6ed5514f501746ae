// The emulated GPU as a machine: what it is, what time it is there, what it is told to fail at.
//
// Time is virtual. The description (EMU_GPU, a file of `key value` lines) says what everything costs; without it
// everything costs something too, so that no duration is zero.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "lanes.h"

namespace emu {

class Machine {
 public:
  Machine() {
    if (const char* path = std::getenv("EMU_GPU")) {
      std::ifstream file(path);
      std::string key;
      for (double value; file >> key >> value;) values_[names_.emplace_back(key)] = value;
      if (!file.eof()) die("EMU_GPU: not lines of `key value`");
    }
    if (const char* fail = std::getenv("EMU_FAIL")) {
      fail_call_ = std::string(fail).substr(0, std::string(fail).find(':'));
      fail_at_ = std::atoi(std::strchr(fail, ':') + 1);
    }
    if (const char* seed = std::getenv("EMU_SEED")) random.seed(unsigned(std::atoi(seed)));
    dry = std::getenv("EMU_DRY") != nullptr;
  }

  double get(std::string_view key, double otherwise) const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second;
  }

  // Whether this call of a runtime function is the one that was to fail.
  bool fails(const char* call) { return fail_call_ == call && ++calls_ == fail_at_; }

  double now_s = 0.0;
  bool dry = false;  // launches and copies take their time and do nothing
  size_t allocated = 0;
  std::map<void*, size_t> sizes;
  std::map<const char*, size_t> pinned;
  std::map<void*, size_t> pooled;  // freed into the stream-ordered pool, not given back
  size_t pool_used = 0, pool_reserved = 0, pool_threshold = 0;
  std::mt19937 random{12345};

 private:
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, double> values_;
  std::string fail_call_;
  int fail_at_ = 0, calls_ = 0;
};

inline Machine& machine() {
  static Machine one;
  return one;
}

struct Node {
  std::function<void()> work;
  double seconds;
};
inline std::vector<Node>* capturing = nullptr;

// Work of a stream: done at once, or noted where the stream is being captured.
inline void submit(std::function<void()> work, double seconds) {
  Machine& m = machine();
  if (capturing) return capturing->push_back({std::move(work), seconds});
  if (!m.dry) work();
  m.now_s += m.get("launch_s", 2e-6) + seconds;
}

inline int run_grid(dim3 grid, dim3 threads, const std::function<void()>& body) {
  std::vector<uint3> order;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) order.push_back({x, y, z});
  std::shuffle(order.begin(), order.end(), machine().random);
  for (const uint3& index : order) run_block(grid, threads, index, body, machine().random);
  return 0;
}

// Seconds of a kernel beyond its launch: cost_of(arguments, grid), where costs.h has one for it.
template <class... P>
auto seconds_of(int, dim3 grid, const P&... arguments) -> decltype(cost_of(arguments..., grid)) {
  return cost_of(arguments..., grid);
}
template <class... P>
double seconds_of(long, dim3, const P&...) {
  return 0.0;
}

inline int last_error = 0;

template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 threads, A... arguments) {
  if (machine().fails("launch")) return void(last_error = 719);
  if (!grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535 || threads.x * threads.y * threads.z > 1024)
    return void(last_error = 9);
  std::tuple<P...> values(arguments...);
  const double seconds =
      std::apply([&](const P&... each) { return seconds_of(0, grid, each...); }, values);
  submit([=] { run_grid(grid, threads, [=] { std::apply(kernel, values); }); }, seconds);
}

}  // namespace emu

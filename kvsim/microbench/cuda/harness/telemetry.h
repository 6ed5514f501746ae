// Clocks, temperature and PCIe link by NVML, where the driver brings it; NaN elsewhere. Nothing is ever set.
#pragma once
#include <dlfcn.h>

#include <cmath>

struct Readings {
  double sm_mhz = NAN, temperature_c = NAN;
};

class Telemetry {
 public:
  Telemetry() {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library_) return;
    int (*init)() = nullptr;
    int (*handle)(unsigned, void**) = nullptr;
    if (!find(init, "nvmlInit_v2") || !find(handle, "nvmlDeviceGetHandleByIndex_v2")) return;
    if (init() || handle(0, &device_)) device_ = nullptr;
  }
  Readings read() const {
    constexpr int kSmClock = 1, kGpuSensor = 0;
    return {ask("nvmlDeviceGetClockInfo", kSmClock), ask("nvmlDeviceGetTemperature", kGpuSensor)};
  }
  double max_sm_mhz() const { return ask("nvmlDeviceGetMaxClockInfo", 1); }
  double max_mem_mhz() const { return ask("nvmlDeviceGetMaxClockInfo", 2); }
  double pcie_gen() const { return ask("nvmlDeviceGetMaxPcieLinkGeneration"); }
  double pcie_width() const { return ask("nvmlDeviceGetMaxPcieLinkWidth"); }

 private:
  template <class F>
  bool find(F& function, const char* name) const {
    function = library_ ? reinterpret_cast<F>(dlsym(library_, name)) : nullptr;
    return function != nullptr;
  }
  double ask(const char* name, int which) const {
    int (*function)(void*, int, unsigned*) = nullptr;
    unsigned value = 0;
    return device_ && find(function, name) && function(device_, which, &value) == 0 ? value : NAN;
  }
  double ask(const char* name) const {
    int (*function)(void*, unsigned*) = nullptr;
    unsigned value = 0;
    return device_ && find(function, name) && function(device_, &value) == 0 ? value : NAN;
  }
  void* library_ = nullptr;
  void* device_ = nullptr;
};

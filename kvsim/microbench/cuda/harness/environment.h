// The first line: which machine, which build, which settings.
#pragma once
#include <ctime>

#include "options.h"
#include "session.h"
#include "telemetry.h"
#include "lines.h"

// Set by `kvsim calibrate build`.
#if !defined(KV_SOURCE_SHA256)
#define KV_SOURCE_SHA256 "unknown"
#define KV_VERSION "unknown"
#define KV_ARCH "unknown"
#endif

constexpr int kSchema = 1;

inline std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

// Tells machines apart without naming them (FNV-1a of the device's UUID).
inline std::string uuid_hash(const cudaDeviceProp& device) {
  u64 h = 14695981039346656037ull;
  for (const char byte : device.uuid.bytes) h = (h ^ static_cast<unsigned char>(byte)) * 1099511628211ull;
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", h);
  return text;
}

inline Json environment(const Session& session, const Options& options) {
  int driver = 0, runtime = 0;
  CUDA(cudaDriverGetVersion, &driver);
  CUDA(cudaRuntimeGetVersion, &runtime);
  const cudaDeviceProp& device = session.device;
  const Telemetry telemetry;
#if defined(KV_EMULATED)
  const char* backend = "emulated";
#else
  const char* backend = std::string(device.name) == "fake" ? "fake" : "cuda";
#endif
  Json line;
  line.add("type", "env").add("schema", kSchema).add("kvsim_version", KV_VERSION).add("source_sha256", KV_SOURCE_SHA256);
  line.add("backend", backend).add("device", device.name).add("uuid_hash", uuid_hash(device));
  line.add("cc", std::to_string(device.major) + "." + std::to_string(device.minor));
  line.add("sm_count", device.multiProcessorCount).add("mem_bytes", device.totalGlobalMem);
  line.add("l2_bytes", device.l2CacheSize).add("max_sm_mhz", telemetry.max_sm_mhz());
  line.add("max_mem_mhz", telemetry.max_mem_mhz()).add("driver", driver).add("cuda_runtime", runtime);
  session.cublas.usable() ? line.add("cublas", session.cublas.version()) : line.null("cublas");
#if defined(__CUDACC_VER_MAJOR__)
  line.add("nvcc", std::to_string(__CUDACC_VER_MAJOR__) + "." + std::to_string(__CUDACC_VER_MINOR__) + "." +
                       std::to_string(__CUDACC_VER_BUILD__));
#else
  line.null("nvcc");
#endif
  line.add("build_arch", KV_ARCH).add("pcie_gen", telemetry.pcie_gen()).add("pcie_width", telemetry.pcie_width());
  line.add("ecc", device.ECCEnabled != 0).add("preset", options.preset).add("seed", options.seed);
  return line.add("started_utc", utc_now());
}

// A cuBLAS for the emulated harness: the calls it makes, with their arguments looked at. A product is computed in double.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

extern "C" void emu_submit(const std::function<void()>* work, double seconds);
extern "C" double emu_parameter(const char* name, double otherwise);

namespace {
double widen(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}
uint16_t narrow(double value) {
  const float rounded = float(value);
  uint32_t bits;
  std::memcpy(&bits, &rounded, 4);
  return uint16_t((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}
// ((bytes / bandwidth)^n + (flops / peak)^n)^(1/n)
double seconds_of(double m, double n, double k) {
  const double bytes = 2.0 * (m * k + n * k + m * n), flops = 2.0 * m * n * k;
  const double sharpness = emu_parameter("gemm_sharpness", 3.0);
  const double moving = bytes / emu_parameter("gemm_bandwidth", 1e9), computing = flops / emu_parameter("gemm_flops", 1e10);
  return emu_parameter("gemm_s", 0.0) +
         std::pow(std::pow(moving, sharpness) + std::pow(computing, sharpness), 1.0 / sharpness);
}
}  // namespace

extern "C" {
int cublasCreate_v2(void** handle) { return *handle = std::malloc(1), 0; }
int cublasSetStream_v2(void*, void*) { return 0; }
int cublasSetWorkspace_v2(void*, void*, size_t) { return 0; }
int cublasGetVersion_v2(void*, int* version) { return *version = 130000, 0; }
int cublasGemmEx(void*, int op_a, int op_b, int n, int m, int k, const float* alpha, const void* w, int w_type, int ldw,
                 const void* x, int x_type, int ldx, const float* beta, void* y, int y_type, int ldy, int compute, int) {
  constexpr int kInvalid = 7, kTranspose = 1, kPlain = 0, kBf16 = 14, kFloatSums = 68;
  if (op_a != kTranspose || op_b != kPlain || w_type != kBf16 || x_type != kBf16 || y_type != kBf16 ||
      compute != kFloatSums || ldw < k || ldx < k || ldy < n || *alpha != 1.0f || *beta != 0.0f)
    return kInvalid;
  const std::function<void()> work = [=] {
    const auto* a = static_cast<const uint16_t*>(w);
    const auto* b = static_cast<const uint16_t*>(x);
    for (int row = 0; row < m; ++row)
      for (int column = 0; column < n; ++column) {
        double sum = 0.0;
        for (int i = 0; i < k; ++i) sum += widen(a[size_t(column) * ldw + i]) * widen(b[size_t(row) * ldx + i]);
        static_cast<uint16_t*>(y)[size_t(row) * ldy + column] = narrow(sum);
      }
  };
  emu_submit(&work, seconds_of(m, n, k));
  return 0;
}
}

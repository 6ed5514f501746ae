// kvsim's microbenchmark: measures one GPU and writes what it found as JSON Lines.
// Exit codes: 0 all outputs were right, 1 something failed, 2 wrong command line, 77 no usable GPU.
#include "harness/environment.h"
#include "harness/runner.h"
#include "suite.h"

namespace {

constexpr int kFailed = 1, kWrongUse = 2, kNoGpu = 77;

int measure(const Options& options, Lines& out) {
  Session session;
  CUDA(cudaGetDeviceProperties, &session.device, 0);
  session.seed = options.seed;
  session.dump = options.dump;
  session.cublas.open(options.cublas);
  if (session.cublas.usable()) session.cublas.use(session.stream);
  out.write(environment(session, options));
  Runner runner(session, options, out);
  const bool usable = runner.run(make_plan(options, session), [&](Plan& anchors) { add_anchors(anchors, options, session); });
  out.write(Json().add("type", "end").add("points", runner.points()).add("failed", runner.failed())
                .add("wall_s", runner.elapsed_s()).add("complete", usable && runner.within_budget()));
  return usable && !runner.failed() && out.good() ? 0 : kFailed;
}

int no_gpu(Lines& out, cudaError_t code) {
  const char* reason = code == cudaSuccess ? "no CUDA device" : cudaGetErrorString(code);
  out.write(Json().add("type", "error").add("bench", "all").add("code", static_cast<int>(code)).add("message", std::string("no usable GPU: ") + reason));
  std::fprintf(stderr, "microbench: no usable GPU: %s\n", reason);
  return kNoGpu;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const std::string wrong = parse(argc, argv, options); !wrong.empty()) {
    std::fprintf(stderr, "microbench: %s\n%s", wrong.c_str(), kUsage);
    return kWrongUse;
  }
  std::FILE* file = options.out.empty() ? stdout : std::fopen(options.out.c_str(), "w");
  if (!file) {
    std::fprintf(stderr, "microbench: %s: cannot be written\n", options.out.c_str());
    return kFailed;
  }
  Lines out(file);
  int devices = 0;  // left alone where there is no driver
  const cudaError_t code = cudaGetDeviceCount(&devices);
  if (code != cudaSuccess || devices == 0) return no_gpu(out, code);
  try {
    return measure(options, out);
  } catch (const Failure& failure) {
    out.write(Json().add("type", "error").add("bench", "all").add("code", failure.code).add("message", failure.call + ": " + failure.message));
    return kFailed;
  }
}

// Which benchmarks there are.
#pragma once
#include "bench/decode.h"
#include "bench/gemm.h"
#include "bench/kv_read.h"
#include "bench/launches.h"
#include "bench/prefill.h"
#include "bench/step.h"
#include "bench/streams.h"
#include "memory/allocs.h"
#include "memory/frag.h"
#include "memory/swap.h"
#include "memory/transfers.h"

inline Plan make_plan(const Options& options, Session& session) {
  Plan plan;
  const auto add = [&](const char* bench, auto adder) {
    if (options.only.empty() || options.only.count(bench)) adder(plan, options, session);
  };
  add("hbm", add_streams);
  add("gemm", add_gemms);
  add("kv_read", add_kv_reads);
  add("decode_attn", add_decodes);
  add("prefill_attn", add_prefills);
  add("launch", add_launches);
  add("graph", add_graphs);
  add("h2d", add_h2d);
  add("d2h", add_d2h);
  add("duplex", add_duplex);
  add("swap_blocks", add_swaps);
  add("alloc", add_allocs);
  add("grow", add_grows);
  add("frag", add_frags);
  add("step", add_steps);
  return plan;
}

// What is measured again and again, to see whether the machine stays the same.
inline void add_anchors(Plan& anchors, const Options& options, Session& session) {
  anchors.push_back(copy_anchor(options.tiny() ? 64 << 10 : 256 << 20));
  if (!session.cublas.usable()) return;
  const int size = options.tiny() ? 64 : 4096;
  anchors.push_back(gemm_group(session, options.tiny() ? 16 : 512, size, size, "anchor", 0));
}

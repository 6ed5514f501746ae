"""The harness under the sanitizers of g++, which stand in for memcheck and racecheck where there is no GPU."""

import pytest

from tests.microbench.harness.emulation import ADDRESS, ADDRESS_ALONE, THREAD, Change, emulated, run

pytestmark = pytest.mark.cuda

BENCHES = "hbm,kv_read,decode_attn,prefill_attn,swap_blocks,alloc,grow,h2d,duplex,launch,graph,gemm,step"
QUIET = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
DECODE = "kernels/decode.h"
FEW = (
    Change(
        "bench/decode.h",
        """    shapes = {{1, 70}, {1, 600}, {3, 150}, {5, 260}};
    heads = {{4, 2}, {8, 1}};
    spots = {{2, 2}, {16, 1}, {7, 1}};
    spot_shapes = {{3, 150}};
    held = {{2, 210}, {6, 90, true}};""",
        "    shapes = {{1, 126}}, heads = {{8, 1}}, spots = {}, spot_shapes = {}, held = {};",
    ),
    Change(
        "bench/prefill.h",
        """{20, 0, "fit"}, {64, 0, "fit"}, {130, 0, "fit"}, {40, 90, "fit"}, {70, 200, "fit"}, {100, 30, "holdout"}""",
        """{70, 10, "fit"}""",
    ),
    Change("bench/kv_read.h", "shapes = {{1, 90}, {2, 70}, {3, 150}, {4, 300}, {8, 200}}", "shapes = {{1, 125}}"),
    Change(
        "bench/step.h",
        "{{2, 60}, 0, 0}, {{3, 120, true}, 0, 0}, {{2, 60}, 24, 40}, {{0, 0}, 30, 0}",
        "{{1, 20}, 8, 4}",
    ),
)  # fmt: skip
"""Few operations, small ones: sanitized fibers and threads of the operating system are slow."""


def test_no_address_is_wrong_and_nothing_is_undefined(builds, cublas):
    program = emulated(builds, *FEW, flags=ADDRESS)
    ran = run(program, "--cublas", cublas, "--verify-only", "--only", BENCHES, **QUIET)
    assert "AddressSanitizer" not in ran.err
    assert "runtime error" not in ran.err
    assert ran.code == 0


def test_a_write_past_a_buffer_is_seen_with_its_line(builds):
    loop = "at < a.vectors; at += stride) a.to[at] = a.from[at];"
    beyond = Change("kernels/stream.h", loop, loop.replace("<", "<="))
    ran = run(emulated(builds, beyond, *FEW, flags=ADDRESS_ALONE), "--verify-only", "--only", "hbm", **QUIET)
    assert ran.code != 0
    assert "AddressSanitizer: heap-buffer-overflow" in ran.err
    assert "stream.h:" in ran.err


TWO_LAYOUTS = Change("bench/kv_cache.h", "return {0, 1, 8, 16, 32, 64, 128};", "return {0, 16};")
SMALL_GPU = {"sm_count": 1, "l2_bytes": 1024}
"""On which few blocks of threads fill small buffers."""


def test_threads_do_not_race(builds, tmp_path):
    program = emulated(builds, TWO_LAYOUTS, *FEW, flags=THREAD)
    only = ("--verify-only", "--only", "decode_attn")
    ran = run(program, *only, gpu=SMALL_GPU, folder=tmp_path, TSAN_OPTIONS="halt_on_error=1")
    assert "ThreadSanitizer" not in ran.err
    assert ran.code == 0


def test_a_missing_barrier_is_a_race_with_both_lines(builds, tmp_path):
    missing = Change(DECODE, "    __syncthreads();  // before rows are written again", "")
    program = emulated(builds, missing, TWO_LAYOUTS, *FEW, flags=THREAD)
    only = ("--verify-only", "--only", "decode_attn")
    ran = run(program, *only, gpu=SMALL_GPU, folder=tmp_path, TSAN_OPTIONS="halt_on_error=1:exitcode=66")
    assert ran.code == 66
    assert "WARNING: ThreadSanitizer: data race" in ran.err
    assert ran.err.count("decode.h:") >= 2

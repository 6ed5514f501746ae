"""The harness under the sanitizers of g++, which stand in for memcheck and racecheck where there is no GPU."""

import pytest

from tests.microbench.harness.emulation import ADDRESS, THREAD, Change, emulated, run

pytestmark = pytest.mark.cuda

BENCHES = "hbm,kv_read,decode_attn,prefill_attn,swap_blocks,alloc,grow,h2d,duplex,launch,graph,gemm,step"
QUIET = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
DECODE = "kernels/decode.h"
FEW = Change(
    "bench/decode.h",
    """    shapes = {{1, 70}, {1, 600}, {3, 150}, {5, 260}};
    heads = {{4, 2}, {8, 1}};
    spots = {{2, 2}, {16, 1}, {7, 1}};
    spot_shapes = {{3, 150}};
    held = {{2, 210}, {6, 90, true}};""",
    "    shapes = {{1, 70}}, heads = {{8, 1}}, spots = {}, spot_shapes = {}, held = {};",
)
"""Decode attention of one request: threads of the operating system are slow."""


def test_no_address_is_wrong_and_nothing_is_undefined(builds, cublas):
    program = emulated(builds, flags=ADDRESS)
    ran = run(program, "--cublas", cublas, "--verify-only", "--only", BENCHES, **QUIET)
    assert ran.err == ""
    assert ran.code == 0


def test_reading_past_the_cache_is_seen_with_its_line(builds):
    unmasked = Change(
        DECODE, "return valid ? reinterpret_cast", "return valid || row < (u64{1} << 60) ? reinterpret_cast"
    )
    beyond = run(emulated(builds, unmasked, FEW, flags=ADDRESS), "--verify-only", "--only", "decode_attn", **QUIET)
    assert beyond.code not in (0, 1)
    assert "AddressSanitizer" in beyond.err or "runtime error" in beyond.err
    assert "decode.h:" in beyond.err


def test_threads_do_not_race(builds):
    program = emulated(builds, FEW, flags=THREAD)
    ran = run(program, "--verify-only", "--only", "kv_read,decode_attn", TSAN_OPTIONS="halt_on_error=1")
    assert "ThreadSanitizer" not in ran.err
    assert ran.code == 0


def test_a_missing_barrier_is_a_race_with_both_lines(builds):
    missing = Change(DECODE, "    __syncthreads();  // before rows are written again", "")
    program = emulated(builds, missing, FEW, flags=THREAD)
    ran = run(program, "--verify-only", "--only", "decode_attn", TSAN_OPTIONS="halt_on_error=1:exitcode=66")
    assert ran.code == 66
    assert "WARNING: ThreadSanitizer: data race" in ran.err
    assert ran.err.count("decode.h:") >= 2

"""The harness under the sanitizers of g++, which stand in for memcheck and racecheck where there is no GPU."""

import pytest

from tests.microbench.harness.emulation import ADDRESS, THREAD, Change, emulated, run

pytestmark = pytest.mark.cuda

SMALL = ("--verify-only", "--only", "hbm,kv_read,prefill_attn,swap_blocks,alloc,grow,h2d,duplex,launch,graph,gemm,step")
QUIET = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
DECODE = "kernels/decode.h"
ONE = Change("bench/decode.h", "    shapes = {{1, 70}, {1, 600}, {3, 150}, {5, 260}};", "    shapes = {{2, 70}};")


def few(change=None):
    """The decode benchmark cut down to a small case: threads of the operating system are slow."""
    return ONE if change is None else change


def test_no_address_is_wrong_and_nothing_is_undefined(builds, cublas):
    program = emulated(builds, flags=ADDRESS)
    ran = run(program, "--cublas", cublas, *SMALL, **QUIET)
    assert ran.err == ""
    assert ran.code == 0


def test_reading_past_the_cache_is_seen_with_its_line(builds):
    unmasked = Change(DECODE, "return valid ? reinterpret_cast", "return valid || row < (u64{1} << 60) ? reinterpret_cast")
    beyond = run(emulated(builds, flags=ADDRESS, change=unmasked), "--verify-only", "--only", "decode_attn", **QUIET)
    assert beyond.code not in (0, 1)
    assert "AddressSanitizer" in beyond.err or "runtime error" in beyond.err
    assert "decode.h:" in beyond.err


def test_threads_do_not_race(builds):
    ran = run(emulated(builds, flags=THREAD), "--verify-only", "--only", "kv_read", TSAN_OPTIONS="halt_on_error=1")
    assert "ThreadSanitizer" not in ran.err
    assert ran.code == 0


@pytest.mark.parametrize("file, bench, barrier", [
    ("kernels/stream.h", "kv_read", "  __syncthreads();  // before the reduction"),
    ("kernels/prefill.h", "prefill_attn", "    __syncthreads();  // before the tile is overwritten"),
])  # fmt: skip
def test_a_missing_barrier_is_a_race_with_both_lines(builds, file, bench, barrier):
    program = emulated(builds, flags=THREAD, change=Change(file, barrier, ""))
    ran = run(program, "--verify-only", "--only", bench, TSAN_OPTIONS="halt_on_error=1:exitcode=66")
    assert ran.code == 66
    assert "WARNING: ThreadSanitizer: data race" in ran.err
    assert file.rpartition("/")[2] in ran.err

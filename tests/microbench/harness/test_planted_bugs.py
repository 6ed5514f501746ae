"""Faults put into the kernels: the harness, that measures them, must say that its output is wrong.

A program is built with one fault for each benchmark, since their kernels are others; steps have all kernels, and a
program of their own.
"""

from collections import Counter

import pytest

from tests.microbench.harness.emulation import Change, emulated, run

pytestmark = pytest.mark.cuda

DECODE, PREFILL, STREAM, READ = (f"kernels/{name}.h" for name in ("decode", "prefill", "stream", "kv_read"))
BUGS = {
    "a tail that is not masked": (
        "decode_attn",
        Change(DECODE, "return valid ? reinterpret_cast", "return valid || row < (u64{1} << 31) ? reinterpret_cast"),
    ),
    "scores of a tail that count": (
        "decode_attn",
        Change(DECODE, "row[i] = inside ? scores", "row[i] = inside || tile >= first ? scores"),
    ),
    "no barrier before the warps are added up": (
        "decode_attn",
        Change(DECODE, "    __syncthreads();  // rows are written", ""),
    ),
    "no barrier before rows are used again": (
        "decode_attn",
        Change(DECODE, "    __syncthreads();  // before rows are written again", ""),
    ),
    "a split that is left out": ("decode_attn", Change(DECODE, "s < a.splits; ++s) {", "s < a.splits - 1; ++s) {")),
    "a rescaling that is forgotten": ("decode_attn", Change(DECODE, "total = total * shrink + sum;", "total += sum;")),
    "the head of the wrong group": ("decode_attn", Change(DECODE, "a.q_rows + head * a.group;", "a.q_rows + head;")),
    "no barrier before a block's sum": ("kv_read", Change(STREAM, "  __syncthreads();  // before the reduction", "")),
    "a token that is read twice": ("kv_read", Change(READ, "at += 4 * kStreamThreads", "at += 3 * kStreamThreads")),
    "a block table off by one": (
        "kv_read",
        Change(READ, "(token & ((1 << cache.block_shift) - 1))", "(token + 1 & ((1 << cache.block_shift) - 1))"),
    ),
    "a prompt that sees its future": ("prefill_attn", Change(PREFILL, "token <= seen &&", "token <= seen + 1 &&")),
    "no barrier before a tile is there": (
        "prefill_attn",
        Change(PREFILL, "    __syncthreads();  // the tile is there", ""),
    ),
    "no barrier before a tile is overwritten": (
        "prefill_attn",
        Change(PREFILL, "    __syncthreads();  // before the tile is overwritten", ""),
    ),
    "a copy that forgets a quarter": ("hbm", Change(STREAM, ", a.to[at + 3 * stride] = v3", "")),
    "blocks swapped to the wrong place": (
        "swap_blocks",
        Change(STREAM, "a.to_blocks ? a.to_blocks[blockIdx.x] :", "a.to_blocks ? a.to_blocks[blockIdx.x] - 1 :"),
    ),
    "a gate without its other branch": (
        "step",
        Change("kernels/layer.h", "silu(widen(gate >> 16)) * widen(up >> 16)", "silu(widen(gate >> 16))"),
    ),
}  # fmt: skip


STEP = "step"


def together():
    """Which faults are built into one program: the first of each benchmark, the second of each, and so on."""
    programs, met = {}, Counter()
    for bench, change in BUGS.values():
        programs.setdefault(STEP if bench == STEP else met[bench], []).append(change)
        met[bench] += 1
    return [tuple(changes) for changes in programs.values()]


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_ends_in_outputs_that_are_not_verified(builds, cublas, bug):
    bench, change = BUGS[bug]
    (changes,) = (changes for changes in together() if change in changes)
    ran = run(emulated(builds, *changes), "--cublas", cublas, "--only", bench, "--verify-only")
    assert any(point["verified"] is False for point in ran.points(bench))
    assert ran.code == 1
    assert ran.lines[-1]["failed"] >= 1

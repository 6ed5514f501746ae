"""A part of the KV behind the host link: what a step takes, where its line bends, and that leaps cross the bend."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.engine.run import simulate
from kvsim.memory.paged import PagedAllocator
from kvsim.request import Request, Sequence
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.step import Chunk
from kvsim.timing.host_share import HostShareTiming, as_fraction
from kvsim.timing.interface import LinearTiming
from tests.batches import step_of
from tests.laws.cases import everything

KV_BYTES = 1000


def shared(share=0.5, *, overlapped=True, token_ps=10, base=None):
    """Half of 1,000 bytes a token cross the link in `token_ps`."""
    gpu = base or LinearTiming(step_ps=1000, per_sequence_ps=10, per_context_ps=2, per_prefill_ps=5)
    rate = share * KV_BYTES / (token_ps * 1e-12)
    return HostShareTiming(gpu, share=share, kv_bytes=KV_BYTES, link_bytes_per_s=rate, overlapped=overlapped)


def chunk(tokens, written=0):
    return Chunk(Sequence(0, tokens + written, None), tokens, written)


def test_a_step_takes_the_longer_of_link_and_gpu_where_they_overlap():
    assert shared().step_ps(step_of(1, 10)) == 1000 + 10 + 2 * 10
    assert shared().step_ps(step_of(1, 1000)) == 10 * 1000


def test_a_step_takes_both_where_nothing_overlaps():
    assert shared(overlapped=False).step_ps(step_of(1, 1000)) == 1000 + 10 + 2 * 1000 + 10 * 1000


def test_a_prompt_reads_what_is_cached_before_it_and_writes_what_is_new_the_other_way():
    apart = shared(overlapped=False)
    alone = LinearTiming(step_ps=1000, per_sequence_ps=10, per_context_ps=2, per_prefill_ps=5)
    for plan, crossing in (
        (step_of(chunks=[chunk(400)]), 400),
        (step_of(chunks=[chunk(400, written=900)]), 900),
        (step_of(2, 700, [chunk(400, written=900)]), 1600),
    ):
        assert apart.step_ps(plan) - alone.step_ps(plan) == 10 * crossing


@pytest.mark.parametrize("overlapped", [True, False])
@given(rows=st.integers(1, 300), context=st.integers(1, 100_000), token_ps=st.integers(1, 40))
def test_the_line_of_a_decode_step_is_the_step_up_to_where_it_bends(overlapped, rows, context, token_ps):
    timing, context = shared(overlapped=overlapped, token_ps=token_ps), max(rows, context)
    base, slope, until = timing.decode(rows, context)
    assert timing.step_ps(step_of(rows, context)) == base + slope * context
    if until is not None:
        assert until > context
        for there in (until - 1, until):
            again = timing.decode(rows, there)
            assert timing.step_ps(step_of(rows, there)) == again.base_ps + again.slope_ps * there
        assert timing.decode(rows, until - 1) == (base, slope, until)
        assert timing.decode(rows, until) != (base, slope, until)


def test_a_link_that_is_faster_than_the_gpu_reads_costs_nothing():
    assert shared(token_ps=2).decode(8, 10**9) == (1000 + 80, 2, None)


def test_a_share_is_what_was_written():
    assert as_fraction(0.7) == Fraction(7, 10)
    assert int(300 / (1 - as_fraction(0.7))) == 1000


def run(timing, requests, *, stepwise):
    allocator = PagedAllocator(64 * 16, block_size=16)
    scheduler = ContinuousScheduler(allocator, max_num_seqs=8, max_num_batched_tokens=64)
    return simulate(iter(requests), scheduler, timing, max_model_len=400, stepwise=stepwise, check=True)


@settings(max_examples=40)
@given(
    lengths=st.lists(
        st.tuples(st.integers(1, 150), st.integers(1, 200), st.integers(0, 40_000)), min_size=1, max_size=9
    ),
    token_ps=st.integers(1, 30),
    overlapped=st.booleans(),
)
def test_leaps_cross_the_bend_as_single_steps_do(lengths, token_ps, overlapped):
    requests, now = [], 0
    for number, (prompt, output, later) in enumerate(lengths):
        now += later
        requests.append(Request(number, now, prompt, output))
    timing = shared(overlapped=overlapped, token_ps=token_ps)
    leaping, stepping = (everything(run(timing, requests, stepwise=stepwise)) for stepwise in (False, True))
    assert leaping == stepping

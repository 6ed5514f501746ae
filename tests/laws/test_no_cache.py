"""`no-cache`: everything is computed again in every step; sums of squares in closed form, and leaps are steps."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.engine.run import simulate
from kvsim.memory.no_cache import NoCacheAllocator
from kvsim.metrics.memory import SERIES
from kvsim.request import Request
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.scheduling.prefill_first import PrefillFirstScheduler
from kvsim.scheduling.static import StaticScheduler
from kvsim.step import Rows, StepPlan
from kvsim.timing.interface import LinearTiming
from kvsim.timing.roofline import RooflineTiming
from tests.laws.cases import everything
from tests.laws.strategies import request_lists

MAKERS = {
    "ragged": lambda **limits: ContinuousScheduler(NoCacheAllocator(), **limits),
    "padded": lambda **limits: ContinuousScheduler(NoCacheAllocator(), kernel="padded", **limits),
    "chunks": lambda **limits: ContinuousScheduler(NoCacheAllocator(), long_prefill_token_threshold=5, **limits),
    "prefill first": lambda **limits: PrefillFirstScheduler(NoCacheAllocator(), **limits),
    "static": lambda **limits: StaticScheduler(NoCacheAllocator(), **limits),
}


@cache
def roofline():
    return RooflineTiming(Footprint(model("llama-3.1-8b")), gpu("H100"))


def serve(requests, timing, *, kind="ragged", seqs=8):
    """The logs of a leaping and of a stepwise run."""
    return [
        simulate(
            iter(requests),
            MAKERS[kind](max_num_seqs=seqs, max_num_batched_tokens=2048),
            timing,
            max_model_len=2048,
            check=True,
            stepwise=stepwise,
        )
        for stepwise in (False, True)
    ]


def rows_of(log):
    values, width = log.recording.memory.series, len(SERIES)
    return [dict(zip(SERIES, values[at : at + width], strict=True)) for at in range(0, len(values), width)]


def test_three_steps_of_one_request_by_hand():
    """3 prompt tokens: 3, 4 and 5 tokens are computed, of which 6, 10 and 15 pairs attend to one another."""
    timing = LinearTiming(step_ps=1000, per_prefill_ps=10, per_pair_ps=1, per_context_ps=10**9)
    for log in serve([Request(0, 0, 3, 3)], timing):
        [record] = log.recording.requests.ended
        assert record.first_token_ps == 1000 + 30 + 6
        assert record.end_ps == 1036 + (1000 + 40 + 10) + (1000 + 50 + 15)
        assert log.recording.gaps.histogram.max_ps == 1065


def test_a_prompt_beside_decodes_and_rows_of_unequal_length_by_hand():
    """0 of 3 tokens decodes when 1 of 2 comes: 4 tokens and 2, 10 pairs and 3; then 5 and 3: 15 and 6."""
    timing = LinearTiming(step_ps=1000, per_prefill_ps=10, per_pair_ps=1)
    for log in serve([Request(0, 0, 3, 3), Request(1, 500, 2, 2)], timing):
        assert {r.end_ps for r in log.recording.requests.ended} == {1036 + 1000 + 60 + 13 + 1000 + 80 + 21}


def test_padded_rows_are_computed_at_the_length_of_the_longest():
    """Prompts of 3 and 1 in one step as they are: 4 tokens, 6 + 1 pairs; then two rows of 4: 8 tokens, 2 x 10 pairs."""
    timing = LinearTiming(step_ps=1000, per_prefill_ps=10, per_pair_ps=1)
    for log in serve([Request(0, 0, 3, 2), Request(1, 0, 1, 2)], timing, kind="padded"):
        assert log.end_ps == 1000 + 40 + 7 + 1000 + 80 + 20


def test_a_static_rectangle_too():
    """Prompts of 3 and 1 as two of 3: 6 tokens, 2 x 6 pairs; then two rows of 4, although one is done."""
    timing = LinearTiming(step_ps=1000, per_prefill_ps=10, per_pair_ps=1)
    for log in serve([Request(0, 0, 3, 1), Request(1, 0, 1, 2)], timing, kind="static"):
        assert log.end_ps == 1000 + 60 + 12 + 1000 + 80 + 20


@pytest.mark.parametrize("kind", MAKERS)
@settings(max_examples=25)
@given(
    requests=request_lists(1000, aligned=False, max_size=8),
    seqs=st.integers(1, 8),
    parts=st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(0, 5)),
)
def test_leaping_is_stepping_in_closed_form(kind, requests, seqs, parts):
    per_sequence_ps, per_prefill_ps, per_pair_ps = parts
    timing = LinearTiming(
        step_ps=1000, per_sequence_ps=per_sequence_ps, per_prefill_ps=per_prefill_ps, per_pair_ps=per_pair_ps
    )
    leaping, stepping = serve(requests, timing, kind=kind, seqs=seqs)
    assert everything(leaping) == everything(stepping)


@pytest.mark.parametrize("kind", MAKERS)
@settings(max_examples=15)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 200), st.integers(1, 200)), min_size=1, max_size=6),
    gap_ps=st.integers(0, 10**11),
)
def test_leaping_is_stepping_on_a_roofline_that_bends(kind, lengths, gap_ps):
    requests = [Request(i, i * gap_ps, prompt, output) for i, (prompt, output) in enumerate(lengths)]
    leaping, stepping = serve(requests, roofline(), kind=kind, seqs=4)
    assert everything(leaping) == everything(stepping)


def test_a_leap_ends_where_the_roofline_bends():
    """Up to some number of tokens reading the weights takes longest, beyond it computing.

    On this card reading takes 5.60 ms and computing 20.2 us a token: 277.7 tokens.
    """
    bend = roofline().anew(1, 1).until_tokens
    assert bend == 278
    leaping, stepping = serve([Request(0, 0, 200, 200)], roofline())
    rows = rows_of(leaping)
    assert [(row["context_tokens"], row["steps"]) for row in rows] == [(0, 1), (201, bend - 201), (bend, 400 - bend)]
    assert everything(leaping) == everything(stepping)


def test_each_step_of_a_run_takes_what_the_timing_says_of_it_alone():
    [_, stepping] = serve([Request(0, 0, 250, 60)], roofline())
    for row in rows_of(stepping)[1:]:
        length = row["context_tokens"]
        pairs = length * (length + 1) // 2
        plan = StepPlan(decodes=1, rows=Rows(1, length, pairs), pairs=pairs)
        assert row["duration_ps"] == roofline().step_ps(plan)


def test_computing_everything_again_takes_longer_with_every_token():
    [_, stepping] = serve([Request(0, 0, 300, 50)], roofline())
    times = [row["duration_ps"] for row in rows_of(stepping)[1:]]
    assert times == sorted(set(times))

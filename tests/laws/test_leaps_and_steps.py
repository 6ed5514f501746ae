"""Leaping and stepping are the same run, and an independent engine agrees with both."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.metrics.histogram import DurationHistogram
from kvsim.step import CLASSES
from tests import naive
from tests.effort import examples
from tests.laws.cases import everything, reference_need, run_case
from tests.laws.strategies import ALLOCATORS, linear_step_ps, scenarios

EXAMPLES = examples(250)


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_leap_and_stepwise_results_are_identical_and_a_naive_engine_agrees(allocator):
    @settings(max_examples=EXAMPLES)
    @given(scenarios(allocators=(allocator,)))
    def agree(case):
        leaping, stepping = run_case(case, stepwise=False), run_case(case, stepwise=True)
        assert everything(leaping) == everything(stepping)
        agrees_with_naive(case, leaping)

    agree()


def agrees_with_naive(case, log):
    case = case | {"reference_need_slots": reference_need(case)}
    judge = naive.simulate(case, linear_step_ps(case["step_time"]))
    recording = log.recording
    ours = {
        r.id: (
            r.first_scheduled_ps,
            r.first_token_ps,
            r.end_ps,
            r.end,
            r.finish_reason,
            r.generated_tokens,
            r.preemptions,
            r.lost_tokens,
            r.recomputed_tokens,
        )
        for r in recording.requests.ended
    }
    assert ours == {number: tuple(ended) for number, ended in judge.requests.items()}
    assert [tuple(event) for event in recording.requests.events] == [tuple(event) for event in judge.events]
    totals = recording.memory.totals
    assert dict(zip(CLASSES, totals.slots_ps, strict=True)) == judge.integrals
    assert dict(zip(CLASSES, totals.peaks, strict=True)) == judge.peaks
    gaps = DurationHistogram()
    for gap in judge.gaps:
        gaps.add(gap)
    assert (recording.gaps.histogram.counts, recording.gaps.histogram.sum_ps) == (gaps.counts, gaps.sum_ps)
    assert (recording.memory.steps, totals.max_running) == (judge.steps, judge.max_running)
    assert (recording.occupancy.stay_ps, log.end_ps) == (judge.stay_ps, judge.end_ps)


@settings(max_examples=EXAMPLES)
@given(scenarios(), st.integers(0, 60_000), st.sampled_from(["auto", "last_finish", "saturated"]))
def test_what_is_measured_in_a_window_does_not_depend_on_leaping(case, warmup_ps, window):
    runs = [run_case(case, stepwise=stepwise, warmup_ps=warmup_ps, window=window) for stepwise in (False, True)]
    assert everything(runs[0]) == everything(runs[1])

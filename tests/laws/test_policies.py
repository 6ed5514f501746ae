"""Every allocator under every scheduler, kernel, preemption and victim: leaping is stepping, and every law holds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.metrics.histogram import DurationHistogram
from tests.effort import examples
from tests.laws.cases import everything, run_case
from tests.laws.strategies import KINDS, SCHEDULERS, mixtures, policies
from tests.laws.test_conservation import LAWS
from tests.laws.token_times import TokenTimes

EXAMPLES = examples(40)
MORE = 300

Everywhere = pytest.mark.parametrize("allocator", KINDS)
Always = pytest.mark.parametrize("scheduler", SCHEDULERS)


def rules(allocator, scheduler):
    """Cases of one allocator and one scheduler, whatever the kernel, the preemption and the rest."""
    others = [mixture[2:] for mixture in mixtures() if mixture[:2] == (allocator, scheduler)]
    return st.sampled_from(others).flatmap(
        lambda other: policies(allocator, scheduler, other[0], padded=other[1], samples=True)
    )


def keeps_every_law(allocator, scheduler, examples):
    @settings(max_examples=examples)
    @given(rules(allocator, scheduler), st.sampled_from(["auto", "saturated"]), st.sampled_from([0, 5_000]))
    def kept(case, window, warmup_ps):
        leaping, stepping = run_case(case, stepwise=False), run_case(case, stepwise=True)
        assert everything(leaping) == everything(stepping)
        for law in LAWS:
            law(case, leaping)
        windows = [run_case(case, stepwise=way, window=window, warmup_ps=warmup_ps) for way in (False, True)]
        assert everything(windows[0]) == everything(windows[1])

    kept()


@Everywhere
@Always
def test_leaping_is_stepping_and_every_law_holds(allocator, scheduler):
    keeps_every_law(allocator, scheduler, EXAMPLES)


@pytest.mark.slow
@Everywhere
@Always
def test_leaping_is_stepping_and_every_law_holds_over_and_over(allocator, scheduler):
    keeps_every_law(allocator, scheduler, MORE)


@Everywhere
@Always
def test_the_gaps_are_those_between_the_tokens_of_each_sequence(allocator, scheduler, monkeypatch):
    """Stalls, swaps, computing again and samples: the histogram is what noting each token's time gives."""
    monkeypatch.setattr("kvsim.engine.run.Recording", TokenTimes)

    @settings(max_examples=EXAMPLES)
    @given(rules(allocator, scheduler), st.sampled_from(["auto", "saturated"]), st.sampled_from([0, 5_000]))
    def agree(case, window, warmup_ps):
        recording = run_case(case, stepwise=True, window=window, warmup_ps=warmup_ps).recording
        by_hand = DurationHistogram()
        for gap in recording.measured_gaps():
            by_hand.add(gap)
        ours = recording.gaps.histogram
        assert {slot: getattr(ours, slot) for slot in ours.__slots__} == {
            slot: getattr(by_hand, slot) for slot in by_hand.__slots__
        }
        tokens = sum(len(times) for times in recording.times.values())
        assert tokens == sum(ended.generated_tokens for ended in recording.requests.ended)

    agree()

"""The search for the largest rate: within its tolerance of the truth, from any guess, with few questions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.study.planning.rates.search import FARTHEST, STRIDE, fewest, largest_rate


def judge(truth, asked):
    def bears(rates):
        asked.append(list(rates))
        return [rate <= truth for rate in rates]

    return bears


@given(
    truth=st.floats(0.01, 1000),
    off=st.floats(-4.5, 4.5),
    tolerance=st.sampled_from([0.005, 0.02, 0.1]),
    at_once=st.integers(1, 5),
)
def test_the_answer_is_within_the_tolerance_of_the_truth(truth, off, tolerance, at_once):
    asked = []
    found = largest_rate(judge(truth, asked), truth * math.exp(off), tolerance=tolerance, at_once=at_once)
    assert found.borne <= truth < found.not_borne
    assert found.not_borne <= found.borne * (1 + tolerance) * (1 + 1e-12)
    assert all(len(rates) <= at_once for rates in asked)
    assert sum(map(len, asked)) == len(found.tried)
    most = 3 + abs(off) / math.log(STRIDE) + math.log(math.log(STRIDE) / math.log1p(tolerance)) / math.log(at_once + 1)
    assert len(asked) <= most


def test_more_rates_at_once_take_fewer_questions():
    counts = []
    for at_once in (1, 2, 4, 8):
        asked = []
        largest_rate(judge(7.3, asked), 5.0, tolerance=0.001, at_once=at_once)
        counts.append(len(asked))
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] <= counts[0] / 2


def test_what_bears_nothing_and_what_bears_everything_end_the_search():
    nothing = largest_rate(lambda rates: [False] * len(rates), 4.0)
    assert nothing.borne is None
    assert 4.0 / FARTHEST / STRIDE <= nothing.not_borne <= 4.0 / FARTHEST
    everything = largest_rate(lambda rates: [True] * len(rates), 4.0)
    assert everything.not_borne is None
    assert 4.0 * FARTHEST <= everything.borne <= 4.0 * FARTHEST * STRIDE


def test_a_rate_that_is_borne_by_chance_above_one_that_is_not_does_not_count():
    found = largest_rate(lambda rates: [rate <= 2 or 3 < rate < 4 for rate in rates], 3.5, at_once=3)
    assert found.borne <= 2 < found.not_borne


@pytest.mark.parametrize("wrong", [{"guess": 0}, {"guess": 1, "tolerance": 0}, {"guess": 1, "at_once": 0}])
def test_arguments_are_above_zero(wrong):
    with pytest.raises(ValueError, match="all must be above 0"):
        largest_rate(lambda rates: [True] * len(rates), **wrong)


@given(
    counts=st.lists(st.integers(1, 60), min_size=1, max_size=40, unique=True), guess=st.integers(1, 80), data=st.data()
)
def test_the_fewest_that_do_are_found_from_any_guess_without_trying_all(counts, guess, data):
    counts = sorted(counts)
    needed = data.draw(st.integers(1, 70))
    search, asked = fewest(counts, guess), []
    try:
        count = next(search)
        while True:
            asked.append(count)
            count = search.send(count >= needed)
    except StopIteration as end:
        found = end.value
    assert found == next((count for count in counts if count >= needed), None)
    assert len(set(asked)) == len(asked) <= 2 * math.log2(len(counts) + 1) + 2

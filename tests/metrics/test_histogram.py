"""The histogram of durations: buckets that tile the integers, and counts that do not depend on how they were added."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.metrics.histogram import DurationHistogram, bucket_of, lower_edge

durations = st.one_of(
    st.integers(0, 2_000),
    st.integers(0, 10**18),
    st.tuples(st.integers(0, 62), st.integers(-2, 2)).map(lambda pair: max(0, 2 ** pair[0] + pair[1])),
)


@given(durations)
def test_every_duration_lies_in_its_bucket(value):
    bucket = bucket_of(value)
    assert lower_edge(bucket) <= value < lower_edge(bucket + 1)


@given(st.integers(0, 20_000))
def test_the_lower_edge_of_a_bucket_is_its_first_duration(bucket):
    edge = lower_edge(bucket)
    assert bucket_of(edge) == bucket
    if bucket:
        assert bucket_of(edge - 1) == bucket - 1


@given(st.integers(1, 20_000))
def test_a_bucket_is_at_most_half_a_percent_wide(bucket):
    low, high = lower_edge(bucket), lower_edge(bucket + 1)
    assert high - low == 1 or (high - low) / low <= 0.005


def test_below_512_picoseconds_each_duration_has_a_bucket_and_then_256_share_an_octave():
    assert [bucket_of(value) for value in (0, 1, 511)] == [0, 1, 511]
    assert (bucket_of(512), bucket_of(513), bucket_of(514)) == (512, 512, 513)
    assert bucket_of(2**40) - bucket_of(2**39) == 256


def test_a_second_is_told_from_a_second_and_half_a_percent():
    assert bucket_of(10**12) < bucket_of(10**12 + 5 * 10**9)


ramps = st.tuples(
    st.integers(1, 10**13),
    st.one_of(st.just(0), st.integers(1, 3), st.integers(1, 10**10)),
    st.integers(1, 200),
    st.integers(1, 9),
)


@given(st.lists(ramps, min_size=1, max_size=4))
def test_a_ramp_leaves_what_its_durations_one_by_one_leave(several):
    at_once, one_by_one = DurationHistogram(), DurationHistogram()
    for first, rise, steps, times in several:
        at_once.add_ramp(first, rise, steps, times)
        for step in range(steps):
            for _ in range(times):
                one_by_one.add(first + rise * step)
    for name in ("counts", "count", "sum_ps", "max_ps"):
        assert getattr(at_once, name) == getattr(one_by_one, name)


def test_number_sum_and_maximum_are_exact():
    histogram = DurationHistogram()
    histogram.add(1_234_567_891, 3)
    histogram.add(7)
    assert (histogram.count, histogram.sum_ps, histogram.max_ps) == (4, 3 * 1_234_567_891 + 7, 1_234_567_891)


def test_adding_a_duration_no_times_adds_nothing():
    histogram = DurationHistogram()
    histogram.add(10**9, 0)
    assert (histogram.count, histogram.counts, histogram.max_ps) == (0, {}, 0)


@given(st.lists(st.integers(1, 10**13), min_size=1, max_size=60), st.sampled_from([0, 0.5, 0.9, 0.95, 0.99, 1]))
def test_a_quantile_lies_in_the_bucket_of_the_exact_one(values, share):
    histogram = DurationHistogram()
    for value in values:
        histogram.add(value)
    exact = sorted(values)[int(share * (len(values) - 1))]
    quantile = histogram.quantile_ps(share)
    assert quantile == pytest.approx(exact, rel=0.005)
    assert quantile <= max(values)


def test_nothing_added_has_no_quantile():
    assert DurationHistogram().quantile_ps(0.5) is None


@given(st.lists(st.integers(1, 10**13), min_size=1, max_size=60), st.integers(1, 10**13))
def test_how_many_are_at_most_a_duration_is_exact_but_for_those_half_a_bucket_away(values, limit):
    histogram = DurationHistogram()
    for value in values:
        histogram.add(value)
    surely, perhaps = (sum(value <= limit * factor for value in values) for factor in (0.995, 1.005))
    assert surely <= histogram.at_most(limit) <= perhaps
    assert histogram.at_most(2 * 10**13) == len(values)


@given(st.lists(st.integers(0, 10**13), max_size=60))
def test_a_histogram_that_was_told_is_the_same_again(values):
    histogram = DurationHistogram()
    for value in values:
        histogram.add(value, 3)
    again = DurationHistogram.of(json.loads(json.dumps(histogram.telling())))
    for name in DurationHistogram.__slots__:
        assert getattr(again, name) == getattr(histogram, name)

"""Intervals, percentiles, paired differences: by hand, and against scipy."""

import numpy as np
import pytest
from scipy import stats

from kvsim.study.statistics.intervals import Interval, half_width, mean_interval, t_quantile
from kvsim.study.statistics.paired import paired_difference, variance_ratio, verdict
from kvsim.study.statistics.percentiles import independent_beyond, percentile_interval, samples_needed


def test_the_interval_of_a_mean_is_that_of_students_t():
    values = [3.1, 2.7, 4.4, 3.9, 3.0]
    low, high = stats.t.interval(0.9, 4, np.mean(values), stats.sem(values))
    interval = mean_interval(values, 0.9)
    assert (interval.low, interval.high) == pytest.approx((low, high))
    assert interval.half == pytest.approx((high - low) / 2)
    assert interval.relative == pytest.approx((high - low) / 2 / np.mean(values))


def test_studies_side_by_side_have_the_interval_that_each_has_alone():
    values = np.random.default_rng(0).normal(size=(3, 4, 6))
    assert half_width(values)[1, 2] == pytest.approx(mean_interval(values[1, 2]).half)


def test_a_single_sample_has_no_interval_and_none_no_estimate():
    assert mean_interval([2.0]) == Interval(2.0, None, None, 1)
    assert mean_interval([2.0]).half is None
    with pytest.raises(ValueError, match="at least one"):
        mean_interval([])
    with pytest.raises(ValueError, match="at least 2"):
        half_width([1.0])


def test_the_quantile_falls_to_that_of_the_normal_distribution():
    assert t_quantile(0.95, 1) == pytest.approx(12.706, abs=1e-3)
    assert t_quantile(0.95, 10**6) == pytest.approx(1.95996, abs=1e-4)


# Percentiles.


def test_a_percentile_is_that_of_all_samples_and_its_interval_the_sections_distance_to_it():
    sections = [[1.0, 2, 3, 4], [2.0, 3, 4, 9], [1.0, 1, 5, 6]]
    interval = percentile_interval(sections, 50)
    pooled = np.percentile(np.concatenate(sections), 50)
    apart = np.array([np.percentile(section, 50) for section in sections]) - pooled
    assert interval.estimate == pooled
    assert interval.half == pytest.approx(t_quantile(0.95, 2) * np.sqrt((apart**2).sum() / 2 / 3))


def test_a_single_section_has_no_interval_and_an_empty_one_is_refused():
    assert percentile_interval([[1.0, 2.0]], 50).low is None
    with pytest.raises(ValueError, match="sections"):
        percentile_interval([[1.0], []], 50)


def test_neighbours_beyond_a_percentile_count_once():
    section = [9, 9, 1, 1, 9, 1, 1, 1, 9, 9, 9, 1]
    assert independent_beyond(section, 5, 99) == 3
    assert independent_beyond(section, 5, 10) == 3
    assert independent_beyond([], 5, 99) == 0


def test_too_few_samples_are_told_with_how_many_would_do():
    generator = np.random.default_rng(0)
    few = [generator.exponential(size=200) for _ in range(5)]
    assert samples_needed(few, float(np.percentile(few, 50)), 50) is None
    assert samples_needed(few, float(np.percentile(few, 99)), 99) == pytest.approx(1000, rel=0.4)
    # What comes in rows of ten tells only a tenth.
    rows = [np.repeat(section, 10) for section in few]
    assert samples_needed(rows, float(np.percentile(rows, 99)), 99) == pytest.approx(10_000, rel=0.4)


def test_samples_that_never_vary_are_counted_as_they_are():
    assert samples_needed([np.ones(50)], 1.0, 99) == 1000


# Differences.


def test_the_difference_of_pairs_is_that_of_one_sample():
    ours, theirs = np.array([2.0, 3.5, 4.0, 8.0]), np.array([1.0, 2.0, 3.5, 6.0])
    low, high = stats.t.interval(0.95, 3, np.mean(ours - theirs), stats.sem(ours - theirs))
    found = paired_difference(ours, theirs, "lower")
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))
    assert found.variance_ratio == pytest.approx(np.var(ours - theirs) / (np.var(ours) + np.var(theirs)))
    assert found.variance_ratio < 0.1


def test_independent_streams_have_a_variance_ratio_around_one_and_opposed_ones_of_two():
    generator = np.random.default_rng(1)
    ours = generator.normal(size=100_000)
    assert variance_ratio(ours, generator.normal(size=100_000)) == pytest.approx(1, abs=0.02)
    assert variance_ratio(ours, -ours) == pytest.approx(2)


@pytest.mark.parametrize(
    ("low", "high", "better", "said"),
    [
        (1.0, 2.0, "lower", "worse"),
        (1.0, 2.0, "higher", "better"),
        (-2.0, -1.0, "lower", "better"),
        (-2.0, -1.0, "higher", "worse"),
        (-1.0, 1.0, "lower", "not distinguishable"),
        (0.0, 1.0, "lower", "not distinguishable"),
        (1.0, 2.0, None, "higher"),
        (-2.0, -1.0, None, "lower"),
        (0.0, 0.0, "lower", "same"),
        (None, None, "lower", "not compared"),
    ],
)
def test_a_verdict_is_plain(low, high, better, said):
    assert verdict(Interval(0.0, low, high, 5), better) == said


def test_what_never_varies_has_no_variance_ratio_and_a_certain_verdict():
    found = paired_difference([2.0, 2.0, 2.0], [1.0, 1.0, 1.0], "lower")
    assert found.variance_ratio is None
    assert found.verdict == "worse"


def test_samples_that_are_no_pairs_are_refused():
    with pytest.raises(ValueError, match="as many"):
        paired_difference([1.0, 2.0], [1.0])

"""Batches, warm-up, arrival windows, growth and going on: series whose answer is known."""

import numpy as np
import pytest
from scipy import signal

from kvsim.study.statistics.batches import (
    arrival_windows,
    batch_correlation,
    batch_interval,
    batch_means,
    lag_one,
    of_larger_batches,
)
from kvsim.study.statistics.bootstrap import (
    bootstrap_interval,
    drawn_sessions,
    resampled_percentiles,
    resampled_ratio,
)
from kvsim.study.statistics.intervals import Interval
from kvsim.study.statistics.saturation import growth_shares, queue
from kvsim.study.statistics.sequential import LEAST, more_replications, widest
from kvsim.study.statistics.warmup import mser5, mser5_time, mser_statistic


def autoregressive(correlation, length, rows=1, seed=0):
    noise = np.random.default_rng(seed).normal(size=(rows, length + 500))
    return signal.lfilter([1.0], [1.0, -correlation], noise, axis=-1)[:, 500:]


# Batches.


def test_batches_are_of_equal_length_and_what_is_left_over_is_the_oldest():
    assert batch_means([100.0, 1, 2, 3, 4, 5, 6], 3).tolist() == [1.5, 3.5, 5.5]
    with pytest.raises(ValueError, match="3 batches"):
        batch_means([1.0, 2.0], 3)


def test_the_correlation_of_neighbours_is_found_without_bias():
    for correlation in (0.0, 0.3, 0.7):
        assert lag_one(autoregressive(correlation, 60, 4000)).mean() == pytest.approx(correlation, abs=0.02)
    assert lag_one(np.ones(10)) == 0


def test_larger_batches_correlate_as_the_formula_says():
    series = autoregressive(0.8, 2000, 200)
    measured = lag_one(batch_means(series, 400)).mean()
    assert of_larger_batches(0.8, 5) == pytest.approx(measured, abs=0.02)
    assert of_larger_batches(0.0, 5) == 0
    assert of_larger_batches(1.0, 5) == pytest.approx(1.0)


def test_one_long_run_has_an_interval_and_says_how_its_batches_correlate():
    interval, correlation = batch_interval(autoregressive(0.5, 4000)[0])
    assert interval.samples == 20
    assert interval.low < 0 < interval.high
    assert correlation < 0.2
    assert batch_correlation(autoregressive(0.999, 4000)[0]) > 0.5


def test_requests_belong_to_the_window_in_which_they_arrive_both_ends_included():
    arrival_s = [-0.1, 0.0, 1.0, 4.0, 5.0, 9.0, 10.0, 11.0]
    assert arrival_windows(arrival_s, (0.0, 10.0), 5).tolist() == [-1, 0, 0, 2, 2, 4, 4, -1]


# Warm-up.


def test_mser_is_the_squared_error_of_what_is_left():
    series = np.array([50.0, 20, 8, 1, 2, 1, 2, 1])
    statistic = mser_statistic(series, batch=1)
    for cut in range(4):
        rest = series[cut:]
        assert statistic[cut] == pytest.approx(((rest - rest.mean()) ** 2).sum() / rest.size**2)


def test_the_cut_lies_behind_a_transient():
    noise = np.random.default_rng(2).normal(size=1000)
    series = noise + np.where(np.arange(1000) < 200, 10.0 * (1 - np.arange(1000) / 200), 0.0)
    cut = mser5(series)
    assert cut.settled
    assert 130 <= cut.values <= 220


def test_a_series_that_is_steady_from_the_start_loses_little():
    cuts = [mser5(np.random.default_rng(seed).normal(size=1000)).values for seed in range(20)]
    assert np.median(cuts) <= 100


def test_a_series_that_climbs_throughout_has_not_settled():
    assert not mser5(np.arange(500.0)).settled
    assert not mser5([1.0, 2.0]).settled


def test_a_cut_in_time_is_when_the_first_kept_value_comes():
    series = np.concatenate([np.full(20, 9.0), np.random.default_rng(3).normal(size=100)])
    time_s, settled = mser5_time(np.arange(120) * 0.5, series)
    assert time_s == 10.0
    assert settled
    assert mser5_time([0.0], [1.0]) == (0.0, False)


# Sessions.


def test_a_draw_takes_sessions_whole():
    sessions = drawn_sessions([7, 7, 3, 9, 9, 9], np.random.default_rng(0), draws=50)
    assert sessions.count == 3
    assert sessions.draws.sum(axis=1).tolist() == [3] * 50
    totals = resampled_ratio([1, 1, 1, 1, 1, 1], [1 / 3] * 6, sessions)
    assert totals == pytest.approx(np.full(50, 3.0))
    means = resampled_ratio([2.0, 4.0, 9.0, 5.0, 5.0, 5.0], np.ones(6), sessions)
    weights = sessions.draws[:, [1, 1, 0, 2, 2, 2]]
    assert means == pytest.approx((weights * [2, 4, 9, 5, 5, 5]).sum(axis=1) / weights.sum(axis=1))


def test_a_drawn_percentile_is_that_of_the_requests_written_out():
    generator = np.random.default_rng(1)
    values, owners = generator.exponential(size=60), generator.integers(0, 12, 60)
    values[5] = np.nan
    sessions = drawn_sessions(owners, generator, draws=30)
    found = resampled_percentiles(values, [50, 90], sessions)
    for draw, *percentiles in zip(sessions.draws, *found, strict=True):
        every = np.repeat(values, draw[sessions.of_request])
        assert percentiles == np.percentile(every[~np.isnan(every)], [50, 90], method="inverted_cdf").tolist()


def test_sessions_that_are_alike_inside_widen_the_interval():
    generator = np.random.default_rng(4)
    levels = np.repeat(generator.normal(size=100), 10)
    values = levels + 0.1 * generator.normal(size=1000)
    whole = drawn_sessions(np.repeat(np.arange(100), 10), generator)
    single = drawn_sessions(np.arange(1000), generator)
    widths = [bootstrap_interval(values.mean(), resampled_ratio(values, np.ones(1000), s), s.count).half
              for s in (whole, single)]  # fmt: skip
    assert widths[0] == pytest.approx(1.96 * levels.std() / 10, rel=0.15)
    assert widths[0] > 2.5 * widths[1]


def test_a_single_session_has_no_interval():
    sessions = drawn_sessions([0, 0, 0], np.random.default_rng(0))
    assert bootstrap_interval(2.0, resampled_ratio([1.0, 2, 3], np.ones(3), sessions), sessions.count).low is None


# The queue.


def test_growth_is_the_share_of_what_arrived_that_the_line_adds():
    assert growth_shares(np.arange(20.0) * 5, 1000) == pytest.approx(0.1)
    assert growth_shares(np.ones(20), 1000) == pytest.approx(0)


def test_a_queue_that_is_always_empty_is_neither_growing_nor_remembering():
    found = queue(np.zeros((5, 20)), np.zeros((5, 20)), [100] * 5)
    assert not found.saturated
    assert found.memory == 0
    assert found.forgets


def test_a_queue_that_grows_alike_in_every_replication_is_saturated():
    line = np.arange(20.0)
    assert queue([line] * 3, [line] * 3, [100] * 3).saturated
    assert queue([line], [line], [100]).saturated
    assert not queue([line], [line], [10_000]).saturated


def test_those_who_are_served_tell_how_long_a_queue_remembers():
    found = queue(np.zeros((1, 20)), [np.arange(20.0)], [100])
    assert not found.saturated
    assert not found.forgets


# Going on.


def test_replications_grow_with_the_square_of_what_is_missing_and_at_most_double():
    assert more_replications(0, [], 0.05) == LEAST
    assert more_replications(40, [Interval(1.0, 0.9, 1.1, 40)], 0.08) == 23
    assert more_replications(40, [Interval(1.0, 0.5, 1.5, 40)], 0.05) == 40
    assert more_replications(40, [Interval(1.0, 0.96, 1.04, 40)], 0.05) == 0
    assert more_replications(40, [Interval(1.0, 0.5, 1.5, 40)], 0.05, most=50) == 10
    assert more_replications(3, [Interval(1.0, 0.99, 1.01, 3)], 0.05) == LEAST - 3


def test_the_widest_interval_decides_and_what_is_around_zero_does_not():
    assert widest([Interval(1.0, 0.9, 1.1, 10), Interval(0.0, -1.0, 1.0, 10)]) == pytest.approx(0.1)
    assert widest([Interval(1.0, None, None, 10)]) is None

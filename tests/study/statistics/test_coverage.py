"""Intervals cover the truth as often as they say, and where they do not the tool says so: on M/M/1 queues.

Band of the full studies: 93.5-96.5 % of 2,000, three standard errors around 95 %. The small ones in the suite hold the
same three standard errors of their own number.
"""

from collections import Counter

import numpy as np
import pytest

from kvsim.study.statistics.batches import CORRELATION_LIMIT, batch_correlation, batch_means
from kvsim.study.statistics.bootstrap import bootstrap_interval, drawn_sessions, resampled_ratio
from kvsim.study.statistics.intervals import half_width, mean_interval
from kvsim.study.statistics.paired import paired_half_width, variance_ratio
from kvsim.study.statistics.percentiles import BEYOND, independent_beyond, pooled_and_sections, spread_about
from kvsim.study.statistics.saturation import (
    ESTIMATED_TO,
    MEMORY_LIMIT,
    SLICES,
    growth_shares,
    queue_grows,
    queue_memory,
    times_as_long,
)
from kvsim.study.statistics.sequential import LEAST, more_replications
from tests.study.statistics.lindley import Streams

FASTER = 1.1
AT_ONCE = 20


def coverage(load, *, studies, replications, requests, warmup, seed):
    """How often 95 % intervals of mean, p99 and their paired differences cover, and the mean variance ratio."""
    generator = np.random.default_rng(seed)
    covered, ratios = Counter(), []
    for first in range(0, studies, AT_ONCE):
        shape = (min(AT_ONCE, studies - first), replications, warmup + requests)
        streams = Streams(generator, load, shape)
        ours, theirs = (streams.stays(speed)[..., warmup:] for speed in (1.0, FASTER))
        mean, other = ours.mean(axis=-1), theirs.mean(axis=-1)
        apart = streams.mean_stay() - streams.mean_stay(FASTER)
        covered["mean"] += int((abs(mean.mean(axis=-1) - streams.mean_stay()) <= half_width(mean)).sum())
        gap = abs((mean - other).mean(axis=-1) - apart)
        covered["difference of means"] += int((gap <= paired_half_width(mean, other)).sum())
        pooled, sections = pooled_and_sections(ours, 99)
        low, below = pooled_and_sections(theirs, 99)
        gap = abs(pooled - streams.percentile_stay(99))
        covered["p99"] += int((gap <= spread_about(pooled, sections)).sum())
        gap = abs(pooled - low - streams.percentile_stay(99) + streams.percentile_stay(99, FASTER))
        covered["difference of p99"] += int((gap <= spread_about(pooled - low, sections - below)).sum())
        ratios.append(float(variance_ratio(mean, other).mean()))
    return {name: count / studies for name, count in covered.items()}, float(np.mean(ratios))


@pytest.mark.slow
@pytest.mark.parametrize(("load", "requests"), [(0.3, 4000), (0.6, 10_000)])
def test_intervals_cover_the_truth_in_95_of_100_studies(load, requests):
    shares, ratio = coverage(load, studies=2000, replications=10, requests=requests, warmup=500, seed=20)
    print(f"load {load}: {shares}, variance ratio {ratio:.3f}")
    assert all(0.935 <= share <= 0.965 for share in shares.values()), shares
    assert 0 < ratio < 0.2


def test_intervals_cover_the_truth_in_a_small_study():
    studies = 300
    shares, ratio = coverage(0.5, studies=studies, replications=8, requests=4000, warmup=200, seed=21)
    reach = 3 * np.sqrt(0.95 * 0.05 / studies)
    assert all(abs(share - 0.95) <= reach for share in shares.values()), shares
    assert 0 < ratio < 0.2


def queue_slices(streams, warmup=0):
    """The mean queue in equal slices: by Little's law the waiting time times the arrival rate."""
    return batch_means(streams.waits()[..., warmup:], SLICES) * streams.load


def test_at_low_load_a_run_is_long_enough_and_no_queue_grows():
    streams = Streams(np.random.default_rng(3), 0.6, (300, 10, 2000))
    slices = queue_slices(streams)
    assert (queue_memory(slices) > MEMORY_LIMIT).mean() <= 0.02
    assert queue_grows(slices, np.full((300, 10), 2000)).mean() <= 0.02
    assert queue_grows(slices[:, :1], np.full((300, 1), 2000)).mean() <= 0.02


@pytest.mark.parametrize("load", [0.9, 0.95])
def test_at_high_load_intervals_fail_and_the_tool_says_so_itself(load):
    streams = Streams(np.random.default_rng(4), load, (200, 10, 2200))
    stays = streams.stays()[..., 200:].mean(axis=-1)
    covered = (abs(stays.mean(axis=-1) - streams.mean_stay()) <= half_width(stays)).mean()
    assert covered < 0.92
    assert (queue_memory(queue_slices(streams, 200)) > MEMORY_LIMIT).mean() >= 0.95


def test_a_run_long_against_its_queue_is_trusted_at_high_load_and_covers():
    streams = Streams(np.random.default_rng(5), 0.9, (60, 6, 35_000))
    stays = streams.stays()[..., 5000:].mean(axis=-1)
    assert (queue_memory(queue_slices(streams, 5000)) > MEMORY_LIMIT).mean() <= 0.05
    covered = (abs(stays.mean(axis=-1) - streams.mean_stay()) <= half_width(stays)).mean()
    assert covered >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 60)


@pytest.mark.parametrize(("load", "requests"), [(0.8, 500), (0.9, 2000), (0.9, 3000), (0.95, 8000)])
def test_a_run_so_many_times_as_long_as_is_told_forgets(load, requests):
    """Half as long it does not, and twice as long it does: the estimate of the median study."""
    generator = np.random.default_rng(12)

    def memories(length, studies):
        streams = Streams(generator, load, (studies, 5, length + 1000))
        return queue_memory(queue_slices(streams, 1000))

    found = memories(requests, 60)
    assert MEMORY_LIMIT < np.median(found) <= ESTIMATED_TO
    told = np.median([times_as_long(memory) for memory in found if memory > MEMORY_LIMIT])
    assert np.median(memories(round(told * requests / 2), 30)) > MEMORY_LIMIT
    assert np.median(memories(round(told * requests * 2), 30)) < MEMORY_LIMIT


def test_a_run_that_knows_next_to_nothing_of_its_queue_tells_the_least_it_takes():
    streams = Streams(np.random.default_rng(13), 0.95, (60, 5, 1500))
    short = np.median(queue_memory(queue_slices(streams, 1000)))
    assert short > ESTIMATED_TO
    least = times_as_long(float(short))
    longer = Streams(np.random.default_rng(13), 0.95, (30, 5, 1000 + round(500 * least)))
    assert np.median(queue_memory(queue_slices(longer, 1000))) > MEMORY_LIMIT


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.5])
def test_a_correlation_that_is_none_has_no_length(wrong):
    with pytest.raises(ValueError, match="between 0 and 1"):
        times_as_long(wrong)


@pytest.mark.parametrize(
    ("load", "replications", "requests"), [(1.05, 10, 2000), (1.2, 3, 1000), (1.2, 1, 2000), (1.5, 1, 1000)]
)
def test_an_overloaded_queue_is_told_by_its_growth(load, replications, requests):
    streams = Streams(np.random.default_rng(6), load, (200, replications, requests))
    slices, arrivals = queue_slices(streams), np.full((200, replications), requests)
    assert queue_grows(slices, arrivals).mean() >= 0.95
    assert growth_shares(slices, arrivals).mean() == pytest.approx(load - 1, rel=0.2)


def test_percentiles_that_cover_too_rarely_are_warned_of():
    streams = Streams(np.random.default_rng(7), 0.6, (100, 10, 1000))
    stays = streams.stays()
    pooled, sections = pooled_and_sections(stays, 99)
    covered = (abs(pooled - streams.percentile_stay(99)) <= spread_about(pooled, sections)).mean()
    assert covered < 0.93
    beyond = [[independent_beyond(one, top, 99) for one in study] for study, top in zip(stays, pooled, strict=True)]
    assert (np.mean(beyond, axis=1) < BEYOND).all()


def test_batch_means_of_one_long_run_cover_and_their_correlation_tells_a_short_one():
    streams = Streams(np.random.default_rng(8), 0.6, (400, 12_000))
    means = batch_means(streams.stays()[..., 2000:])
    covered = (abs(means.mean(axis=-1) - streams.mean_stay()) <= half_width(means)).mean()
    assert abs(covered - 0.95) <= 3 * np.sqrt(0.95 * 0.05 / 400)
    assert (batch_correlation(streams.stays()[..., 2000:]) > CORRELATION_LIMIT).mean() <= 0.02
    short = Streams(np.random.default_rng(9), 0.9, (200, 3000))
    means = batch_means(short.stays()[..., 500:])
    assert (abs(means.mean(axis=-1) - short.mean_stay()) <= half_width(means)).mean() < 0.85
    assert (batch_correlation(short.stays()[..., 500:]) > CORRELATION_LIMIT).mean() >= 0.9


def test_stopping_when_the_interval_is_short_covers_less_often_but_not_much():
    generator = np.random.default_rng(10)
    studies, most, target = 400, 200, 0.05
    stays = np.concatenate(
        [
            Streams(generator, 0.6, (AT_ONCE, most, 400)).stays()[..., 100:].mean(axis=-1)
            for _ in range(studies // AT_ONCE)
        ]
    )
    covered = run = 0
    for means in stays:
        done = LEAST
        while more := more_replications(done, [mean_interval(means[:done])], target, most=most):
            done += more
        interval = mean_interval(means[:done])
        assert interval.relative is not None
        assert interval.relative <= target or done == most
        run += done
        covered += interval.low <= 2.5 <= interval.high
    print(f"sequential: {covered / studies:.3f} cover after {run / studies:.0f} replications")
    assert LEAST < run / studies < most
    assert 0.90 <= covered / studies <= 0.96


def test_drawing_whole_sessions_covers_where_drawing_requests_does_not():
    generator = np.random.default_rng(11)
    studies, count, turns = 120, 60, 5
    covered = Counter()
    for _ in range(studies):
        # Every session has a level of its own; the truth is the mean level, 0.
        values = np.repeat(generator.normal(size=count), turns) + 0.3 * generator.normal(size=count * turns)
        for name, owners in (("sessions", np.arange(count * turns) // turns), ("requests", np.arange(count * turns))):
            sessions = drawn_sessions(owners, generator, draws=200)
            means = resampled_ratio(values, np.ones(values.size), sessions)
            interval = bootstrap_interval(float(values.mean()), means, sessions.count)
            covered[name] += interval.low <= 0 <= interval.high
    assert 0.89 <= covered["sessions"] / studies <= 0.99
    assert covered["requests"] / studies < 0.75

"""Arrivals whose rate changes with time: their course, their clustering, and what they refuse."""

from itertools import islice, pairwise

import numpy as np
import pytest

from kvsim.request import PS_PER_S
from kvsim.workload.arrivals import ARRIVALS, Clients, Diurnal, Mmpp, OnOff, Ramp, Spikes, Stages
from tests.workload.arrivals.dispersion import counts, own_idc

BURSTY = Mmpp(rate=5, rates=[1, 10, 30], sojourns_s=[20, 10, 2], moves=[[0, 0.7, 0.3], [0.5, 0, 0.5], [0.2, 0.8, 0]])
DAY = [1, 2, 3, 4] * 6
PROCESSES = [
    BURSTY,
    Mmpp(rate=8, rates=[0, 10], sojourns_s=[3, 2], scale="count", cv=2),
    OnOff(rate=8, on_s=2, off_s=6),
    Diurnal(rate=8, profile=DAY, day_s=480, noise=0.3, start_hour=5.5),
    Spikes(rate=8, factor=20, every_s=60, spike_s=5),
    Ramp(rate=8, ramp_s=100, cv=0.5),
    Stages(rate=4, stages=[{"rate": 2, "duration_s": 30}, {"rate": 0, "to": 12, "duration_s": 30}], repeat=True),
    Clients(rate=8, clients=20, theta=1.2, each="weibull", cv=2),
]


def times_s(process, count=20_000, seed=0, **chunk):
    return np.array(list(islice(process.arrivals_ps(np.random.default_rng(seed), **chunk), count))) / PS_PER_S


def test_the_registry_names_each_process_as_it_names_itself():
    named = "poisson constant gamma weibull mmpp on-off diurnal spikes ramp stages clients"
    assert list(ARRIVALS) == named.split()
    assert all(kind.process == name for name, kind in ARRIVALS.items())


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.process)
def test_arrivals_are_whole_picoseconds_that_never_decrease(process):
    got = list(islice(process.arrivals_ps(np.random.default_rng(1)), 5_000))
    assert all(type(time) is int for time in got)
    assert got[0] >= 0
    assert all(before <= after for before, after in pairwise(got))


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.process)
def test_the_chunk_in_which_they_are_drawn_changes_nothing(process):
    assert times_s(process, 3_000, chunk=7).tolist() == times_s(process, 3_000, chunk=1024).tolist()


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.process)
def test_in_the_long_run_the_rate_is_the_rate(process):
    # Windows that hold whole periods; the ramp, which comes once, is far behind. Three standard errors of the mean.
    found = counts(process, 480, 150)[10:]
    error = found.std(ddof=1) / len(found) ** 0.5
    assert found.mean() / 480 == pytest.approx(process.rate, abs=3 * error / 480 + 1e-9)


@pytest.mark.parametrize("process", [PROCESSES[0], Mmpp(rate=8, rates=[0, 10], sojourns_s=[30, 20], scale="count")])
@pytest.mark.parametrize("window_s", [2, 60])
def test_the_clustering_of_states_is_that_of_their_matrices(process, window_s):
    found = counts(process, window_s, 2_500)
    assert found.var() / found.mean() == pytest.approx(own_idc(process, window_s), rel=0.12)


def test_on_and_off_are_the_two_states_of_which_one_is_silent():
    states = Mmpp(rate=8, rates=[1, 0], sojourns_s=[2, 6], scale="count")
    assert times_s(OnOff(rate=8, on_s=2, off_s=6)).tolist() == times_s(states).tolist()


def test_a_higher_rate_shortens_bursts_or_fills_them_as_the_scale_says():
    slow, shorter, fuller = (
        counts(Mmpp(rate=rate, rates=[0.1, 20], sojourns_s=[20, 20], scale=scale), 1, 15_000)
        for rate, scale in ((10.05, "time"), (40.2, "time"), (40.2, "count"))
    )

    def bursts(found, level):
        """How often the count of a second crosses a level that lies between the two states."""
        return np.count_nonzero(np.diff(found > level))

    assert bursts(fuller, 20) == pytest.approx(bursts(slow, 5), rel=0.15)
    assert bursts(shorter, 20) > 2.5 * bursts(slow, 5)


def test_hours_have_the_rates_of_the_profile():
    found = counts(Diurnal(rate=50, profile=DAY, day_s=240, start_hour=2), 10, 24 * 50).reshape(50, 24).sum(axis=0)
    expected = 50 * 10 * 50 * np.roll(DAY, -2) / np.mean(DAY)
    assert np.abs(found - expected).max() < 4.5 * expected.max() ** 0.5


def test_noise_moves_every_hour_of_every_day_and_not_the_mean():
    calm, noisy = (counts(Diurnal(rate=40, profile=[1] * 24, day_s=240, noise=n), 10, 1_500) for n in (0, 0.3))
    assert calm.std() / calm.mean() < 0.06
    assert noisy.std() / noisy.mean() == pytest.approx((0.3**2 + 1 / 400) ** 0.5, rel=0.1)
    assert noisy.mean() == pytest.approx(400, rel=0.03)


def test_a_spike_comes_when_it_should_and_is_as_high_as_it_should():
    found = counts(Spikes(rate=50, factor=10, every_s=100, spike_s=10, first_s=30), 10, 1_000).reshape(100, 10)
    usual = 50 * 100 / (90 + 100)
    mean = found.mean(axis=0) / 10
    assert mean[3] == pytest.approx(10 * usual, rel=0.02)
    assert np.delete(mean, 3) == pytest.approx(np.full(9, usual), rel=0.06)


def test_a_ramp_climbs_in_a_straight_line_and_stays():
    found = counts(Ramp(rate=400, ramp_s=100, start=0.5), 10, 20) / 10
    expected = np.concatenate((210 + 20 * np.arange(10), np.full(10, 400)))
    assert np.abs(found - expected).max() < 4.5 * (400 / 10) ** 0.5


def test_arrivals_end_with_the_last_stage():
    stages = [{"rate": 100, "duration_s": 10}, {"rate": 0, "duration_s": 10}, {"rate": 50, "duration_s": 4}]
    got = times_s(Stages(rate=50, stages=stages), 10_000)
    assert 1_000 < len(got) < 1_400
    assert not np.any((got > 10) & (got < 20))
    assert got[-1] < 24


def test_stages_are_scaled_to_another_mean_rate():
    stages = [{"rate": 1, "duration_s": 50}, {"rate": 3, "duration_s": 50}]
    found = counts(Stages(rate=200, stages=stages), 50, 2)
    assert found == pytest.approx([5_000, 15_000], rel=0.05)


def test_gaps_at_a_steady_rate_vary_as_asked():
    gaps = np.diff(times_s(Stages(rate=8, stages=[{"rate": 8, "duration_s": 10_000}], cv=2), 40_000))
    assert gaps.std() / gaps.mean() == pytest.approx(2, rel=0.03)


def test_clients_send_shares_by_zipfs_law_each_from_a_stream_of_its_own():
    few, more = Clients(rate=3, clients=2, theta=1), Clients(rate=3.5 * 10 / 11, clients=3, theta=1)
    assert few.shares == pytest.approx([2 / 3, 1 / 3])
    # The first client sends 2 per second among two, and 21 / 11 of that share of 6 / 11 among three.
    alone = [next(iter(process.arrivals_ps(np.random.default_rng(0).spawn(1)[0])))
             for process in (few._client(2 / 3), more._client(6 / 11))]  # fmt: skip
    assert alone[0] in set(islice(few.arrivals_ps(np.random.default_rng(0)), 20))
    assert alone[1] in set(islice(more.arrivals_ps(np.random.default_rng(0)), 20))


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Mmpp(rate=1, rates=[1], sojourns_s=[1]), "rates"),
        (lambda: Mmpp(rate=1, rates=[1, 2], sojourns_s=[1]), "rates"),
        (lambda: Mmpp(rate=1, rates=[0, 0], sojourns_s=[1, 1]), "rates"),
        (lambda: Mmpp(rate=1, rates=[1, -2], sojourns_s=[1, 1]), "rates"),
        (lambda: Mmpp(rate=1, rates=[1, 2], sojourns_s=[1, 0]), "sojourns_s"),
        (lambda: Mmpp(rate=1, rates=[1, 2], sojourns_s=[1, 1], scale="both"), "scale"),
        (lambda: Mmpp(rate=1, rates=[1, 2], sojourns_s=[1, 1], moves=[[0, 1]]), "moves"),
        (lambda: Mmpp(rate=1, rates=[1, 2], sojourns_s=[1, 1], moves=[[0.5, 0.5], [1, 0]]), "moves"),
        (lambda: Mmpp(rate=1, rates=[1, 2, 3], sojourns_s=[1] * 3, moves=[[0, 1, 0], [1, 0, 0], [1, 0, 0]]), "moves"),
        (lambda: OnOff(rate=1, on_s=0, off_s=1), "on_s"),
        (lambda: Diurnal(rate=1, profile=[1] * 23), "profile"),
        (lambda: Diurnal(rate=1, profile=[0] * 24), "profile"),
        (lambda: Diurnal(rate=1, profile=DAY, start_hour=24), "start_hour"),
        (lambda: Spikes(rate=1, factor=2, every_s=5, spike_s=5), "spike_s"),
        (lambda: Ramp(rate=1, ramp_s=0), "ramp_s"),
        (lambda: Stages(rate=1, stages=[]), "stages"),
        (lambda: Stages(rate=1, stages=[{"rate": 0, "duration_s": 5}]), "stages"),
        (lambda: Stages(rate=1, stages=[{"rate": 1, "duration_s": 0}]), "stages.duration_s"),
        (lambda: Clients(rate=1, clients=0), "clients"),
        (lambda: Clients(rate=1, clients=2, each="gamma"), "cv"),
        (lambda: Clients(rate=1, clients=2, cv=2), "cv"),
        (lambda: Ramp(rate=1, ramp_s=1, cv=0), "cv"),
        (lambda: Ramp(rate=0, ramp_s=1), "rate"),
    ],
)
def test_what_makes_no_process_is_refused_by_name(make, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        make()

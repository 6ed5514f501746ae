"""Arrivals of independent gaps: rates, variation, exactness, and what they refuse."""

from itertools import islice, pairwise

import numpy as np
import pytest

from kvsim.request import PS_PER_S
from kvsim.workload.arrivals import Constant, Gamma, Poisson, Weibull

MANY = 40_000


def arrivals_ps(process, count=MANY, seed=0, **chunk):
    return list(islice(process.arrivals_ps(np.random.default_rng(seed), **chunk), count))


def gaps_s(process):
    return np.diff(arrivals_ps(process), prepend=0) / PS_PER_S


@pytest.mark.parametrize(
    "process",
    [Poisson(rate=8), Gamma(rate=8, cv=3), Gamma(rate=8, cv=0.5), Weibull(rate=8, cv=3), Constant(rate=8)],
    ids=repr,
)
def test_the_mean_rate_is_the_rate_within_three_standard_errors(process):
    cv = getattr(process, "cv", 1 if isinstance(process, Poisson) else 0)
    assert MANY / (arrivals_ps(process)[-1] / PS_PER_S) == pytest.approx(8, rel=3 * cv / MANY**0.5 + 1e-12)


@pytest.mark.parametrize(
    ("process", "cv"),
    [
        (Poisson(rate=2), 1),
        (Gamma(rate=2, cv=0.3), 0.3),
        (Gamma(rate=2, cv=2), 2),
        (Weibull(rate=2, cv=0.3), 0.3),
        (Weibull(rate=2, cv=2), 2),
    ],
)
def test_gaps_vary_as_the_process_says(process, cv):
    gaps = gaps_s(process)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03)


def test_poisson_gaps_are_exponential_at_every_decile():
    expected = -np.log(1 - np.arange(0.1, 1, 0.1)) / 8
    assert np.quantile(gaps_s(Poisson(rate=8)), np.arange(0.1, 1, 0.1)) == pytest.approx(expected, rel=0.04)


@pytest.mark.parametrize("kind", [Gamma, Weibull])
def test_a_cv_of_1_has_the_spread_of_poisson(kind):
    assert np.median(gaps_s(kind(rate=8, cv=1))) == pytest.approx(np.log(2) / 8, rel=0.03)


def test_constant_arrivals_round_once_and_do_not_drift():
    got = arrivals_ps(Constant(rate=3), 30_000)
    assert got[:3] == [333_333_333_333, 666_666_666_667, PS_PER_S]
    assert got[-1] == 10_000 * PS_PER_S


def test_a_rate_of_one_tenth_means_one_tenth():
    assert arrivals_ps(Constant(rate=0.1), 3) == [10 * PS_PER_S, 20 * PS_PER_S, 30 * PS_PER_S]


@pytest.mark.parametrize(
    "process", [Poisson(rate=8), Gamma(rate=8, cv=30), Weibull(rate=8, cv=30), Constant(rate=8)], ids=repr
)
def test_arrivals_are_whole_picoseconds_that_never_decrease(process):
    got = arrivals_ps(process, 5_000)
    assert all(type(time) is int for time in got)
    assert got[0] >= 0
    assert all(before <= after for before, after in pairwise(got))


@pytest.mark.parametrize(
    "process", [Poisson(rate=8), Gamma(rate=8, cv=3), Weibull(rate=8, cv=3), Constant(rate=8)], ids=repr
)
def test_the_chunk_in_which_they_are_drawn_changes_nothing(process):
    assert arrivals_ps(process, 3_000, chunk=7) == arrivals_ps(process, 3_000, chunk=1024)


@pytest.mark.parametrize("kind", [Poisson, Constant, lambda rate: Gamma(rate=rate, cv=1)])
@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), "8", None, True, 1e-9, 1e13])
def test_a_rate_that_is_no_rate_is_refused_by_name(kind, rate):
    with pytest.raises(ValueError, match=r"^rate: "):
        kind(rate=rate)


@pytest.mark.parametrize("cv", [0, -1, float("nan"), float("inf"), "1", 1e-200, 1e200])
@pytest.mark.parametrize("kind", [Gamma, Weibull])
def test_a_cv_that_no_law_has_is_refused_by_name(kind, cv):
    with pytest.raises(ValueError, match=r"^cv: "):
        kind(rate=1, cv=cv)


def test_a_process_describes_itself_as_a_scenario_would_write_it():
    assert Gamma(rate=8, cv=2.5).describe() == {"process": "gamma", "rate": 8, "cv": 2.5}
    assert Constant(rate=8).describe() == {"process": "constant", "rate": 8}

"""Length distributions: means and quantiles against theory, clipping, and what they refuse."""

from itertools import islice
from math import exp, log

import numpy as np
import pytest

from kvsim.workload.lengths import (
    LENGTHS,
    LONGEST,
    Constant,
    Empirical,
    Exponential,
    Gamma,
    JointRows,
    Lognormal,
    Mixture,
    Pareto,
    Preset,
    Tally,
    Uniform,
    Weibull,
    Zipf,
)

MANY = 100_000
EVERY_LAW = [
    Constant(value=7),
    Uniform(min=3, max=9),
    Lognormal(median=400, sigma=0.7),
    Gamma(mean=500, cv=0.8),
    Exponential(mean=300),
    Zipf(theta=0.76, min=1, max=2000),
    Empirical(quantiles=[[0, 1], [0.5, 100], [1, 1000]]),
    Weibull(mean=300, shape=0.8),
    Pareto(alpha=2.5, min=40),
    Mixture(parts=[(0.3, Constant(value=7)), (0.7, Lognormal(median=400, sigma=0.7, max=900, outside="redraw"))]),
    Preset(preset="azure-conv", of="prompt_tokens"),
]


def draw(law, count=MANY):
    return law.draw(np.random.default_rng(0), count)


def quantile(law, *at):
    return np.quantile(draw(law), at).tolist()


def test_the_registry_names_each_law_as_it_names_itself():
    assert set(LENGTHS) == {
        *("constant", "uniform", "lognormal", "gamma", "weibull", "exponential", "pareto", "zipf"),
        *("empirical", "mixture", "preset"),
    }
    assert all(kind.distribution == name for name, kind in LENGTHS.items())
    assert {law.distribution for law in EVERY_LAW} == set(LENGTHS)


@pytest.mark.parametrize("law", EVERY_LAW, ids=lambda law: law.distribution)
def test_lengths_are_whole_numbers_of_at_least_one(law):
    got = draw(law, 5_000)
    assert got.dtype == np.int64
    assert got.min() >= 1


@pytest.mark.parametrize("law", EVERY_LAW, ids=lambda law: law.distribution)
def test_the_chunk_in_which_they_are_drawn_changes_nothing(law):
    by_seven, by_many = (list(islice(law.lengths(np.random.default_rng(3), chunk), 3_000)) for chunk in (7, 1024))
    assert by_seven == by_many


def test_constant_is_constant():
    assert set(draw(Constant(value=7), 100).tolist()) == {7}


def test_uniform_gives_both_ends_and_all_between_equally_often():
    values, counts = np.unique(draw(Uniform(min=3, max=7)), return_counts=True)
    assert values.tolist() == [3, 4, 5, 6, 7]
    assert counts / MANY == pytest.approx(0.2, abs=0.005)


def test_lognormal_by_median_has_that_median_and_the_95_percent_point_of_theory():
    assert quantile(Lognormal(median=400, sigma=0.7), 0.5, 0.95) == pytest.approx(
        [400, 400 * exp(1.6449 * 0.7)], rel=0.02
    )


def test_lognormal_by_mean_has_that_mean():
    assert draw(Lognormal(mean=400, sigma=0.7)).mean() == pytest.approx(400, rel=0.01)


def test_lognormal_by_mu_is_lognormal_by_median():
    assert draw(Lognormal(mu=log(400), sigma=0.7), 50).tolist() == draw(Lognormal(median=400, sigma=0.7), 50).tolist()


def test_gamma_has_its_mean_and_cv():
    got = draw(Gamma(mean=500, cv=0.8))
    assert got.mean() == pytest.approx(500, rel=0.01)
    assert got.std() / got.mean() == pytest.approx(0.8, rel=0.01)


def test_exponential_has_its_mean_and_median():
    assert draw(Exponential(mean=300)).mean() == pytest.approx(300, rel=0.01)
    assert quantile(Exponential(mean=300), 0.5)[0] == pytest.approx(300 * log(2), rel=0.02)


def test_zipf_follows_its_power_law_value_by_value():
    weights = np.arange(2, 7) ** -1.5
    values, counts = np.unique(draw(Zipf(theta=1.5, min=2, max=6)), return_counts=True)
    assert values.tolist() == [2, 3, 4, 5, 6]
    assert counts / MANY == pytest.approx(weights / weights.sum(), abs=0.005)


def test_zipf_of_theta_0_is_uniform_and_a_steep_one_stays_at_its_shortest():
    assert draw(Zipf(theta=0, min=1, max=100)).mean() == pytest.approx(50.5, rel=0.01)
    assert set(draw(Zipf(theta=1e6, min=1000, max=2000), 100).tolist()) == {1000}


def test_empirical_pairs_are_joined_by_straight_lines():
    law = Empirical(quantiles=[[0, 100], [0.5, 200], [1, 1000]])
    assert quantile(law, 0, 0.25, 0.5, 0.75, 1) == pytest.approx([100, 150, 200, 600, 1000], rel=0.02)


def test_an_empirical_list_is_equally_spaced():
    evenly = Empirical(quantiles=[100, 200, 1000])
    by_pairs = Empirical(quantiles=[[0, 100], [0.5, 200], [1, 1000]])
    assert draw(evenly, 100).tolist() == draw(by_pairs, 100).tolist()


def test_weibull_by_mean_and_by_scale_are_one_law():
    law = Weibull(mean=300, shape=2)
    assert draw(law).mean() == pytest.approx(300, rel=0.01)
    assert quantile(law, 0.5)[0] == pytest.approx(300 / (np.pi / 4) ** 0.5 * log(2) ** 0.5, rel=0.01)
    assert draw(Weibull(scale=100, shape=0.7), 1_000_000).mean() == pytest.approx(100 * 1.2658, rel=0.01)


def test_pareto_has_its_tail_and_its_mean():
    law = Pareto(alpha=3, min=100)
    assert draw(law).min() == 100
    assert quantile(law, 0.5, 0.99) == pytest.approx([100 * 2 ** (1 / 3), 100 * 100 ** (1 / 3)], rel=0.02)
    assert draw(law).mean() == pytest.approx(150, rel=0.02)


def test_a_mixture_has_the_shares_of_its_parts():
    law = Mixture(parts=[(1, Constant(value=5)), (3, Uniform(min=101, max=200))])
    got = draw(law)
    assert np.mean(got == 5) == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / MANY) ** 0.5)
    assert np.quantile(got[got > 5], [0.25, 0.5, 0.75]) == pytest.approx([125, 150, 175], abs=1)


def test_a_part_of_a_mixture_draws_from_a_stream_of_its_own():
    second = Lognormal(median=1000, sigma=1, min=100)
    few, many = (draw(Mixture(parts=[(weight, Constant(value=1)), (1, second)])) for weight in (1, 9))
    assert few[few > 1][:5_000].tolist() == many[many > 1][:5_000].tolist()


def test_joint_rows_stay_together_and_come_equally_often():
    rows = JointRows([(10, 1), (20, 2), (30, 3)], name="here")
    got = list(islice(rows.pairs(np.random.default_rng(0), 7), 30_000))
    assert got == list(islice(rows.pairs(np.random.default_rng(0), 1024), 30_000))
    assert set(got) == {(10, 1), (20, 2), (30, 3)}
    assert all(abs(got.count(row) - 10_000) < 500 for row in set(got))
    with pytest.raises(ValueError, match=r"^rows: "):
        JointRows([])


def test_what_falls_outside_can_be_drawn_again_instead():
    clipped, redrawn = (draw(Exponential(mean=100, max=100, outside=how)) for how in ("clip", "redraw"))
    assert np.mean(clipped == 100) == pytest.approx(exp(-0.995), rel=0.02)
    assert np.mean(redrawn == 100) < 0.01
    # The mean of an exponential law given that it is below its own mean: 1 - 1 / (e - 1).
    assert redrawn.mean() == pytest.approx(100 * (1 - 1 / (exp(1) - 1)), rel=0.01)


def test_what_falls_outside_is_counted():
    tally = Tally()
    list(islice(Exponential(mean=100, max=100).lengths(np.random.default_rng(0), 1000, tally), 50_000))
    assert tally.drawn == 50_000
    assert tally.outside / tally.drawn == pytest.approx(exp(-1.005), abs=0.01)


def test_a_law_with_nothing_inside_its_bounds_says_so():
    with pytest.raises(ValueError, match="hardly any length of this exponential law lies from 100000 to"):
        draw(Exponential(mean=1, min=100_000, outside="redraw"), 10)


@pytest.mark.parametrize("kind", [Lognormal, Exponential])
def test_what_falls_outside_the_bounds_piles_up_on_them(kind):
    law = kind(mean=400, min=300, max=500, **({"sigma": 0.7} if kind is Lognormal else {}))
    free = kind(mean=400, **({"sigma": 0.7} if kind is Lognormal else {}))
    assert draw(law, 1_000).tolist() == np.clip(draw(free, 1_000), 300, 500).tolist()


def test_a_length_too_long_to_count_becomes_the_longest():
    assert draw(Lognormal(mu=0, sigma=1000), 1_000).max() == LONGEST


@pytest.mark.parametrize(
    ("kind", "parameters", "argument"),
    [
        (Constant, {"value": 0}, "value"),
        (Constant, {"value": 1.5}, "value"),
        (Constant, {"value": True}, "value"),
        (Constant, {"value": 5, "min": 0}, "min"),
        (Uniform, {"min": 0, "max": 5}, "min"),
        (Uniform, {"min": 9, "max": 5}, "max"),
        (Uniform, {"min": 9}, "max"),
        (Lognormal, {"sigma": 1}, "mean"),
        (Lognormal, {"sigma": 1, "mean": 5, "mu": 1}, "mean"),
        (Lognormal, {"sigma": -1, "mean": 5}, "sigma"),
        (Lognormal, {"sigma": 1e200, "mean": 5}, "sigma"),
        (Lognormal, {"sigma": 1, "mean": 0}, "mean"),
        (Lognormal, {"sigma": 1, "median": float("inf")}, "median"),
        (Lognormal, {"sigma": 1, "mu": float("nan")}, "mu"),
        (Gamma, {"mean": -1, "cv": 1}, "mean"),
        (Gamma, {"mean": 1, "cv": 0}, "cv"),
        (Gamma, {"mean": 1, "cv": 1e200}, "cv"),
        (Exponential, {"mean": float("nan")}, "mean"),
        (Zipf, {"theta": -0.1, "max": 5}, "theta"),
        (Zipf, {"theta": 1}, "max"),
        (Zipf, {"theta": 1, "max": 1 << 30}, "max"),
        (Empirical, {"quantiles": [5]}, "quantiles"),
        (Empirical, {"quantiles": "12"}, "quantiles"),
        (Weibull, {"shape": 1}, "mean"),
        (Weibull, {"shape": 1, "mean": 5, "scale": 5}, "mean"),
        (Weibull, {"shape": 0, "mean": 5}, "shape"),
        (Pareto, {"alpha": 0}, "alpha"),
        (Mixture, {"parts": []}, "parts"),
        (Mixture, {"parts": [(0, Constant(value=1))]}, "weight"),
        (Constant, {"value": 1, "outside": "drop"}, "outside"),
        (Preset, {"preset": "azure"}, "preset"),
        (Preset, {"preset": "azure-conv", "of": "turns"}, "of"),
        (Empirical, {"quantiles": [0, 5]}, "quantiles"),
        (Empirical, {"quantiles": [5, float("nan")]}, "quantiles"),
        (Empirical, {"quantiles": [9, 5]}, "quantiles"),
        (Empirical, {"quantiles": [5, [1, 9]]}, "quantiles"),
        (Empirical, {"quantiles": [[0.1, 5], [1, 9]]}, "quantiles"),
        (Empirical, {"quantiles": [[0, 5], [0.9, 9]]}, "quantiles"),
        (Empirical, {"quantiles": [[0, 5], [0.5, 6], [0.5, 7], [1, 9]]}, "quantiles"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused_by_name(kind, parameters, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        kind(**parameters)


def test_a_law_describes_itself_with_the_parameters_that_were_given():
    assert Lognormal(median=400, sigma=0.7, max=4096).describe() == {
        "distribution": "lognormal",
        "median": 400,
        "sigma": 0.7,
        "max": 4096,
    }

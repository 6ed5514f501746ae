"""Fits find again what a sample was drawn from, and their text is a scenario's."""

import json

import numpy as np
import pytest

from kvsim.request import PS_PER_S
from kvsim.workload.fit.arrivals import fit_arrivals
from kvsim.workload.fit.lengths import distance, fit_lengths
from kvsim.workload.fit.modulated import Modulated, fit_modulated
from kvsim.workload.fit.scenario_names import arrival_settings, length_settings
from kvsim.workload.fit.workload import fit_workload
from kvsim.workload.fit.yaml_text import scenario_text
from kvsim.workload.lengths import LENGTHS, law_of
from kvsim.workload.statistics.arrivals import arrivals
from kvsim.workload.statistics.inspect import inspect
from kvsim.workload.trace.recording import Recording


@pytest.fixture
def draws():
    return np.random.default_rng(5)


def whole(values):
    return np.maximum(1, np.rint(values)).astype(int).tolist()


def by_name(fits):
    return {getattr(fit, "law", None) or fit.process: fit for fit in fits}


def test_the_distance_is_the_largest_gap_between_cumulative_shares():
    # A quarter each at 1 to 4, against a law that has all of its weight below 2.5.
    assert distance(np.array([1, 2, 3, 4]), lambda at: np.where(at > 2.4, 1.0, 0.0)) == 0.5


@pytest.mark.parametrize(
    ("law", "sample", "parameters"),
    [
        ("lognormal", lambda r, n: r.lognormal(6, 0.8, n), {"mu": 6, "sigma": 0.8}),
        ("exponential", lambda r, n: r.exponential(900, n), {"mean": 900}),
        ("gamma", lambda r, n: r.gamma(4, 250, n), {"mean": 1000, "cv": 0.5}),
        ("weibull", lambda r, n: 700 * r.weibull(1.6, n), {"shape": 1.6, "scale": 700}),
    ],
)
def test_a_family_is_found_again_and_is_nearest_to_its_own_sample(draws, law, sample, parameters):
    fits = fit_lengths(whole(sample(draws, 20_000)))
    assert by_name(fits)[law].parameters == pytest.approx(parameters, rel=0.03)
    assert by_name(fits)[law].ks < 0.012
    nearest = next(fit.law for fit in fits if fit.law not in ("quantiles", "mixture"))
    # An exponential law is a gamma and a Weibull law too.
    assert nearest == law or law == "exponential"


def test_a_mixture_finds_its_parts_again_and_draws_nothing(draws):
    sample = whole(np.concatenate([draws.lognormal(3, 0.3, 4000), draws.lognormal(7, 0.5, 6000)]))
    fit = by_name(fit_lengths(sample))["mixture"]
    assert fit.ks < 0.02
    assert fit == by_name(fit_lengths(sample))["mixture"]
    low, high = fit.parameters["parts"][0], fit.parameters["parts"][-1]
    assert low["mu"] == pytest.approx(3, abs=0.1)
    assert high["mu"] == pytest.approx(7, abs=0.35)
    assert sum(part["weight"] for part in fit.parameters["parts"]) == pytest.approx(1)


def test_the_grid_is_nearer_than_any_family_where_a_cap_leaves_a_spike(draws):
    sample = whole(np.minimum(draws.lognormal(7, 1.2, 5000), 4000))
    fits = by_name(fit_lengths(sample))
    assert fits["quantiles"].ks < 0.02
    assert all(fits["quantiles"].ks < fits[name].ks for name in ("lognormal", "gamma", "weibull"))


@pytest.mark.parametrize("sample", [[7], [7, 7, 7], [1, 1_000_000], [5, 6]])
def test_the_smallest_samples_have_a_law_all_the_same(sample):
    fits = fit_lengths(sample)
    assert all(0 <= fit.ks <= 1 for fit in fits)
    assert length_settings(fits[0], min(sample), max(sample)) is not None


def test_a_poisson_process_and_one_of_gamma_gaps_are_told_apart(draws):
    for shape, cv in ((1.0, 1.0), (0.25, 2.0)):
        times = np.cumsum(draws.gamma(shape, 0.5 / shape, 20_000))
        times_ps = (times * PS_PER_S).astype(np.int64).tolist()
        fits = by_name(fit_arrivals(times_ps, arrivals(times_ps)))
        assert fits["gamma"].parameters["cv"] == pytest.approx(cv, rel=0.05)
        assert fits["gamma"].ks < 0.015
        assert (fits["poisson"].ks < 0.02) == (cv == 1.0)


def modulated(draws, fit, span_s):
    times, now, state = [], 0.0, 0
    while now < span_s:
        lasts = draws.exponential(fit.sojourns_s[state])
        times.append(now + np.sort(draws.uniform(0, lasts, draws.poisson(fit.rates_per_s[state] * lasts))))
        now, state = now + lasts, 1 - state
    joined = np.concatenate(times)
    return joined - joined[0]


def test_a_rate_that_goes_back_and_forth_is_found_again_with_its_clustering(draws):
    truth = Modulated((0.2, 12.0), (60.0, 25.0))
    times = modulated(draws, truth, 4000)
    found = fit_modulated(times)
    assert found.rates_per_s == pytest.approx(truth.rates_per_s, rel=0.2)
    assert found.sojourns_s == pytest.approx(truth.sojourns_s, rel=0.35)
    counts = np.bincount((modulated(draws, truth, 400_000) // 60).astype(int))
    assert truth.idc(60) == pytest.approx(counts.var() / counts.mean(), rel=0.1)


def test_a_steady_process_has_no_second_rate(draws):
    times = np.cumsum(draws.uniform(0.9, 1.1, 2000))
    assert fit_modulated(times - times[0]) is None


def test_a_rate_that_changes_once_and_for_all_is_no_cycle(draws):
    times = np.cumsum(np.concatenate([draws.exponential(1, 300), draws.exponential(0.1, 3000)]))
    assert fit_modulated(times - times[0]) is None


def test_arrivals_on_a_coarse_clock_are_spread_over_its_tick_before_they_are_fitted(draws):
    times = np.floor(np.cumsum(draws.exponential(0.3, 20_000)) / 3) * 3
    times_ps = (times * PS_PER_S).astype(np.int64).tolist()
    measured = arrivals(times_ps)
    fits = by_name(fit_arrivals(times_ps, measured))
    assert measured.cv > 2.5
    assert fits["gamma"].parameters["cv"] == pytest.approx(1, abs=0.05)
    assert fits["poisson"].ks < 0.02


def test_too_few_arrivals_have_no_fit():
    times_ps = [PS_PER_S * number for number in range(5)]
    assert fit_arrivals(times_ps, arrivals(times_ps)) == []


def test_every_law_that_is_offered_is_one_that_a_scenario_can_build(draws):
    sample = whole(draws.lognormal(6, 0.8, 500))
    for fit in fit_lengths(sample):
        settings = length_settings(fit, min(sample), max(sample))
        if settings is None:
            assert fit.law not in LENGTHS
            continue
        drawn = law_of(settings).draw(np.random.default_rng(0), 20_000)
        assert np.median(drawn) == pytest.approx(np.median(sample), rel=0.15)


def test_a_process_that_no_scenario_has_is_not_offered(draws):
    times_ps = (np.cumsum(draws.exponential(1, 100)) * PS_PER_S).astype(np.int64).tolist()
    fits = by_name(fit_arrivals(times_ps, arrivals(times_ps)))
    assert arrival_settings(fits["poisson"], 1.0) == {"process": "poisson"}
    assert set(arrival_settings(fits["gamma"], 1.0)) == {"process", "cv"}


@pytest.mark.parametrize("kind", ["quantiles", "mixture", "single"])
def test_the_text_is_the_workload_section_of_a_scenario_that_loads_and_runs(tmp_path, kind, draws):
    from kvsim.scenario import load
    from kvsim.study import run

    trace = tmp_path / "trace.csv"
    rows = zip(np.cumsum(draws.exponential(0.5, 60)), whole(draws.lognormal(4, 0.5, 60)), strict=True)
    trace.write_text(
        "arrived_at,num_prefill_tokens,num_decode_tokens\n"
        + "".join(f"{time:.3f},{n},{n % 7 + 1}\n" for time, n in rows)
    )
    fit = fit_workload(inspect(Recording(trace)), kind)
    text = scenario_text(fit)
    path = tmp_path / "s.yaml"
    path.write_text("model: llama-3.1-8b\ngpu: RTX 4090\npool: {blocks: 2588}\nengine: {max_model_len: 4096}\n" + text)
    scenario = load(path)
    assert scenario.settings.workload.requests == 60
    assert run(scenario).summary["metrics"]["finished"] == 60
    assert max(map(len, text.splitlines())) <= 100
    json.dumps(fit.record(), allow_nan=False)


def test_a_trace_without_times_says_that_a_rate_is_needed(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("num_prefill_tokens,num_decode_tokens\n5,1\n9,2\n")
    text = scenario_text(fit_workload(inspect(Recording(trace))))
    assert "# the trace has no arrival times: give a rate" in text
    assert "rate:" not in text.split("workload:")[1]

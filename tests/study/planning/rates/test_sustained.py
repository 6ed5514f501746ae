"""The largest rate that a candidate bears is the one that trying every rate finds."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from kvsim.errors import DoesNotFitError, InputError
from kvsim.scenario.messages import Origin
from kvsim.scenario.resolve import Scenario
from kvsim.study.planning.goals import goals_of
from kvsim.study.planning.rates.search import STRIDE
from kvsim.study.planning.rates.sustained import sustained_rate, tried

BASE = Scenario.from_dict(
    {
        "model": "llama-3.1-8b",
        "gpu": "RTX 4090",
        "pool": {"tokens": 8192},
        "engine": {"profile": "vllm@0.33-sync", "max_model_len": 2048},
        "workload": {
            "rate": "1/s",
            "requests": 300,
            "prompt_tokens": {"distribution": "lognormal", "median": 250, "sigma": 0.5, "max": 1024},
            "output_tokens": {"distribution": "lognormal", "median": 80, "sigma": 0.5, "max": 512},
        },
    }
)
AT = Origin("list", "test")

CASES = [
    ({}, "ttft_p99<1s"),
    ({"allocator": {"name": "reserve", "size": "max"}}, "ttft_p99<2s"),
    ({"allocator": "contiguous"}, "e2e_p95<6s,rejected<0.1%"),
    ({"engine.max_num_seqs": 4}, "ttft_p95<500ms,tpot_p99<60ms"),
    ({"pool.tokens": 4096}, "ttft_mean<200ms"),
    ({"pool.tokens": 20000}, "tpot_p95<30ms"),
    ({"allocator": {"name": "paged", "prefix_caching": True}}, "ttft_p99<1s"),
    ({"workload.output_tokens": 20}, "ttft_p99<500ms"),
    ({"slo": {"ttft": "1s"}, "workload.requests": 2000}, "goodput>95%"),
    ({"engine.profile": "sglang@0.5.23", "workload.requests": 2000}, "ttft_p99<1s"),
]
"""The last two need many requests: with 300, chance moves their percentiles by more than a step of the rate does."""
STEP = 1.005
"""Between the rates that brute force tries."""


@pytest.mark.parametrize(
    ("changes", "text"),
    [case if number < 1 else pytest.param(*case, marks=pytest.mark.slow) for number, case in enumerate(CASES)],
)
def test_the_largest_rate_is_that_of_a_brute_force_sweep(changes, text):
    scenario, goals = BASE.changed(changes, AT), goals_of(text)
    answer = sustained_rate(scenario, goals, replications=2, tolerance=0.02)
    low, high = answer.found.borne, answer.found.not_borne
    assert low < high <= 1.02 * low * (1 + 1e-9)
    # All around the answer, and far enough up to see that nothing above it is borne either.
    rates = [low * STEP**number for number in range(-8, 13)]
    borne = {trial.rate_per_s: trial.borne for trial in tried(scenario, rates, goals, replications=2)}
    largest = max(rate for rate in rates if all(borne[other] for other in rates if other <= rate))
    assert low / 1.02 <= largest <= low * 1.02
    for rate, trial in zip(
        (low / STRIDE, high * STRIDE),
        tried(scenario, [low / STRIDE, high * STRIDE], goals, replications=2),
        strict=True,
    ):
        assert trial.borne == (rate < low)


def test_the_answer_does_not_depend_on_who_runs_the_trials():
    goals = goals_of("ttft_p99<1s")
    with ThreadPoolExecutor(3) as pool:
        elsewhere = sustained_rate(BASE, goals, executor=pool, replications=1, tolerance=0.1)
    assert elsewhere == sustained_rate(BASE, goals, replications=1, tolerance=0.1)


def test_a_queue_that_grows_is_saturation_though_every_goal_is_met():
    [calm, over] = tried(BASE, [0.5, 40.0], goals_of("e2e_p99<1h"), replications=2)
    assert calm.borne
    assert over.saturated
    assert not over.unmet


def test_a_goal_that_no_rate_meets_has_no_answer():
    answer = sustained_rate(BASE, goals_of("tpot_mean<1us"), replications=1)
    assert answer.best is None
    assert answer.first_not.unmet[0].name == "tpot_mean"


def test_what_cannot_be_searched_is_refused():
    goals = goals_of("ttft_p99<1s")
    with pytest.raises(DoesNotFitError):
        sustained_rate(BASE.changed({"pool": None, "gpu": "T4", "model": "qwen2.5-14b"}, AT), goals)
    with pytest.raises(InputError, match="workload"):
        sustained_rate(BASE.changed({"workload.rate": None, "workload.clients": {"count": 4}}, AT), goals)

"""Intervals of engine runs cover what a run of a hundred times the length says."""

from collections import Counter

import pytest

from kvsim import Scenario
from kvsim.study.replication.catalogue import numbers
from kvsim.study.replication.estimates import estimates
from kvsim.study.replication.runs.replicate import Piece, simulate
from kvsim.study.replication.trust import judged
from kvsim.study.seeds import replication_seed

KEYS = ("ttft_s.mean", "tpot_s.mean", "e2e_s.mean", "mean_running", "mean_share.used", "waste_share")
STUDIES, REPLICATIONS, REQUESTS = 100, 5, 1000
"""Of 300 requests the mean TTFTs of runs that are short of memory are so skewed (2) that five of them cover in 82 to 88
of 100 studies."""
LONG = 100_000
CASES = {
    "paged, light": ({"name": "paged"}, "3/s"),
    "paged, short of memory": ({"name": "paged"}, "7/s"),
    "contiguous": ({"name": "contiguous"}, "5/s"),
}
"""Three small engines; the second fills its pool, so that requests wait and are preempted."""


def scenario(allocator, rate, requests):
    return Scenario.from_dict(
        {
            "name": "small",
            "model": "llama-3.1-8b",
            "gpu": "RTX 4090",
            "pool": {"tokens": 1280},
            "engine": {"max_model_len": 512},
            "allocator": allocator,
            "workload": {
                "rate": rate,
                "requests": requests,
                "prompt_tokens": {"distribution": "uniform", "min": 10, "max": 200},
                "output_tokens": {"distribution": "uniform", "min": 5, "max": 60},
            },
            "window": {"warmup": "5s"},
        }
    )


@pytest.mark.slow
def test_means_of_300_studies_of_engine_runs_cover_the_long_run():
    covered, trusted, preempted = Counter(), 0, 0
    for place, (name, (allocator, rate)) in enumerate(CASES.items()):
        truth = numbers(simulate(Piece(scenario(allocator, rate, LONG), seed=place)).metrics)
        short, own = scenario(allocator, rate, REQUESTS), Counter()
        for number in range(STUDIES):
            first = LONG + (place * STUDIES + number) * REPLICATIONS
            seeds = [replication_seed(first, one) for one in range(REPLICATIONS)]
            runs = [simulate(Piece(short, seed)) for seed in seeds]
            found = estimates(runs)
            own.update(key for key in KEYS if found[key].interval.low <= truth[key] <= found[key].interval.high)
            queue = judged(runs)
            trusted += queue.forgets and not queue.saturated
            preempted += sum(run.metrics["preemptions"] for run in runs)
        print(f"{name}: { ({key: own[key] / STUDIES for key in KEYS}) }")
        covered += own
    shares = {key: covered[key] / STUDIES / len(CASES) for key in KEYS}
    print(f"all: {shares}; {trusted} of {STUDIES * len(CASES)} trusted, {preempted} preemptions")
    assert all(0.90 <= share <= 0.98 for share in shares.values()), shares
    assert preempted

"""A small scenario for plans, and the truth about it by brute force: every candidate with every number of replicas."""

from itertools import product

from kvsim import Scenario, run
from kvsim.scenario.messages import Origin
from kvsim.study.seeds import replication_seed

SCENARIO = {
    "model": "llama-3.1-8b",
    "gpu": "RTX 4090",
    "engine": {"profile": "vllm@0.33-sync", "max_model_len": 2048},
    "workload": {
        "rate": "8/s",
        "requests": 50,
        "prompt_tokens": 250,
        "output_tokens": {"distribution": "lognormal", "median": 60, "sigma": 0.5, "max": 256},
    },
}

YAML = """\
model: llama-3.1-8b
gpu: RTX 4090
engine: {profile: vllm@0.33-sync, max_model_len: 2048}
workload:
  rate: 8/s
  requests: 50
  prompt_tokens: 250
  output_tokens: {distribution: lognormal, median: 60, sigma: 0.5, max: 256}
"""

AT = Origin("list", "test")


def brute_force(choices, counts, limits, replications):
    """For every combination of values: which of the counts keep the mean of each metric below its limit, and dollars.

    `limits` maps (metric, statistic) to seconds. No screen, no search: every run is made.
    """
    base = Scenario.from_dict(SCENARIO)
    found = {}
    for values in product(*choices.values()):
        made = base.changed(dict(zip(choices, values, strict=True)), AT)
        for count in counts:
            fleet = made if count == 1 else made.changed({"fleet": {"replicas": count}}, AT)
            runs = [run(fleet, seed=replication_seed(0, number)).metrics for number in range(replications)]
            means = {path: sum(one[path[0]][path[1]] for one in runs) / replications for path in limits}
            meets = all(means[path] < limit for path, limit in limits.items())
            hourly = runs[0]["cost"]["usd_per_hour"]
            found[values, count] = meets, runs[0]["cost"]["gpus"], hourly
    return found

"""What one more request of traffic costs before anybody serves it."""

import time

import pytest

from kvsim.workload.arrivals import Poisson
from kvsim.workload.lengths import Exponential, Lognormal
from kvsim.workload.stream import GeneratedTraffic, Workload
from kvsim.workload.trace import TraceTraffic
from tests.budgets.traffic import write_w

pytestmark = pytest.mark.budget


def cpu_us_per_request(traffic):
    requests = list(Workload(traffic))  # warm: imports, file cache
    costs = []
    for _ in range(3):
        start = time.process_time()
        for _ in Workload(traffic):
            pass
        costs.append((time.process_time() - start) / len(requests) * 1e6)
    return min(costs)


def test_a_request_of_a_trace_costs_at_most_15_us_and_a_generated_one_5(tmp_path):
    generated = GeneratedTraffic(
        arrivals=Poisson(rate=8),
        prompt_tokens=Lognormal(median=400, sigma=0.7, min=16, max=4096),
        output_tokens=Exponential(mean=110),
        requests=16_000,
    )
    assert cpu_us_per_request(TraceTraffic(write_w(tmp_path / "long.csv", 20_000))) <= 15
    assert cpu_us_per_request(generated) <= 5

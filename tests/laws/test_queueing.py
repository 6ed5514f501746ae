"""Where the engine is a queue of the textbooks, it keeps their laws: M/D/1, M/G/1 and service in bulk.

With one request at a time (`max_num_seqs` 1), a pool that always suffices and steps that all last D:

- A request with a 1-token prompt and N output tokens takes N steps: the first computes the prompt and samples the
  first token, each further one decodes a token. Its service time is N D, whatever the others do.
- An idle engine starts its step at the moment of the arrival: there is no grid that arrivals would have to wait for.
- A request ends at the end of a step, and the next of the queue is admitted by the plan of that very moment. The
  server never idles while someone waits, and the queue is first come, first served.

So it is M/G/1, and M/D/1 with one output token: the waiting time (arrival to first scheduling) follows Lindley's
recursion to the picosecond on every path, and its mean follows Pollaczek and Khinchine's formula.

Intervals: independent replications (seeds 0..R-1), the first requests of each left out, Student's t at 99 %.
"""

from math import exp, sqrt

import numpy as np
import pytest

from kvsim.engine.run import simulate
from kvsim.memory.paged import PagedAllocator
from kvsim.request import PS_PER_S
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.timing.interface import LinearTiming
from kvsim.workload.arrivals import Poisson
from kvsim.workload.lengths import Constant, Exponential
from kvsim.workload.stream import GeneratedTraffic, Workload

D_S = 0.01
D_PS = round(D_S * PS_PER_S)
REPLICATIONS = 20
STUDENT_99 = 2.8609
"""The 0.995 quantile of Student's t with 19 degrees of freedom."""
LEFT_OUT = 400
"""Requests of each replication that still feel the empty start: some ten relaxation times at rho = 0.8."""


def serve(rate, outputs, seed, *, requests, max_num_seqs=1):
    """The requests of one replication in order of arrival, and when each was first scheduled."""
    traffic = GeneratedTraffic(
        arrivals=Poisson(rate=rate),
        prompt_tokens=Constant(value=1),
        output_tokens=outputs,
        requests=requests,
    )
    scheduler = ContinuousScheduler(
        PagedAllocator(1 << 20, block_size=16), max_num_seqs=max_num_seqs, max_num_batched_tokens=max_num_seqs
    )
    log = simulate(Workload(traffic, seed=seed), scheduler, LinearTiming(step_ps=D_PS), max_model_len=1 << 16)
    ended = sorted(log.recording.requests.ended, key=lambda request: request.id)
    assert len(ended) == requests
    assert all(request.end == "finished" for request in ended)
    return ended


def waits_ps(ended):
    return [request.first_scheduled_ps - request.arrival_ps for request in ended]


def lindley_ps(ended):
    """W_0 = 0, W_(n+1) = max(0, W_n + S_n - A_n): the waits of a first-come-first-served single server."""
    waits, wait = [], 0
    for request, following in zip(ended, [*ended[1:], None], strict=True):
        waits.append(wait)
        if following is not None:
            gap = following.arrival_ps - request.arrival_ps
            wait = max(0, wait + request.output_tokens * D_PS - gap)
    return waits


def interval_s(means_s):
    """(middle, half width) of the 99 % confidence interval from the means of independent replications."""
    assert len(means_s) == REPLICATIONS
    return np.mean(means_s), STUDENT_99 * np.std(means_s, ddof=1) / sqrt(REPLICATIONS)


def mean_waits_s(rate, outputs, *, requests, max_num_seqs=1):
    means = []
    for seed in range(REPLICATIONS):
        ended = serve(rate, outputs, seed, requests=requests, max_num_seqs=max_num_seqs)
        means.append(np.mean(waits_ps(ended[LEFT_OUT:])) / PS_PER_S)
    return means


def lies_within(expected_s, means_s, *, at_most):
    """The interval holds the expected mean, and is narrow enough (share of the mean) for this to say something."""
    middle, half = interval_s(means_s)
    assert abs(middle - expected_s) <= half, (expected_s, middle, half)
    assert half <= at_most * expected_s, (expected_s, middle, half)


@pytest.mark.parametrize(("rho", "outputs"), [(0.6, Constant(value=1)), (0.8, Exponential(mean=12))])
def test_every_single_wait_follows_lindleys_recursion(rho, outputs):
    mean_tokens = 1 if isinstance(outputs, Constant) else exponential_moments(12)[0]
    ended = serve(rho / (mean_tokens * D_S), outputs, seed=5, requests=2000)
    assert waits_ps(ended) == lindley_ps(ended)
    assert all(r.end_ps == r.first_scheduled_ps + r.output_tokens * D_PS for r in ended)


@pytest.mark.parametrize(
    ("rho", "at_most"), [(0.3, 0.05), pytest.param(0.6, 0.07, marks=pytest.mark.slow), (0.8, 0.12)]
)
def test_m_d_1_the_mean_wait_is_rho_d_over_2_times_1_minus_rho(rho, at_most):
    means = mean_waits_s(rho / D_S, Constant(value=1), requests=3000)
    lies_within(rho * D_S / (2 * (1 - rho)), means, at_most=at_most)


def exponential_moments(mean):
    """E[N] and E[N^2] of an exponential length of that mean, rounded to the nearest token and at least 1.

    N >= k for k >= 2 where the real number is above k - 1/2, so P(N >= k) = exp(-(k - 1/2) / mean): geometric from
    the second token on. The moments are the sums of P(N >= k) and of (2 k - 1) P(N >= k).
    """
    at_least = [1.0, *(exp(-(k - 0.5) / mean) for k in range(2, 100 * mean))]
    return sum(at_least), sum((2 * k - 1) * p for k, p in enumerate(at_least, start=1))


def test_m_g_1_with_geometric_outputs_the_mean_wait_is_that_of_pollaczek_and_khinchine():
    rho = 0.6
    first, second = exponential_moments(12)
    rate = rho / (first * D_S)
    means = mean_waits_s(rate, Exponential(mean=12), requests=1500)
    lies_within(rate * second * D_S**2 / (2 * (1 - rho)), means, at_most=0.15)


@pytest.mark.parametrize("load", [0.5, 1.5])
def test_with_room_for_everyone_a_request_waits_for_the_step_in_progress_only(load):
    """Service in bulk: whoever is there when a step ends is in the next one, and all are done at its end.

    An arrival finds the engine idle with probability p0 and waits for nothing; otherwise it falls into a step in
    progress, uniformly since the arrivals are Poisson, and waits D / 2 on average. A step is followed by another
    if anyone arrives during it, so a busy period has exp(load) steps on average, load = rate D, and the engine is
    idle for 1 / rate between two of them: p0 = 1 / (1 + load exp(load)).
    """
    rate = load / D_S
    idle = 1 / (1 + load * exp(load))
    means = mean_waits_s(rate, Constant(value=1), requests=1500, max_num_seqs=64)
    lies_within((1 - idle) * D_S / 2, means, at_most=0.05)

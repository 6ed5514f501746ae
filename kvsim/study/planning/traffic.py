"""What a plan has to know of its traffic: at which rate it comes, whether that can be changed, whether it is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from kvsim.errors import DoesNotFitError, InputError
from kvsim.request import PS_PER_S, Request
from kvsim.scenario.build import build
from kvsim.scenario.resolve import Scenario
from kvsim.study.planning.rates.screen import SAMPLE
from kvsim.study.planning.rates.sustained import at_rate
from kvsim.study.seeds import replication_seed
from kvsim.workload.stream import Workload

MOST = 100_000
"""Requests of traffic that has no rate of its own from which one is reckoned."""


@dataclass(frozen=True)
class Traffic:
    """`rate_per_s` is that of requests, or of sessions where those have one; None where they wait for answers.

    `changes`: `workload.rate` can be set, so that there is a largest one. `drawn`: another seed gives other requests;
    a recording is the same with any.
    """

    rate_per_s: float | None
    changes: bool
    drawn: bool


def traffic_of(scenarios: Sequence[Scenario], seed: int | None) -> Traffic:
    """Look at the traffic that these scenarios share; InputError where they do not."""
    first = scenarios[0]
    if any(one.settings.workload != first.settings.workload for one in scenarios):
        raise InputError(
            f"{first.name}: candidates differ in workload, and a plan is for one; leave it out of --vary, or choose "
            "one variant with --variant"
        )
    rate = first.settings.workload.rate
    try:
        at_rate(first, rate or 1.0)
        changes = True
    except InputError:
        changes = False
    own = first.seed if seed is None else seed
    for one in scenarios:
        try:
            workload = build(one, own).workload
            other = build(one, replication_seed(own, 1)).workload
        except DoesNotFitError:
            continue
        drawn = _alike(workload) != _alike(other)
        if rate is None and not workload.closed:
            rate = _rate(list(islice(build(one, own).workload, MOST)))
        return Traffic(rate, changes, drawn)
    return Traffic(rate, changes, drawn=True)


def _alike(workload: Workload) -> list[tuple[int, int, int]]:
    return [(one.arrival_ps, one.prompt_tokens, one.output_tokens) for one in islice(workload, SAMPLE)]


def _rate(requests: Sequence[Request]) -> float | None:
    last_ps = requests[-1].arrival_ps if requests else 0
    return len(requests) * PS_PER_S / last_ps if last_ps else None

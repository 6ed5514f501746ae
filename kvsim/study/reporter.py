"""Progress of a run, from the ends of its requests."""

from collections.abc import Callable

from kvsim.metrics.requests import Ended
from kvsim.scenario.build import Simulation
from kvsim.scenario.resolve import Scenario
from kvsim.workload.readers.interface import Surveyed

Progress = Callable[[float, str], None]
"""Called with the fraction done, 0 to 1, and what is being done."""

_UPDATES = 200
"""How often a run reports its progress in all."""


def reporter(scenario: Scenario, simulation: Simulation, progress: Progress | None) -> Callable[[Ended], None] | None:
    """Turns the ends of requests into progress; None where nobody looks or nobody knows how many will come."""
    if progress is None:
        return None
    traffic = simulation.traffic
    total = traffic.survey().rows_kept if isinstance(traffic, Surveyed) else scenario.settings.workload.requests
    if not total:
        return None
    ended = 0
    every = max(1, total // _UPDATES)

    def on_end(_: Ended) -> None:
        nonlocal ended
        ended += 1
        if ended % every == 0:
            progress(min(1.0, ended / total), scenario.label)

    return on_end

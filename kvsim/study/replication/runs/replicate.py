"""One replication as a piece of work: what it needs, what it sends back, and the seam through which it goes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from kvsim.metrics.result import Result
from kvsim.metrics.summary.run import SHORT_SPAN
from kvsim.metrics.tables import Dropped, Pieces
from kvsim.scenario.resolve import Scenario
from kvsim.study.replication.runs.observing import ALONE, LATENCIES, Observing, mean_levels
from kvsim.study.reporter import Progress
from kvsim.study.single import run
from kvsim.study.statistics.intervals import Array
from kvsim.study.statistics.saturation import SLICES

P = TypeVar("P")
R = TypeVar("R")


class Executor(Protocol):
    """Whatever maps a function over pieces of work and gives the answers in their order: a stdlib Executor does."""

    def map(self, function: Callable[[P], R], pieces: Iterable[P], /) -> Iterator[R]:
        """The function's answer for each piece, in the order of the pieces."""
        ...


class Serial:
    """One piece after another, in this process, each when its answer is asked for."""

    def map(self, function: Callable[[P], R], pieces: Iterable[P], /) -> Iterator[R]:
        """See `Executor`."""
        return map(function, pieces)


@dataclass(frozen=True)
class Piece:
    """One run of one variant: a value that can be sent to another process."""

    scenario: Scenario
    seed: int
    stepwise: bool = False
    check: bool = False


@dataclass(frozen=True)
class Replicate:
    """What one run, or a batch of one, adds to a study.

    `latencies` are those of the requests that arrived in the measured window, by metric, in the order of arrival; none
    where the window is not one stretch. `waiting` and `present` are the mean queue, and the requests in the system, in
    equal slices of the window, `arrivals` how many came in it. `settles`: the window ends while requests still arrive,
    so that it shows a steady state, if there is one. Of the whole run: `sessions` is how many began (a request that
    stands alone is one), `served_tokens` the output of all requests but those that were refused or given up, each
    whole, `notes` what the run says of itself.
    """

    seed: int
    metrics: dict[str, Any]
    latencies: dict[str, Array]
    waiting: Array
    present: Array
    arrivals: int
    settles: bool
    sessions: int = 0
    served_tokens: int = 0
    notes: Sequence[str] = ()
    wall_s: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class First:
    """The first run of a variant: its Result beside what it adds, and all that was observed."""

    result: Result
    replicate: Replicate
    observed: Observing


def simulate(piece: Piece) -> Replicate:
    """Run a piece, and keep of it what a study needs. The same piece gives the same answer in any process."""
    return observed_run(piece, Dropped()).replicate


def observed_run(piece: Piece, into: Pieces, progress: Progress | None = None) -> First:
    """The same, with the Result, whose records go to `into`, and all that was observed."""
    observing = Observing(into)
    result = run(
        piece.scenario, seed=piece.seed, stepwise=piece.stepwise, check=piece.check, progress=progress, pieces=observing
    )
    return First(result, replicate_of(result, observing), observing)


def replicate_of(result: Result, observing: Observing) -> Replicate:
    """What a run adds to a study."""
    start_s, end_s = result.metrics["window_s"]
    until = result.scenario_resolved["window.until"]["value"]
    whole = until != "saturated" and end_s > start_s
    requests = observing.by_request()
    # To the last arrival, or to the horizon before it; else arrivals were over long before the work was.
    last_s = requests["arrival_s"].max(initial=start_s)
    steady = until == "auto" and (last_s - start_s) * SHORT_SPAN >= end_s - start_s
    inside = (requests["arrival_s"] >= start_s) & (requests["arrival_s"] <= end_s)
    waiting = present = np.zeros(SLICES)
    if whole:
        came_s, end_s_each, queue_s = (requests[name] for name in ("arrival_s", "end_s", "queue_s"))
        # Whoever was never served waited to the end; what waits again after a preemption waits before all others.
        served_s = np.where(np.isnan(queue_s), end_s_each, came_s + queue_s)
        waiting = mean_levels(came_s, served_s, (start_s, end_s), SLICES)
        present = mean_levels(came_s, end_s_each, (start_s, end_s), SLICES)
    return Replicate(
        seed=result.seed,
        metrics=result.metrics,
        latencies={name: _present(requests[name][inside]) for name in LATENCIES} if whole else {},
        waiting=waiting,
        present=present,
        arrivals=int(inside.sum()),
        settles=bool(whole and steady),
        sessions=_begun(requests["session"]),
        served_tokens=int(requests["served_tokens"].sum()),
        notes=tuple(result.notes),
        wall_s=result.wall_s or 0.0,
    )


def _begun(sessions: Array) -> int:
    alone = sessions == ALONE
    return int(alone.sum()) + np.unique(sessions[~alone]).size


def _present(values: Array) -> Array:
    return values[~np.isnan(values)]

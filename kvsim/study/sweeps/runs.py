"""The runs of a study: from points to scenarios with their seeds and keys, and one run to its outcome."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvsim.errors import InputError, KvsimError
from kvsim.metrics.tables import Dropped
from kvsim.scenario.resolve import Scenario
from kvsim.study.replication.runs.replicate import Piece, Replicate, observed_run
from kvsim.study.replication.trust import judged
from kvsim.study.seeds import replication_seed
from kvsim.study.store import Outcome, run_key
from kvsim.study.sweeps.points import Point
from kvsim.version import __version__


@dataclass(frozen=True)
class Run:
    """One run: a scenario with a seed. `key` is its identity, `point` the number of its point, from 0."""

    scenario: Scenario
    seed: int
    key: str
    point: int
    replication: int
    version: str = __version__


def runs_of(
    scenarios: Sequence[Scenario], points: Sequence[Point], *, replications: int, seed: int | None
) -> list[Run]:
    """Every scenario at every point, `replications` times each, in this order.

    Replications have seeds that follow from that of the scenario, or from `seed`, and are the same at every point, so
    that points are compared on the same random streams. Raises InputError with the mistakes of the first wrong point.
    """
    if replications < 1:
        raise InputError(f"replications: {replications} are none; give 1 or more")
    runs = []
    for scenario in scenarios:
        for number, point in enumerate(points):
            # A worker of a cluster may work in another folder.
            changed = scenario.changed(point.changes, point.origin).in_folder(os.getcwd())
            first = changed.seed if seed is None else seed
            for replication in range(replications):
                own = replication_seed(first, replication)
                runs.append(Run(changed, own, run_key(changed, own, __version__), number, replication))
    return runs


def outcome(one: Run) -> Outcome:
    """Simulate one run, and keep its summary; what goes wrong with it is its outcome too.

    Raises InputError where this process has another version of kvsim than the one that planned the run.
    """
    if one.version != __version__:
        raise InputError(f"a worker has kvsim {__version__}, and the study was planned with {one.version}; install one")
    try:
        ran = observed_run(Piece(one.scenario, one.seed), Dropped())
    except KvsimError as error:
        return failed(one, str(error))
    except Exception as error:  # a bug, or no memory: of this run alone
        return failed(one, f"{type(error).__name__}: {error}")
    result = ran.result
    return {
        "key": one.key,
        "error": None,
        "provenance": result.provenance,
        "expected_error": dict(result.expected_error),
        "not_modelled": list(result.not_modelled),
        "notes": list(result.notes),
        "metrics": result.metrics,
        "queue": queue_of(one.scenario, ran.replicate),
    }


_UNKNOWN: dict[str, Any] = {"growth": None, "growth_error": None, "saturated": None}
"""What the queue did of which nothing is known."""


def queue_of(scenario: Scenario, replicate: Replicate) -> Mapping[str, Any]:
    """Whether a run's queue grew, judged by itself (`saturated`), and how much of what came was left in it (`growth`,
    with its standard error).

    All None where the window was not meant to show a steady state.
    """
    found = judged([replicate])
    if found is not None:
        return {"growth": found.growth, "growth_error": found.growth_error, "saturated": found.saturated}
    settings = scenario.settings
    # Without a steady stretch to judge, arrivals were over long before the work was.
    overrun = settings.workload.rate is not None and settings.window.until == "auto"
    return _UNKNOWN | {"saturated": True if overrun else None}


def failed(one: Run, error: str) -> Outcome:
    """The outcome of a run that has no result."""
    nothing: Outcome = {"provenance": {}, "expected_error": {}, "not_modelled": [], "notes": [], "metrics": {}}
    return {"key": one.key, "error": error, **nothing, "queue": _UNKNOWN}


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested metrics by dotted name, such as `ttft_s.p99`; lists by number. None stays where it is."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            found |= flat(value, f"{key}.")
        elif isinstance(value, list | tuple):
            found |= flat({str(at): inner for at, inner in enumerate(value)}, f"{key}.")
        else:
            found[key] = value
    return found

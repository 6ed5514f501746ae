"""The runs of a study: from points to scenarios with their seeds and keys, and one run to its outcome."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvsim.errors import InputError, KvsimError
from kvsim.metrics.tables import Dropped
from kvsim.scenario.resolve import Scenario
from kvsim.study.seeds import replication_seed
from kvsim.study.single import run
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
        result = run(one.scenario, seed=one.seed, pieces=Dropped())
    except KvsimError as error:
        return failed(one, str(error))
    except Exception as error:  # a bug, or no memory: of this run alone
        return failed(one, f"{type(error).__name__}: {error}")
    return {
        "key": one.key,
        "error": None,
        "provenance": result.provenance,
        "not_modelled": list(result.not_modelled),
        "notes": list(result.notes),
        "metrics": result.metrics,
    }


def failed(one: Run, error: str) -> Outcome:
    """The outcome of a run that has no result."""
    return {"key": one.key, "error": error, "provenance": {}, "not_modelled": [], "notes": [], "metrics": {}}


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

"""A sweep: one scenario at many points, on any executor, into a store that may be gone on with."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.errors import InputError
from kvsim.scenario.messages import Origin
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.variants import every_variant
from kvsim.study.executors import Workers, opened, outcomes
from kvsim.study.store import Identity, Outcome, Store, digest, table_bytes
from kvsim.study.sweeps.points import Point, grid, listed
from kvsim.study.sweeps.runs import Run, failed, flat, outcome, runs_of
from kvsim.study.values import Axis, axis
from kvsim.version import __version__

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int], None]
"""Called with the runs that are done and the runs in all; first with those that were done before."""


class Sweep:
    """What came of a sweep: `runs` in order, `outcomes` by key, and the `axes` along which they differ."""

    def __init__(
        self, scenarios: Sequence[Scenario], points: Sequence[Point], runs: Sequence[Run], seed: int | None
    ) -> None:
        self.name = scenarios[0].name
        self.variants = [one.label for one in scenarios if one.variant is not None]
        self.points = [point.changes for point in points]
        self.runs = runs
        self.outcomes: dict[str, Outcome] = {}
        self.identity = Identity(
            scenario=self.name,
            version=__version__,
            seed=seed,
            replications=1 + max(run.replication for run in runs),
            variants=self.variants,
            points=self.points,
            runs=len(runs),
            fingerprint=digest([self.variants, self.points, [run.key for run in runs]]),
        )

    @cached_property
    def axes(self) -> list[Axis]:
        """The keys that points change, in the order in which they are first named."""
        keys = dict.fromkeys(key for point in self.points for key in point)
        return [axis(key, [point.get(key) for point in self.points]) for key in keys]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One flat row per run that is done, in order: its labels, its key, its error, and every metric.

        A swept key has the number of its value (rates per second, durations in seconds, sizes in bytes) where all its
        values are numbers of one kind, and else its text.
        """
        numbers = {one.key: one.number for one in self.axes if one.numbers is not None}
        rows = []
        for at, run in enumerate(self.runs):
            if run.key not in self.outcomes:
                continue
            came = self.outcomes[run.key]
            changes = self.points[run.point]
            labels = {
                one.key: numbers[one.key](changes[one.key])
                if one.key in numbers and one.key in changes
                else changes.get(one.key)
                for one in self.axes
            }
            rows.append(
                {
                    "run": at,
                    "variant": run.scenario.variant,
                    **labels,
                    "replication": run.replication,
                    "seed": run.seed,
                    "version": run.version,
                    "key": run.key,
                    "error": came["error"],
                    "notes": " ".join(came["notes"]) or None,
                    **flat(came["provenance"], "provenance."),
                    **flat(came["metrics"]),
                    "queue_growth": came["queue"]["growth"],
                    "queue_growth_error": came["queue"]["growth_error"],
                    "saturated": came["queue"]["saturated"],
                }
            )
        empty = _without_values(rows)
        return [{name: value for name, value in row.items() if name not in empty} for row in rows]

    @property
    def failed(self) -> list[tuple[Run, str]]:
        """The runs that have no result, with what went wrong."""
        return [
            (run, self.outcomes[run.key]["error"])
            for run in self.runs
            if run.key in self.outcomes and self.outcomes[run.key]["error"] is not None
        ]

    @property
    def frame(self) -> "pd.DataFrame":
        """The rows as a data frame."""
        import io

        import pandas as pd

        return pd.read_parquet(io.BytesIO(self.table()))

    def table(self) -> bytes:
        """The rows as a Parquet file: the same bytes for the same study, however it was computed."""
        return table_bytes(
            self.rows,
            metadata={"kvsim": __version__, "study": self.identity.fingerprint},
            units={one.key: one.unit for one in self.axes if one.unit},
            texts=("variant", "error", "notes"),
        )


def _without_values(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Columns that stand for a whole group of metrics in the rows in which none of the group exists."""
    names = {name for row in rows for name in row}
    groups = {name[:at] for name in names for at, letter in enumerate(name) if letter == "."}
    return {name for name in names & groups if all(row.get(name) is None for row in rows)}


def sweep(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any] | Sequence[Scenario],
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    points: Sequence[Mapping[str, Any] | Point] | None = None,
    replications: int = 1,
    seed: int | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Simulate a scenario at every point of a `grid` (dotted key to values), or of a list of `points`.

    A scenario with variants is swept in each of them. The first of the `replications` has the scenario's seed, or
    `seed`; the others have seeds that follow from it, the same at every point, so that points are compared on the same
    random streams. `jobs` processes compute (None: one a
    core), or a `cluster` does (the address of a dask scheduler, or "local"): the results are the same to the bit.
    With `folder` the outcomes are kept there as they come, `runs.parquet` has a row for each run, and `resume` does
    only what is missing. A run that fails is a row with its error. In a script, call this from under
    `if __name__ == "__main__":` unless `jobs` is 1.

    Raises InputError before anything runs: no points, a key or value that is wrong, a folder that holds something
    else, a cluster that cannot be reached.
    """
    whole = planned(every_variant(scenario), _points(grid, points), replications=replications, seed=seed)
    run_all(whole, jobs=jobs, cluster=cluster, folder=folder, resume=resume, progress=progress)
    return whole


def planned(
    scenarios: Sequence[Scenario], points: Sequence[Point], *, replications: int = 1, seed: int | None = None
) -> Sweep:
    """A sweep of which nothing has run yet. Raises InputError with the mistakes of the first wrong point."""
    return Sweep(scenarios, points, runs_of(scenarios, points, replications=replications, seed=seed), seed)


def run_all(
    whole: Sweep,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> None:
    """Run what is missing of a sweep on workers of its own; see `sweep`. Mutates `whole`."""
    with opened(jobs=jobs, cluster=cluster) as workers:
        run_missing(whole, workers, folder=folder, resume=resume, progress=progress)


def run_missing(
    whole: Sweep,
    workers: Workers,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> None:
    """Run what is missing of a sweep on these workers; see `sweep`. Mutates `whole`.

    An interrupt, too, leaves the table of what is done and a folder that can be gone on with.
    """
    store = None if folder is None else Store(folder, whole.identity, resume=resume)
    if store is not None:
        whole.outcomes.update(store.outcomes)
    missing = list({run.key: run for run in whole.runs if run.key not in whole.outcomes}.values())
    told = _counted(whole, progress)
    try:
        for piece in outcomes(workers, outcome, missing, lost=failed):
            if store is not None:
                store.add([came for _, came in piece])
            whole.outcomes.update({run.key: came for run, came in piece})
            told()
    finally:
        if store is not None:
            store.close(whole.table(), [run.key for run in whole.runs])


def _counted(whole: Sweep, progress: Progress | None) -> Callable[[], None]:
    def told() -> None:
        if progress is not None:
            progress(sum(run.key in whole.outcomes for run in whole.runs), len(whole.runs))

    told()
    return told


def _points(
    axes: Mapping[str, Sequence[Any]] | None, points: Sequence[Mapping[str, Any] | Point] | None
) -> list[Point]:
    if (axes is None) == (points is None):
        raise InputError("sweep: give either a grid or points")
    if axes is not None:
        return grid(axes, Origin("list", "grid"))
    ready = [one for one in points or () if isinstance(one, Point)]
    return ready or listed([one for one in points or () if not isinstance(one, Point)])

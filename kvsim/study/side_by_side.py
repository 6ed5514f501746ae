"""Several variants on the same traffic."""

from collections.abc import Sequence

from kvsim.metrics.result import Result
from kvsim.metrics.tables import Pieces
from kvsim.scenario.resolve import Scenario
from kvsim.study.reporter import Progress
from kvsim.study.single import run


def compare(
    variants: Sequence[tuple[str, Scenario]],
    *,
    seed: int | None = None,
    stepwise: bool = False,
    check: bool = False,
    progress: Progress | None = None,
    pieces: Sequence[Pieces | None] | None = None,
) -> list[Result]:
    """One Result per variant, in order; all draw from the same random streams, so differences are the variants'.

    `pieces` are where the records of each go while it runs (see `run`; None: they are kept).
    """
    results = []
    into: Sequence[Pieces | None] = [None] * len(variants) if pieces is None else pieces
    for index, ((name, scenario), these) in enumerate(zip(variants, into, strict=True)):
        share = None if progress is None else part_of(progress, index, len(variants), name)
        result = run(scenario, seed=seed, stepwise=stepwise, check=check, progress=share, pieces=these)
        result.name = name
        results.append(result)
    return results


def part_of(progress: Progress, index: int, count: int, name: str) -> Progress:
    """What tells the whole's progress from that of one of its runs."""
    return lambda fraction, _: progress((index + fraction) / count, name)

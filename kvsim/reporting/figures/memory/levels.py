"""Any columns of the memory table over time, in as many points as a figure can show."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvsim.metrics.result import Result
from kvsim.metrics.tables import slices

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Curve = NDArray[np.float64]

POINTS = 400
"""More rows than this are averaged: a line of a column's width has no more dots to show them."""


@dataclass
class Levels:
    """Columns as corners of lines over `time_s` seconds; NaN where the table has no number.

    `mean_over_s` is None where the corners are the recorded steps, else the length in seconds of the slices of time
    whose time-weighted means are shown, over that part of each in which there is a number.
    """

    time_s: "Curve"
    columns: "dict[str, Curve]"
    mean_over_s: float | None


def levels(result: Result, columns: Sequence[str], points: int = POINTS) -> Levels:
    """Trace some columns of the memory table, which hold from a row's time to the next row's.

    Reads a slice of the table at a time. Raises ValueError where it records no time at all.
    """
    import numpy as np

    spans = [(rows[0][0], rows[1][-1], len(rows[0])) for rows in _slices(result, ())]
    if not spans or not spans[-1][1] > spans[0][0]:
        raise ValueError("result records no memory over time")
    if sum(count for _, _, count in spans) <= points:
        found = list(_slices(result, columns))
        time_s = np.concatenate([np.column_stack((start_s, end_s)).ravel() for start_s, end_s, _ in found])
        lines = {name: np.concatenate([np.repeat(values[name], 2) for _, _, values in found]) for name in columns}
        return Levels(time_s, lines, None)
    edges_s = np.linspace(spans[0][0], spans[-1][1], points + 1)
    areas = {name: np.zeros_like(edges_s) for name in columns}
    lasting = {name: np.zeros_like(edges_s) for name in columns}
    for start_s, end_s, values in _slices(result, columns):
        bounds_s, length_s = np.append(start_s, end_s[-1]), end_s - start_s
        for name, level in values.items():
            there = np.isfinite(level)
            for sums, weight in ((areas, np.where(there, level, 0.0)), (lasting, there)):
                upto = np.concatenate(([0.0], np.cumsum(weight * length_s)))
                sums[name] += np.interp(edges_s, bounds_s, upto)
    over_s = {name: np.diff(line) for name, line in lasting.items()}
    # A slice that is in a number for less than a millionth of its time is all rounding.
    least_s = 1e-6 * (edges_s[1] - edges_s[0])
    means = {
        name: np.divide(np.diff(line), over_s[name], out=np.full(points, np.nan), where=over_s[name] > least_s)
        for name, line in areas.items()
    }
    return Levels((edges_s[:-1] + edges_s[1:]) / 2, means, float(edges_s[1] - edges_s[0]))


def _slices(result: Result, columns: Sequence[str]) -> "Iterator[tuple[Curve, Curve, dict[str, Curve]]]":
    """From when and until when each row holds, and what; some rows at a time."""
    import numpy as np

    coming = slices(result.tables["memory"], ("time_s", *columns))
    rows = next(coming, None)
    while rows is not None:
        following = next(coming, None)
        start_s = np.asarray(rows["time_s"], dtype=float)
        over_s = max(result.metrics["simulated_s"], start_s[-1]) if following is None else following["time_s"][0]
        yield (
            start_s,
            np.append(start_s[1:], over_s),
            {name: np.asarray(rows[name], dtype=float) for name in columns},
        )
        rows = following

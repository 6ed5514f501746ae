"""The classes of a pool over time, from the memory table of a run, in as many points as a figure can show."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.metrics.tables import slices
from kvsim.step import CLASSES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Curve = NDArray[np.float64]

POINTS = 400
"""More intervals than this are averaged: a figure of a column's width has no more dots to show them."""


@dataclass
class MemoryCurve:
    """Slots by class, and requests running and waiting, as corners of lines over `time_s` seconds.

    `mean_over_s` is None where the corners are the recorded ones, else the length in seconds of the slices of
    time whose time-weighted means are shown; a mean keeps the sum of the classes equal to the pool.
    """

    time_s: "Curve"
    slots: "dict[str, Curve]"
    running: "Curve"
    waiting: "Curve"
    mean_over_s: float | None


def memory_curve(result: Result, points: int = POINTS) -> MemoryCurve:
    """Trace the memory table of a run, a slice of it at a time. Raises ValueError where it records no time at all."""
    import numpy as np

    spans = [(rows.start_s[0], rows.end_s[-1], len(rows.start_s)) for rows in _slices(result)]
    if not spans:
        raise ValueError("result records no memory over time")
    if sum(count for _, _, count in spans) > points:
        edges_s = np.linspace(spans[0][0], spans[-1][1], points + 1)
        mean_over_s = float(edges_s[1] - edges_s[0])
        time_s = (edges_s[:-1] + edges_s[1:]) / 2
        lines = _means(edges_s, _slices(result))
        # The outermost slices reach to the ends of the run.
        time_s[0], time_s[-1] = edges_s[0], edges_s[-1]
    else:
        mean_over_s = None
        found = list(_slices(result))
        time_s = np.concatenate([np.column_stack((rows.start_s, rows.end_s)).ravel() for rows in found])
        lines = {
            name: np.concatenate([np.column_stack((rows.first[name], rows.last[name])).ravel() for rows in found])
            for name in LINES
        }
    return MemoryCurve(
        time_s=time_s,
        slots={name: lines[name] for name in CLASSES},
        running=lines["running"],
        waiting=lines["waiting"],
        mean_over_s=mean_over_s,
    )


LINES = (*CLASSES, "running", "waiting")


@dataclass
class _Rows:
    """Rows of the memory table that last: from when to when, and the levels at both ends."""

    start_s: "Curve"
    end_s: "Curve"
    first: "dict[str, Curve]"
    last: "dict[str, Curve]"


def _slices(result: Result) -> "Iterator[_Rows]":
    import numpy as np

    steps = _Steps(result)
    table = result.tables["memory"]
    coming = slices(table, ("time_s", *LINES))
    rows = next(coming, None)
    while rows is not None:
        following = next(coming, None)
        start_s = np.asarray(rows["time_s"], dtype=float)
        over_s = max(_end_s(result), start_s[-1]) if following is None else following["time_s"][0]
        end_s = np.append(start_s[1:], over_s)
        first = {name: np.asarray(rows[name], dtype=float) for name in LINES}
        last = first | _levels_at_the_end(steps.gained(start_s, end_s), first)
        lasting = end_s > start_s
        if lasting.any():
            first, last = ({name: level[lasting] for name, level in levels.items()} for levels in (first, last))
            yield _Rows(start_s[lasting], end_s[lasting], first, last)
        rows = following


def _end_s(result: Result) -> float:
    ends = [result.metrics.get("simulated_s") or 0.0]
    for rows in _steps_of(result):
        ends = [max(*ends, rows["start_s"][-1] + rows["duration_s"][-1])]
    return float(max(ends))


def _steps_of(result: Result) -> "Iterator[Mapping[str, Any]]":
    """The rows of the steps, some at a time."""
    return slices(result.tables.get("steps", {}), _STEP_COLUMNS)


_STEP_COLUMNS = ("start_s", "duration_s", "steps", "decode_tokens")


class _Steps:
    """Reads the steps along with the memory."""

    def __init__(self, result: Result) -> None:
        import numpy as np

        self._coming = _steps_of(result)
        self._held = {name: np.empty(0) for name in _STEP_COLUMNS}

    def gained(self, start_s: "Curve", end_s: "Curve") -> "Curve":
        """Tokens that a leap writes in each of these intervals before its last step ends; each must follow the last.

        A leap over k steps writes the tokens of k - 1 of them before that.
        """
        import numpy as np

        held = self._held
        while not len(held["start_s"]) or held["start_s"][-1] < start_s[-1]:
            rows = next(self._coming, None)
            if rows is None:
                break
            held = {name: np.append(held[name], np.asarray(rows[name], dtype=float)) for name in _STEP_COLUMNS}
        if not len(held["start_s"]):
            return np.zeros_like(start_s)
        begin_s, duration_s, count = held["start_s"], held["duration_s"], held["steps"]
        decoded = np.divide(held["decode_tokens"] * (count - 1), count, out=np.zeros_like(count), where=count > 0)
        rate = np.divide(decoded, duration_s, out=np.zeros_like(decoded), where=duration_s > 0)
        row = np.clip(np.searchsorted(begin_s, start_s, side="right") - 1, 0, None)
        over_s = begin_s[row] + duration_s[row]
        inside = (begin_s[row] <= start_s) & (start_s < over_s)
        self._held = {name: held[name][row[-1] :] for name in _STEP_COLUMNS}
        # Rounded, a leap may end a hair after the row that its end left, which may last for minutes.
        return np.where(inside, rate[row] * (np.minimum(end_s, over_s) - start_s), 0.0)


def _levels_at_the_end(gained: "Curve", levels: "dict[str, Curve]") -> "dict[str, Curve]":
    """Levels of used, reserved and free at the end of each interval: inside a leap they move.

    What it writes goes into slots that were reserved, and when these are full into slots that were free.
    """
    import numpy as np

    from_reserved = np.minimum(gained, levels["reserved"])
    from_free = np.minimum(gained - from_reserved, levels["free"])
    return {
        "used": levels["used"] + from_reserved + from_free,
        "reserved": levels["reserved"] - from_reserved,
        "free": levels["free"] - from_free,
    }


def _means(edges_s: "Curve", pieces: "Iterable[_Rows]") -> "dict[str, Curve]":
    """Mean between each two edges of lines that go from `first` to `last` in every interval."""
    import numpy as np

    upto = {name: np.zeros_like(edges_s) for name in LINES}
    area = dict.fromkeys(LINES, 0.0)
    for rows in pieces:
        # The edges from here on; the pieces to come will say so again of those that lie in them.
        here = edges_s >= rows.start_s[0]
        length_s = rows.end_s - rows.start_s
        row = np.searchsorted(rows.start_s, edges_s[here], side="right") - 1
        inside_s = np.minimum(edges_s[here] - rows.start_s[row], length_s[row])
        for name in LINES:
            first, last = rows.first[name], rows.last[name]
            areas = np.cumsum(np.concatenate(([area[name]], (first + last) / 2 * length_s)))
            slope = (last[row] - first[row]) / length_s[row]
            upto[name][here] = areas[row] + first[row] * inside_s + slope * inside_s**2 / 2
            area[name] = areas[-1]
    return {name: np.diff(line) / np.diff(edges_s) for name, line in upto.items()}

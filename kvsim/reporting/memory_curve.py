"""The classes of a pool over time, from the memory table of a run, in as many points as a figure can show."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.step import CLASSES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Curve = NDArray[np.float64]

POINTS = 600
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
    """Trace the memory table of a run. Raises ValueError where it records no time at all."""
    import numpy as np

    table = result.tables["memory"]
    if len(table.get("time_s", ())) == 0:
        raise ValueError("result records no memory over time")
    start_s = np.asarray(table["time_s"], dtype=float)
    end_s = np.append(start_s[1:], max(_end_s(result), start_s[-1]))
    levels = {name: np.asarray(table[name], dtype=float) for name in (*CLASSES, "running", "waiting")}
    last = _levels_at_the_end(result, start_s, end_s, levels)
    lasting = end_s > start_s
    if not lasting.any():
        raise ValueError("result records no memory over time")
    start_s, end_s = start_s[lasting], end_s[lasting]
    levels = {name: level[lasting] for name, level in levels.items()}
    last = {name: level[lasting] for name, level in last.items()}
    mean_over_s = None
    if len(start_s) > points:
        edges_s = np.linspace(start_s[0], end_s[-1], points + 1)
        mean_over_s = float(edges_s[1] - edges_s[0])
        time_s = (edges_s[:-1] + edges_s[1:]) / 2
        lines = {name: _means(edges_s, start_s, end_s, levels[name], last.get(name, levels[name])) for name in levels}
        # The outermost slices reach to the ends of the run.
        time_s[0], time_s[-1] = edges_s[0], edges_s[-1]
    else:
        time_s = np.column_stack((start_s, end_s)).ravel()
        lines = {name: np.column_stack((levels[name], last.get(name, levels[name]))).ravel() for name in levels}
    return MemoryCurve(
        time_s=time_s,
        slots={name: lines[name] for name in CLASSES},
        running=lines["running"],
        waiting=lines["waiting"],
        mean_over_s=mean_over_s,
    )


def _end_s(result: Result) -> float:
    steps = result.tables.get("steps", {})
    ends = [result.metrics.get("simulated_s") or 0.0]
    if len(steps.get("start_s", ())):
        ends.append(steps["start_s"][-1] + steps["duration_s"][-1])
    return float(max(ends))


def _levels_at_the_end(
    result: Result, start_s: "Curve", end_s: "Curve", levels: "dict[str, Curve]"
) -> "dict[str, Curve]":
    """Levels of used, reserved and free at the end of each interval: inside a leap they move.

    A leap over k steps writes the tokens of k - 1 of them before its last step ends. They go into slots that
    were reserved, and when these are full into slots that were free.
    """
    import numpy as np

    gained = np.zeros_like(start_s)
    steps: Mapping[str, Any] = result.tables.get("steps", {})
    if len(steps.get("start_s", ())):
        begin_s = np.asarray(steps["start_s"], dtype=float)
        duration_s = np.asarray(steps["duration_s"], dtype=float)
        count = np.asarray(steps["steps"], dtype=float)
        decoded = np.asarray(steps["decode_tokens"], dtype=float) * (count - 1) / count
        rate = np.divide(decoded, duration_s, out=np.zeros_like(decoded), where=duration_s > 0)
        row = np.clip(np.searchsorted(begin_s, start_s, side="right") - 1, 0, None)
        inside = (begin_s[row] <= start_s) & (start_s < begin_s[row] + duration_s[row])
        gained = np.where(inside, rate[row] * (end_s - start_s), 0.0)
    from_reserved = np.minimum(gained, levels["reserved"])
    from_free = np.minimum(gained - from_reserved, levels["free"])
    return {
        "used": levels["used"] + from_reserved + from_free,
        "reserved": levels["reserved"] - from_reserved,
        "free": levels["free"] - from_free,
    }


def _means(edges_s: "Curve", start_s: "Curve", end_s: "Curve", first: "Curve", last: "Curve") -> "Curve":
    """Mean between each two edges of a line that goes from `first` to `last` in every interval."""
    import numpy as np

    length_s = end_s - start_s
    area = np.concatenate(([0.0], np.cumsum((first + last) / 2 * length_s)))
    row = np.clip(np.searchsorted(start_s, edges_s, side="right") - 1, 0, len(start_s) - 1)
    inside_s = np.minimum(edges_s - start_s[row], length_s[row])
    slope = (last[row] - first[row]) / length_s[row]
    upto = area[row] + first[row] * inside_s + slope * inside_s**2 / 2
    means: Curve = np.diff(upto) / np.diff(edges_s)
    return means

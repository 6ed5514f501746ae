"""The largest rate of a sweep that was sustained within the goals of `slo:`, at each of its other settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from kvsim.reporting.sweep.measures import GOODPUT, MET
from kvsim.reporting.sweep.points import At
from kvsim.study.sweeps.sweep import Sweep
from kvsim.study.values import Axis, shown

RATE = "workload.rate"

MET_SHARE = 0.99
"""Of the requests that finish so many must meet every goal, as a goal on 99th percentiles asks."""


MOST_SETTINGS = 12
"""Settings that are told one by one."""


@dataclass(frozen=True)
class Sustained:
    """One setting: the largest rate that is kept below the smallest that is not, each as written; None: there is none.

    `changes` are those beside the rate; `fails` says that runs fail at the smallest that is not kept.
    """

    variant: str | None
    changes: Mapping[str, Any]
    kept: str | None
    not_kept: str | None
    fails: bool = False

    @property
    def name(self) -> str:
        """The setting, as people write it; "" where there is but one."""
        changes = [f"{key}={shown(value)}" for key, value in self.changes.items()]
        return " ".join(([self.variant] if self.variant else []) + changes)

    @property
    def text(self) -> str:
        """What was found, in a few words."""
        if self.kept is None:
            return f"runs fail at {self.not_kept}" if self.fails else f"{self.not_kept} is not kept, nor is more"
        beyond = f", runs fail at {self.not_kept}" if self.fails else f", {self.not_kept} is not"
        return f"{self.kept} is kept" + (beyond if self.not_kept else "; more was not tried")


def sustained(sweep: Sweep, points: Sequence[At]) -> list[Sustained]:
    """The answer for each setting; none where the rate was not swept, or the windows of runs tell of no steady state.

    A rate is kept where the queue does not grow, nobody is rejected or aborted, no run fails, and `MET_SHARE` of the
    requests that finish meet every goal, if there is any. One above a rate that is not kept does not count.
    """
    axis = next((one for one in sweep.axes if one.key == RATE and one.numbers is not None), None)
    if axis is None:
        return []
    settings: dict[str, list[At]] = {}
    for at in points:
        if RATE in at.changes:
            settings.setdefault(repr((at.variant, _others(at))), []).append(at)
    found = []
    for there in settings.values():
        rising = sorted(there, key=lambda at: axis.number(at.changes[RATE]))
        verdicts = [_keeps(at) for at in rising]
        if None not in verdicts:
            kept = list(takewhile(_keeps, rising))
            found.append(_answer(rising, len(kept), axis))
    return found


def sentences(found: Sequence[Sustained], points: Sequence[At]) -> list[str]:
    """Which rates were sustained: one sentence, or one for each other setting, as many as a reader takes in."""
    goals_set = any(at.mean(GOODPUT) is not None for at in points)
    opening = f"Sustained with {MET_SHARE * 100:.0f} % within the goals of slo" if goals_set else "Sustained"
    told = [f"{opening}{f' at {one.name}' if one.name else ''}: {one.text}." for one in found[:MOST_SETTINGS]]
    more = len(found) - len(told)
    return [*told, f"{more} more settings are in the summary."] if more else told


def _answer(rising: Sequence[At], kept: int, axis: Axis) -> Sustained:
    rates = [shown(at.changes[axis.key]) for at in rising]
    return Sustained(
        rising[0].variant,
        _others(rising[0]),
        rates[kept - 1] if kept else None,
        rates[kept] if kept < len(rates) else None,
        fails=kept < len(rising) and bool(rising[kept].failed),
    )


def _others(at: At) -> dict[str, Any]:
    return {key: value for key, value in at.changes.items() if key != RATE}


def _keeps(at: At) -> bool | None:
    """Whether the rate of a point is kept; None where nobody can say."""
    if at.failed:
        return False
    if not at.rows or at.saturated is None:
        return None
    if at.saturated or any(row["rejected"] or row["aborted"] for row in at.rows):
        return False
    met = at.mean(MET)
    return met is None or met >= MET_SHARE * MET.scale

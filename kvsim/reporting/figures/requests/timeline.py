"""Who does what when: a row for each of some requests, from its arrival to its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.metrics.tables import slices
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, short
from kvsim.reporting.figures.memory.over_time import time_unit
from kvsim.reporting.finding import three_digits
from kvsim.reporting.style import CLASS_COLOURS, INK, house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STATES: Mapping[str, str] = {
    "waiting": CLASS_COLOURS["internal"],
    "prefill": CLASS_COLOURS["used"],
    "decode": CLASS_COLOURS["reserved"],
    "preempted": CLASS_COLOURS["external"],
    "running again": CLASS_COLOURS["dead"],
}
"""What a request can do, in the order in which it does; running again, it first computes again what it lost."""

ROWS = 40
"""Requests that are shown: those in a row of arrivals that were preempted most, else the first that waited most."""

MARKS: Mapping[str, tuple[str, str]] = {
    "rejected": ("rejected", "x"),
    "aborted": ("aborted", "X"),
    "cancelled": ("cancelled", "|"),
    "unfinished": ("unfinished", ">"),
}
"""Ends other than finished: label and marker."""

LEAST_S = 0.001
"""Seconds that are shown of requests that were all turned away at one moment."""

# Inches.
ROW, AXIS = 0.072, 0.42
NAMED_FROM = 1.05
"""Height of the axes from which their whole name fits beside them."""


@dataclass(frozen=True)
class Life:
    """One request: its number, what it does from when to when in seconds, and how and when it ends."""

    number: int
    spans: tuple[tuple[str, float, float], ...]
    end: str
    end_s: float


def has_timeline(results: Sequence[Result]) -> bool:
    """There is one run, and requests of it were recorded."""
    return len(results) == 1 and bool(results[0].metrics["arrived"]) and "requests" in results[0].tables


def timeline(result: Result) -> "Figure":
    """Rows of `ROWS` requests that arrived one after the other: waiting, prefill, decode, preempted, running again.

    Raises ValueError where no request was recorded.
    """
    from matplotlib.ticker import MaxNLocator

    lives = lives_of(result)
    if not lives:
        raise ValueError("result records no request")
    ends_s = max(max([life.end_s, *(stop for _, _, stop in life.spans)]) for life in lives)
    starts_s = min(life.spans[0][1] if life.spans else life.end_s for life in lives)
    ends_s = max(ends_s, starts_s + LEAST_S)
    per_unit_s, unit = time_unit(ends_s - starts_s)
    states = [state for state in STATES if any(state == name for life in lives for name, _, _ in life.spans)]
    marks = [end for end in MARKS if any(life.end == end for life in lives)]
    first, arrived = lives[0].number, result.metrics["arrived"]
    row_of = {life.number: row for row, life in enumerate(lives, first)}
    in_row = all(number == row for number, row in row_of.items())
    chosen = (
        f"requests {first:,} to {lives[-1].number:,} of {arrived:,}"
        if in_row
        else f"{len(lives)} of {arrived:,} requests"
    )
    few = len(lives) < arrived
    room = max(0.6, ROW * len(lives))
    with house_style():
        frame = Frame(
            [result],
            title=f"{short(result.name)}: {chosen if few else 'every request'}, from arrival to end",
            finding=_finding(lives),
            note="those in a row of arrivals that were preempted, or else waited, most" if few else "",
            room_inches=LEGEND_LINE + 0.06 + room + AXIS,
        )
        axes = frame.axes(LEGEND_LINE + 0.06, room, left=0.6)
        for state in states:
            at = [
                (row, start, stop)
                for row, life in enumerate(lives, first) for name, start, stop in life.spans if name == state
            ]  # fmt: skip
            axes.barh(
                [row for row, _, _ in at], [(stop - start) / per_unit_s for _, start, stop in at], 0.78,
                left=[start / per_unit_s for _, start, _ in at], color=STATES[state], linewidth=0, label=state,
            )  # fmt: skip
        for end in marks:
            label, marker = MARKS[end]
            ended = [life for life in lives if life.end == end]
            axes.plot(
                [life.end_s / per_unit_s for life in ended], [row_of[life.number] for life in ended], marker, color=INK,
                markersize=3.2, markeredgewidth=0.8, label=label, clip_on=False,
            )  # fmt: skip
        axes.set_ylim(first + len(lives) - 0.4, first - 0.6)
        axes.set_xlim(starts_s / per_unit_s, ends_s / per_unit_s)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if not in_row:
            numbers = {row: str(number) for number, row in row_of.items()}
            axes.yaxis.set_major_formatter(lambda row, _: numbers.get(round(row), ""))
        axes.set_ylabel("request (number)" if room > NAMED_FROM else "request")
        axes.set_xlabel(f"time ({unit})")
        handles = _handles(states) + axes.get_legend_handles_labels()[0][: len(marks)]
        frame.legend(0, handles, columns=len(handles), left=0.08)
    return frame.figure


def lives_of(result: Result, rows: int = ROWS) -> list[Life]:
    """What became of some requests that arrived one after the other; sessions number theirs in another order."""
    columns = ("id", "arrival_s", "first_scheduled_s", "first_token_s", "end_s", "end", "preemptions")
    table: dict[str, list[Any]] = {name: [] for name in columns}
    for piece in slices(result.tables["requests"], columns):
        for name in columns:
            table[name] += list(piece[name])
    order = sorted(range(len(table["id"])), key=table["arrival_s"].__getitem__)
    table = {name: [column[place] for place in order] for name, column in table.items()}
    chosen = _busiest(table, rows)
    numbers = {int(table["id"][at]) for at in chosen}
    lost: dict[int, list[tuple[float, float | None]]] = {}
    preemptions = result.tables["preemptions"]
    # Arrays where the tables lie in files, lists where they were made here.
    resumed = preemptions["resumed_s"] if "resumed_s" in preemptions else [None] * len(preemptions["time_s"])
    for number, time_s, again_s in zip(preemptions["request"], preemptions["time_s"], resumed, strict=True):
        if int(number) in numbers:
            lost.setdefault(int(number), []).append((float(time_s), _known(again_s)))
    return [_life({name: table[name][at] for name in columns}, lost.get(int(table["id"][at]), [])) for at in chosen]


def _busiest(table: Mapping[str, Sequence[Any]], rows: int) -> range:
    """So many requests one after the other: those that were preempted most, then those that waited longest."""
    import numpy as np

    count = len(table["id"])
    if count <= rows:
        return range(count)
    arrival_s, scheduled_s = (np.asarray(table[name], dtype=float) for name in ("arrival_s", "first_scheduled_s"))
    weights = [np.asarray(table["preemptions"], dtype=float), np.nan_to_num(scheduled_s - arrival_s)]
    weight = weights[0] if weights[0].any() else weights[1]
    sums = np.cumsum(np.concatenate(([0.0], weight)))
    first = int(np.argmax(sums[rows:] - sums[:-rows]))
    return range(first, first + rows)


def _life(row: Mapping[str, Any], lost: Sequence[tuple[float, float | None]]) -> Life:
    arrival_s, end_s = float(row["arrival_s"]), float(row["end_s"])
    scheduled_s, token_s = _known(row["first_scheduled_s"]), _known(row["first_token_s"])
    moments: list[tuple[str, float]] = [("waiting", arrival_s)]
    if scheduled_s is not None:
        moments.append(("prefill", scheduled_s))
    away = sorted(lost)
    if token_s is not None and not (away and away[0][0] <= token_s):
        moments.append(("decode", token_s))
    for gone_s, again_s in away:
        moments.append(("preempted", gone_s))
        if again_s is not None:
            moments.append(("running again", again_s))
    ends = [start for _, start in moments[1:]] + [end_s]
    spans = tuple((state, start, stop) for (state, start), stop in zip(moments, ends, strict=True) if stop > start)
    return Life(int(row["id"]), spans, str(row["end"]), end_s)


def _known(value: Any) -> float | None:
    """None where the table has nothing, as None or as NaN."""
    return None if value is None or value != value else float(value)


def _handles(states: Sequence[str]) -> list[Any]:
    from matplotlib.patches import Patch

    return [Patch(facecolor=STATES[state], label=state) for state in states]


def _finding(lives: Sequence[Life]) -> str:
    spent = dict.fromkeys(STATES, 0.0)
    for life in lives:
        for state, start, stop in life.spans:
            spent[state] += stop - start
    whole = sum(spent.values())
    parts = [f"{spent[state] / whole:.0%} {state}" for state in STATES if whole and spent[state]]
    return f"of {three_digits(whole)} s that they spend: {', '.join(parts)}" if parts else "none of them was served"

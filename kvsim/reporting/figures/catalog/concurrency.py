"""How many requests of each length the pool of a run holds at once."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.metrics.result import Result
from kvsim.reporting.figures.catalog.lengths import length_axis, length_text, log_axis
from kvsim.reporting.figures.catalog.served import served
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, columns_for, lines_for, look_of, short
from kvsim.reporting.style import INK, PALE_INK, house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTHS = tuple(512 * 2**power for power in range(12))
"""Lengths from 512 tokens to 1M, of which those are drawn that fit the pool."""

TOLD = (4096, 32_768)
"""Lengths whose numbers the heading tells."""

LEGEND_LETTERS = 66
"""That a line of the legend holds."""

# Inches.
PANEL, AXIS = 1.9, 0.42


def has_pool(results: Sequence[Result]) -> bool:
    """Some result has a pool that is known and holds a request of some of the lengths."""
    return any(result.metrics["pool_tokens"] and at_once(result, LENGTHS[0]) for result in results)


def concurrency(results: Sequence[Result]) -> "Figure":
    """Requests at once against the tokens that each holds, from 512 on: a line for each pool and way of keeping.

    A request takes whole blocks where there are any, and the model's limit where that is reserved. Beyond the limit of
    the run (max_model_len, else the model's context) a line is dotted: what it would be. Raises ValueError where no
    pool is known that holds any of them.
    """
    if not has_pool(results):
        raise ValueError("results must hold one with a pool")
    lines = _lines(results)
    names = [_named(same) for same in lines.values()]
    key_inches = LEGEND_LINE * lines_for(names) + 0.06 if len(lines) > 1 else 0.0
    with house_style():
        frame = Frame(
            results,
            title="Requests at once against their length",
            finding=_finding(lines),
            note="what the pool holds when every request is so long; dotted: beyond the run's limit of tokens",
            room_inches=key_inches + PANEL + AXIS,
        )
        axes = frame.axes(key_inches, PANEL, left=0.62)
        for place, ((limit, counts), name) in enumerate(zip(lines, names, strict=True)):
            colour, style = look_of(place)
            there = [(length, count) for length, count in zip(LENGTHS, counts, strict=True) if count]
            inside = [(length, count) for length, count in there if limit is None or length <= limit]
            for points, look in (
                (there, {"linestyle": ":", "linewidth": 0.9}),
                (inside, {"linestyle": style, "marker": "o", "markersize": 3, "label": name}),
            ):
                axes.plot([at for at, _ in points], [count for _, count in points], color=colour, **look)
        log_axis(axes)
        fitting = max(sum(count > 0 for count in counts) for _, counts in lines)
        length_axis(axes, LENGTHS[: max(2, fitting)])
        axes.axhline(1, color=INK, linewidth=0.6)
        axes.text(LENGTHS[0], 1, "one request", fontsize=7, color=PALE_INK, va="bottom")
        axes.set_ylabel("requests at once")
        if key_inches:
            frame.legend(0, axes.get_legend_handles_labels()[0], columns_for(names), left=0.62)
    return frame.figure


def at_once(result: Result, length: int) -> int:
    """Requests of so many tokens that its pool holds at once; of a fleet, each in the pool of one replica."""
    metrics, resolved = result.metrics, result.scenario_resolved
    replicas = len({pool["replica"] for pool in result.pools}) or 1
    pool, blocks = metrics["pool_tokens"] // replicas, (metrics["pool_blocks"] or 0) // replicas
    name, size = (resolved.get(f"allocator.{key}", {}).get("value") for key in ("name", "size"))
    limit = _limit(result)
    if name == "reserve" and size == "max" and limit is not None:
        return int(replicas * (pool // max(limit, length)))
    block = pool // blocks if blocks else 1
    return int(replicas * (pool // block // -(-length // block)))


def _limit(result: Result) -> int | None:
    """Tokens that a request of the run may have; None: not known."""
    given = result.scenario_resolved.get("engine.max_model_len", {}).get("value")
    if given is not None:
        return int(given)
    shown = served(result)
    return None if shown is None else shown.max_context


def _named(names: Sequence[str]) -> str:
    """The names of the results of one line, as many as a line of the legend holds, and how many more there are."""
    shown = [short(name) for name in names]
    for left in range(len(shown)):
        text = ", ".join(shown[: len(shown) - left]) + (f" and {left} more" if left else "")
        if len(text) <= LEGEND_LETTERS:
            break
    return text


def _lines(results: Sequence[Result]) -> dict[tuple[int | None, tuple[int, ...]], list[str]]:
    """Limit and numbers at each of `LENGTHS`, to the names of the results that have them."""
    found: dict[tuple[int | None, tuple[int, ...]], list[str]] = {}
    for result in results:
        if result.metrics["pool_tokens"]:
            line = _limit(result), tuple(at_once(result, length) for length in LENGTHS)
            found.setdefault(line, []).append(result.name)
    return found


def _finding(lines: dict[tuple[int | None, tuple[int, ...]], list[str]]) -> str:
    said = []
    for length in TOLD:
        counts = {numbers[LENGTHS.index(length)] for _, numbers in lines}
        least, most = min(counts), max(counts)
        said.append(f"{least:,}{f' to {most:,}' if most > least else ''} of {length_text(length)} tokens")
    return f"the pool holds {' and '.join(said)} at once"

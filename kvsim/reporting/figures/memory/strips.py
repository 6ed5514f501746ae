"""What lies at which address at a few moments, variants one beside the other: strips of the memory map."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, fitted, short
from kvsim.reporting.figures.memory.address_map import SHADES, Painted, colours
from kvsim.reporting.figures.memory.over_time import THOUSANDS_FROM_TOKENS, class_handles, time_unit
from kvsim.reporting.finding import three_digits
from kvsim.reporting.style import PALE_INK, WIDTH_INCHES, house_style
from kvsim.step import CLASSES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOMENTS = 5
"""Strips of each result, at moments that divide the time up to the last arrival evenly."""

MOST_POINTS = 480
"""Points of a strip."""

# Inches.
STRIP, BETWEEN, NAME, AXIS, LEFT, GAP = 0.2, 0.06, 0.2, 0.42, 0.6, 0.14
MOST_ABREAST = 3
"""Variants beside each other; more go below."""


def has_addresses(results: Sequence[Result]) -> bool:
    """Some result has recorded where things lie."""
    return bool(_shown(results))


def strips(results: Sequence[Result]) -> "Figure":
    """Addresses to the right, one strip below the other for `MOMENTS` moments, a column for each result.

    Colours are those of the map (see `memory_map`); the moments are the same for all. Raises ValueError where nobody
    recorded addresses.
    """
    shown = _shown(results)
    if not shown:
        raise ValueError("results must hold one with addresses")
    until_s = min(_busy_s(result) for result in shown)
    times_s = [until_s * (place + 1) / (MOMENTS + 1) for place in range(MOMENTS)]
    per_unit_s, unit = time_unit(until_s)
    painted = [_moments(result, times_s) for result in shown]
    codes = {code for one in painted for row in one for code in set(row.tolist())}
    occurs = [name for at, name in enumerate(CLASSES) if name in ("used", "free") or _in(codes, at)]
    abreast = min(MOST_ABREAST, len(shown))
    lines = -(-len(shown) // abreast)
    block = NAME + MOMENTS * (STRIP + BETWEEN) + AXIS
    with house_style():
        frame = Frame(
            shown,
            title="What lies at which address",
            finding=_finding(shown, painted),
            note=f"at {MOMENTS} moments; shades of a colour tell requests apart; holes are free",
            room_inches=LEGEND_LINE + 0.06 + lines * block,
        )
        width = (WIDTH_INCHES - LEFT - 0.15 - (abreast - 1) * GAP) / abreast
        for place, (result, rows) in enumerate(zip(shown, painted, strict=True)):
            line, column = divmod(place, abreast)
            left = LEFT + column * (width + GAP)
            top = LEGEND_LINE + 0.06 + line * block
            frame.text(left, top, fitted(result.name, width, 8, bold=True), fontsize=8, fontweight="bold")
            pool = result.metrics["pool_tokens"]
            scale, slots = (1000, "thousand slots") if pool >= THOUSANDS_FROM_TOKENS else (1, "slots")
            for number, row in enumerate(rows):
                axes = frame.axes(
                    top + NAME + number * (STRIP + BETWEEN), STRIP, left=left, right=WIDTH_INCHES - left - width
                )
                axes.imshow(
                    colours()[row[None, :]], aspect="auto", interpolation="nearest", extent=(0, pool / scale, 0, 1)
                )
                axes.set_yticks([])
                axes.spines[:].set_visible(False)
                axes.tick_params(labelbottom=number == MOMENTS - 1, bottom=number == MOMENTS - 1, labelsize=7)
                if not column:
                    said = f"{three_digits(times_s[number] / per_unit_s)} {unit}"
                    axes.set_ylabel(said, rotation=0, ha="right", va="center", fontsize=7, color=PALE_INK)
            # Four digits at the end of one axis would touch the 0 of the next.
            axes.locator_params(axis="x", nbins=4, prune="upper" if scale == 1 and abreast > 1 else None)
            axes.set_xlabel(f"address ({slots})", fontsize=7.5)
        frame.legend(0, class_handles(occurs), columns=len(occurs))
    return frame.figure


def _shown(results: Sequence[Result]) -> list[Result]:
    return [
        result
        for result in results
        if "addresses" in result.tables and result.metrics["pool_tokens"] and result.metrics["simulated_s"]
    ]


def _busy_s(result: Result) -> float:
    """The end of the measured window: until then requests come."""
    measured_s = result.metrics.get("window_s")
    return float(measured_s[1]) if measured_s and measured_s[1] else float(result.metrics["simulated_s"])


def _moments(result: Result, times_s: Sequence[float]) -> list[Any]:
    """What most of the slots behind each point hold at each of the times, as codes of class and shade."""
    pool = result.metrics["pool_tokens"]
    painted = Painted(result.tables["addresses"], pool, -(-pool // MOST_POINTS))
    return [painted.at(time_s) for time_s in times_s]


def _in(codes: set[int], place: int) -> bool:
    return any(code // len(SHADES) == place for code in codes)


def _finding(shown: Sequence[Result], painted: Sequence[Sequence[Any]]) -> str:
    """How many runs of free points there are at the moment at which most of the pool is taken."""
    free = CLASSES.index("free")
    said = []
    for result, rows in zip(shown, painted, strict=True):
        fullest = min(rows, key=lambda row: int((row // len(SHADES) == free).sum()))
        empty = fullest // len(SHADES) == free
        holes = int(empty[0]) + int((empty[1:] & ~empty[:-1]).sum())
        said.append(f"{short(result.name, 18)} {holes}")
    return f"holes that can be seen when the pool is fullest: {', '.join(said)}"

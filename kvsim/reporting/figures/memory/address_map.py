"""The map of a run's memory: what lies at which address when."""

from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, over, short
from kvsim.reporting.figures.memory.over_time import THOUSANDS_FROM_TOKENS, legend, time_unit
from kvsim.reporting.style import CLASS_COLOURS, house_style
from kvsim.step import CLASSES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_COLUMNS, MOST_ROWS = 1600, 1080
"""Points of the map: twice the dots that its PNG has there, since people zoom into the SVG."""
SHADES = (1.0, 0.87, 0.74)
"""Brightness of a class for requests with neighbouring ids; the darkest `reserved` stays lighter than any `used`."""
FREE = CLASSES.index("free")
_NUMBERS = {name: number for number, name in enumerate(CLASSES)}
_CODES = len(CLASSES) * len(SHADES)
"""Classes in all their shades."""

# Heights in inches.
MAP, AXIS = 2.7, 0.42


def memory_map(result: Result) -> "Figure":
    """Draw addresses upwards against time, coloured by class; the shades of a colour tell requests apart.

    Each point shows what its slots hold in the middle of its time; where it stands for several slots, the class of most
    of them. What is lost to the shape of holes is free here. Raises ValueError where the run recorded no addresses, has
    no pool or took no time.
    """
    pool_tokens, length_s = result.metrics["pool_tokens"], result.metrics["simulated_s"]
    if "addresses" not in result.tables or not pool_tokens or not length_s:
        raise ValueError("result has no addresses to draw")
    # A power of two, so that rows and blocks end together.
    slots_a_row = 1 << (-(-pool_tokens // MOST_ROWS) - 1).bit_length()
    points = _points(result.tables["addresses"], pool_tokens, slots_a_row, length_s)
    per_unit_s, unit = time_unit(length_s)
    scale, slots = (1000, "thousand slots") if pool_tokens >= THOUSANDS_FROM_TOKENS else (1, "slots")
    shown = {CLASSES[code // len(SHADES)] for code in set(points.ravel().tolist())} | {"used", "free"}
    how = f"means over {over([result])}; shades of a colour tell requests apart"
    if slots_a_row > 1:
        how += f"; a row of points is {slots_a_row} slots, of the class of most of them"
    with house_style():
        key_inches = LEGEND_LINE + 0.1
        frame = Frame(
            [result],
            title=f"{short(result.name, 40)}: what lies at which address",
            finding=_finding(result),
            note=how,
            room_inches=key_inches + MAP + AXIS,
        )
        axes = frame.axes(key_inches, MAP, left=0.66, right=0.14)
        axes.imshow(
            colours()[points],
            origin="lower",
            aspect="auto",
            interpolation="nearest",
            extent=(0, length_s / per_unit_s, 0, points.shape[0] * slots_a_row / scale),
        )
        axes.set_ylim(0, pool_tokens / scale)
        axes.set_xlabel(f"time ({unit})")
        axes.set_ylabel(f"address ({slots})")
        legend(frame.figure, [name for name in CLASSES if name in shown], frame.down(0))
    return frame.figure


def _finding(result: Result) -> str:
    metrics = result.metrics
    parts = []
    if (used := (metrics["mean_share"] or {}).get("used")) is not None:
        parts.append(f"{used:.0%} of the slots hold valid KV")
    if metrics.get("fragmentation") is not None:
        parts.append(f"{metrics['fragmentation']:.0%} of the free ones lie outside the largest hole")
    return "; ".join(parts)


def _points(changes: Any, pool_tokens: int, slots_a_row: int, length_s: float) -> Any:
    """Rows of addresses, columns of times: class x shades + shade of the request, of most of the slots there."""
    import numpy as np

    painted = Painted(changes, pool_tokens, slots_a_row)
    points = np.empty((-(-pool_tokens // slots_a_row), MOST_COLUMNS), dtype=np.uint8)
    for column in range(MOST_COLUMNS):
        points[:, column] = painted.at((column + 0.5) / MOST_COLUMNS * length_s)
    return points


class Painted:
    """The pool as the changes of the table of addresses paint it, as of ever later moments."""

    def __init__(self, changes: Any, pool_tokens: int, slots_a_row: int) -> None:
        import numpy as np

        self._changes = {name: changes[name] for name in ("time_s", "start", "length", "request", "sample", "class")}
        self._pool = np.full(pool_tokens, FREE * len(SHADES))
        self._slots_a_row = slots_a_row
        self._rows = -(-pool_tokens // slots_a_row)
        self._first = np.arange(pool_tokens) // slots_a_row * _CODES
        self._next = 0
        self._shown: Any = None

    def at(self, time_s: float) -> Any:
        """For each row of so many slots the class x shades + shade of the request of most of them at that moment.

        Moments must not go back. Mutates.
        """
        import numpy as np

        before = self._next
        changes, times_s = self._changes, self._changes["time_s"]
        while self._next < len(times_s) and times_s[self._next] <= time_s:
            self._paint(changes, self._next)
            self._next += 1
        if self._shown is not None and self._next == before:
            return self._shown
        if self._slots_a_row == 1:
            self._shown = self._pool.astype(np.uint8)
        else:
            counts = np.bincount(self._first + self._pool, minlength=self._rows * _CODES)
            self._shown = counts.reshape(self._rows, _CODES).argmax(axis=1).astype(np.uint8)
        return self._shown

    def _paint(self, changes: Any, at: int) -> None:
        start, request = changes["start"][at], changes["request"][at]
        shade = 0 if request is None or request != request else int(request + changes["sample"][at]) % len(SHADES)
        self._pool[start : start + changes["length"][at]] = _NUMBERS[changes["class"][at]] * len(SHADES) + shade


def colours() -> Any:
    """The colour of each class in each shade, as red, green and blue."""
    import numpy as np
    from matplotlib.colors import to_rgb

    return np.array(
        [
            [part * (1.0 if name == "free" else shade) for part in to_rgb(CLASS_COLOURS[name])]
            for name in CLASSES
            for shade in SHADES
        ]
    )

"""What figures of runs have in common: a heading that says the finding, room below it, the provenance at the foot."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.finding import straight, window
from kvsim.reporting.style import (
    CLASS_COLOURS,
    INK,
    PALE_INK,
    WIDTH_INCHES,
    foot_inches,
    foot_text,
    new_figure,
    provenance_line,
    text_inches,
    wrapped,
    write_foot,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Size in points and height in inches of a line of each kind of text in a heading.
TITLE, TITLE_LINE = 9.5, 0.17
FINDING, FINDING_LINE = 8.0, 0.145
NOTE, NOTE_LINE = 7.0, 0.13
LEGEND_LINE = 0.165
_ABOVE, _BELOW = 0.07, 0.07
_LEFT = 0.012

NAME_LETTERS = 22
"""Of the name of a variant so many are shown."""
NAME_POINTS, LETTERS_PER_INCH = 8.0, 15.0
"""Size of a name beside an axis, and how many of its letters an inch holds in the mean."""

Look = tuple[str, Any]
"""Colour and line style."""

_COLOURS = (*(CLASS_COLOURS[name] for name in ("used", "internal", "cached", "dead", "external", "reserved")), INK)
_STYLES = ("-", (0, (4, 1.5)), (0, (1.2, 1.2)))


class Frame:
    """A figure whose heading and foot are written; `axes` are placed in the room between them, in inches.

    `title` is set bold, `finding` says the number that matters, `note` how to read it; `room_inches` is the height of
    what is drawn, axis labels and legends included. At the foot stands where the `results` come from, or `foot` in its
    place. Make and fill it inside `house_style`.
    """

    def __init__(
        self,
        results: Sequence[Result],
        *,
        title: str,
        finding: str = "",
        note: str = "",
        room_inches: float,
        foot: str = "",
    ) -> None:
        parts: tuple[tuple[str, float, float, dict[str, Any]], ...] = (
            (title, TITLE, TITLE_LINE, {"fontweight": "bold"}),
            (finding, FINDING, FINDING_LINE, {}),
            (note, NOTE, NOTE_LINE, {"color": PALE_INK}),
        )
        texts = [
            (wrapped(text, points, bold="fontweight" in look), line, {"fontsize": points, **look})
            for text, points, line, look in parts
            if text
        ]
        head = _ABOVE + sum(len(lines) * line for lines, line, _ in texts) + _BELOW
        said = foot_text(foot) if foot else provenance_line(results)
        self.height = head + room_inches + foot_inches(said)
        self.figure: Figure = new_figure(self.height)
        self._top = head
        at = _ABOVE
        for lines, line, look in texts:
            for text in lines:
                self.figure.text(_LEFT, self.up(at), text, va="top", **look)
                at += line
        write_foot(self.figure, said)

    def up(self, inches: float) -> float:
        """The place so far below the upper edge, as a fraction of the height."""
        return 1 - inches / self.height

    def down(self, inches: float) -> float:
        """The same so far below the heading."""
        return self.up(self._top + inches)

    def axes(self, top: float, height: float, left: float = 0.7, right: float = 0.12) -> "Axes":
        """Axes whose upper edge is `top` below the heading; `left` and `right` are their distances from the edges."""
        width = WIDTH_INCHES - left - right
        bottom = self.up(self._top + top + height)
        return self.figure.add_axes((left / WIDTH_INCHES, bottom, width / WIDTH_INCHES, height / self.height))

    def text(self, left: float, top: float, text: str, **look: Any) -> None:
        """A text whose upper left corner is there, in inches, unless its look says otherwise."""
        self.figure.text(left / WIDTH_INCHES, self.down(top), text, **{"va": "top", **look})

    def legend(self, top: float, handles: Sequence[Any], columns: int, left: float = 0.02) -> None:
        """A legend whose upper edge is `top` below the heading."""
        self.figure.legend(
            handles=list(handles),
            loc="upper left",
            bbox_to_anchor=(left / WIDTH_INCHES, self.up(self._top + top)),
            borderaxespad=0,
            borderpad=0,
            ncols=columns,
            fontsize=7.5,
            handlelength=1.6,
            handleheight=0.8,
            handletextpad=0.5,
            columnspacing=1.1,
            labelspacing=0.35,
        )


def short(name: str, letters: int = NAME_LETTERS) -> str:
    """A name that fits beside a figure, in one line."""
    name = in_line(name)
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def in_line(name: str) -> str:
    """A name without line breaks, and without marks that would turn around what stands beside it."""
    return " ".join(straight(name).split())


def beside(names: Sequence[str]) -> float:
    """Inches from the edge of a figure to axes on whose left these names stand."""
    in_the_mean = max(map(len, names), default=0) / LETTERS_PER_INCH
    widest = max((text_inches(name, NAME_POINTS) for name in names), default=0.0)
    return max(0.12 + in_the_mean, 0.09 + widest)


def fitted(name: str, inches: float, points: float, *, bold: bool = False) -> str:
    """A name of this size, cut where it is wider than so many inches."""
    shown = name = in_line(name)
    while text_inches(shown, points, bold=bold) > inches:
        name = name[:-1]
        shown = f"{name}…"
    return shown


def place_names(axes: "Axes", names: Sequence[str], points: Sequence[tuple[float, float]]) -> None:
    """Write names beside their points, so that none lies on another, on a point or beyond the axes where that is
    possible.

    Call it when the limits of the axes are set.
    """
    from matplotlib.transforms import Bbox

    figure: Any = axes.figure
    # Limits that follow from what is drawn are worked out when somebody asks for them.
    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())
    around = axes.get_window_extent()
    dots = [Bbox.from_extents(x - 3, y - 3, x + 3, y + 3) for x, y in axes.transData.transform(points)]
    taken: list[Any] = []
    for name, point in zip(names, points, strict=True):
        best = None
        for (off, up), (aside, across) in itertools.product(_UP, _ASIDE):
            text = axes.annotate(name, point, xytext=(aside, off), textcoords="offset points", fontsize=7, color=INK,
                                 ha=across, va=up)  # fmt: skip
            box = text.get_window_extent(figure._get_renderer())
            outside = box.x0 < around.x0 or box.x1 > around.x1 or box.y0 < around.y0 or box.y1 > around.y1
            # A name on a name cannot be read; one beyond the axes can.
            misses = 9 * sum(map(box.overlaps, taken)) + 3 * sum(map(box.overlaps, dots)) + outside
            if best is None or misses < best[0]:
                if best is not None:
                    best[1].remove()
                best = misses, text, box
            else:
                text.remove()
            if not misses:
                break
        if best is not None:
            taken.append(best[2])


_UP = tuple((sign * off, edge) for off in range(3, 40, 6) for sign, edge in ((1, "bottom"), (-1, "top")))
_ASIDE = ((4, "left"), (-4, "right"), (0, "center"))
"""Where a name may stand, from its point: points upwards and to the right, and which of its edges is there."""


def look_of(place: int) -> Look:
    """Colour and line style of the variant at this place: told apart without colours too from the eighth on."""
    return _COLOURS[place % len(_COLOURS)], _STYLES[place // len(_COLOURS) % len(_STYLES)]


def over(results: Sequence[Result]) -> str:
    """The time over which the means of these results are taken: `0 to 239.6 s (to the last arrival)`."""
    windows = {window(result) for result in results}
    return windows.pop() if len(windows) == 1 and "" not in windows else "the measured window"


def columns_for(names: Sequence[str], most: int = 4) -> int:
    """Columns of a legend of these names that fit side by side."""
    longest = max(map(len, names), default=1)
    return max(1, min(most, len(names), int(74 // (longest + 6))))


def lines_for(names: Sequence[str], most: int = 4) -> int:
    """Lines of a legend of these names."""
    return -(-len(names) // columns_for(names, most)) if names else 0

"""A figure of each phase: the matrices with their numbers, and the pool slot by slot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kvsim.reporting.explain.pool import Slot, rows
from kvsim.reporting.style import CLASS_COLOURS, INK, PALE_INK, WIDTH_INCHES, house_style, new_figure
from kvsim.step import CLASSES
from kvsim.study.explain.attention import Array
from kvsim.study.explain.cost import step_cost, total
from kvsim.study.explain.example import Walk
from kvsim.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Heights and widths in inches.
HEAD, FOOT, AXIS = 0.42, 0.36, 0.42
CELL, LABEL = 0.37, 0.42
SLOT, CAPTION, ROW, GAP = 0.42, 0.86, 0.36, 0.06
CURVE = 1.15

LONGEST = 64
"""Tokens up to which the cost of a step is drawn."""

_WHITE_ON = 0.62
"""Share of the darkest shade from which on numbers are white."""
_READABLE_ON = {"used": "white", "cached": "white"}


def draw_phase(walk: Walk, name: str) -> "Figure":
    """Draw one of `text.PHASES` in the house's style. KeyError for any other name."""
    with house_style():
        return _DRAWN[name](walk)


@dataclass(frozen=True)
class _Page:
    """A figure that is filled from the top down, in inches."""

    figure: "Figure"
    height: float

    def axes(self, left: float, top: float, width: float, height: float) -> "Axes":
        return self.figure.add_axes(
            (
                left / WIDTH_INCHES,
                (self.height - top - height) / self.height,
                width / WIDTH_INCHES,
                height / self.height,
            )
        )

    def text(self, left: float, top: float, text: str, size: float = 7.5, colour: str = INK) -> None:
        self.figure.text(left / WIDTH_INCHES, 1 - top / self.height, text, fontsize=size, color=colour, va="top")


def _page(title: str, how: str, body: float) -> _Page:
    height = HEAD + body + FOOT
    page = _Page(new_figure(height), height)
    page.figure.text(0.012, 1 - 0.06 / height, title, fontsize=9.5, fontweight="bold", va="top")
    page.text(0.012 * WIDTH_INCHES, 0.24, how, 7, PALE_INK)
    page.figure.text(
        0.012,
        0.04 / height,
        f"kvsim {__version__} · embeddings, candidates and x of the decoded token are given; attention in float64,\n"
        "memory by kvsim's own allocators: exact, no error expected",
        fontsize=6.5,
        color=PALE_INK,
        va="bottom",
        linespacing=1.25,
    )
    return page


def _allocate(walk: Walk) -> "Figure":
    given, shown = walk.example, rows(walk, "allocate")
    prompt = given.prompt_tokens
    matrix = 0.2 + CELL * prompt
    page = _page(
        "1 Allocate",
        "room for the keys and values of the prompt, before they are computed",
        matrix + _pool_inches(shown),
    )
    width = given.embeddings.shape[1]
    _matrix(
        page, LABEL, HEAD, "x = q = k = v of the prompt", given.embeddings[:prompt], given.tokens[:prompt], digits=0
    )
    page.text(
        LABEL + CELL * width + 0.3,
        HEAD + 0.3,
        f"one layer, one head, d = {width},\nidentity projections",
        7.5,
        PALE_INK,
    )
    _pool(page, HEAD + matrix, shown, given.block_size)
    return page.figure


def _prefill(walk: Walk) -> "Figure":
    given, step, shown = walk.example, walk.prefill, rows(walk, "prefill")
    prompt = given.prompt_tokens
    matrix = 0.2 + CELL * prompt + 0.2
    page = _page(
        "2 Prefill", "every token of the prompt attends to itself and to those before it", matrix + _pool_inches(shown)
    )
    found = step.attended
    left = LABEL
    for title, values in (("scores", found.scores[0]), ("weights", found.weights[0]), ("outputs", found.outputs)):
        masked = np.isinf(found.scores[0]) if title != "outputs" else None
        _matrix(page, left, HEAD, title, values, step.tokens if left == LABEL else (), masked=masked)
        left += CELL * values.shape[1] + 0.16
    below = HEAD + 0.2 + CELL * prompt + 0.03
    skipped = " and ".join(f'"{token}"' for token in step.tokens[: walk.hit_prefill.cached])
    page.text(
        LABEL, below, f'The last row predicts "{walk.next_token}". A second request skips the rows of {skipped}.', 7
    )
    _pool(page, HEAD + matrix, shown, given.block_size)
    return page.figure


def _decode(walk: Walk) -> "Figure":
    given, step, shown = walk.example, walk.decodes[-1], rows(walk, "decode")
    context, width = step.cached + 1, given.embeddings.shape[1]
    matrix = 0.2 + CELL * context + 0.08
    page = _page(
        "3 Decode",
        f'one token, "{step.tokens[0]}": its K and V are appended, all are read, and nothing is masked',
        matrix + _pool_inches(shown) + 0.24 + CURVE + AXIS,
    )
    _matrix(page, LABEL, HEAD, "K = V: cached, and appended", given.embeddings[:context], given.tokens[:context])
    left = LABEL + CELL * width + 0.66
    found = step.attended
    for at, (title, values) in enumerate(
        (("scores of its one query", found.scores[0]), ("weights", found.weights[0]), ("output", found.outputs))
    ):
        _matrix(page, left, HEAD + at * (CELL + 0.2), title, values, ())
    _pool(page, HEAD + matrix, shown, given.block_size)
    axes = page.axes(0.72, HEAD + matrix + _pool_inches(shown) + 0.24, WIDTH_INCHES - 0.84, CURVE)
    lengths = range(1, LONGEST + 1)
    for label, colour, style, cost in (
        (
            "without a cache",
            CLASS_COLOURS["external"],
            "--",
            [step_cost(given.shape, new=n, cached=0) for n in lengths],
        ),
        ("with it", CLASS_COLOURS["used"], "-", [step_cost(given.shape, new=1, cached=n - 1) for n in lengths]),
    ):
        axes.plot(lengths, [total(one).flops for one in cost], color=colour, linestyle=style, label=label)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlim(1, LONGEST)
    axes.set_xlabel("tokens so far, the new one included")
    axes.set_ylabel("FLOPs of the step")
    axes.legend(loc="upper left", fontsize=7, ncols=2, borderaxespad=0)
    return page.figure


def _release(walk: Walk) -> "Figure":
    shown = rows(walk, "release")
    page = _page(
        "4 Release or keep",
        f'"{walk.example.last}" was sampled last: its K and V are never computed',
        _pool_inches(shown),
    )
    _pool(page, HEAD, shown, walk.example.block_size)
    return page.figure


_DRAWN: dict[str, Callable[[Walk], "Figure"]] = {
    "allocate": _allocate,
    "prefill": _prefill,
    "decode": _decode,
    "release": _release,
}


def _matrix(
    page: _Page,
    left: float,
    top: float,
    title: str,
    values: Array,
    labels: Sequence[str],
    *,
    masked: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None" = None,
    digits: int = 3,
) -> None:
    """A table of numbers, the larger the darker; what is masked is hatched."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    height, width = values.shape
    page.text(left, top, title, 7.5)
    axes = page.axes(left, top + 0.17, CELL * width, CELL * height)
    hidden = np.zeros(values.shape, dtype=bool) if masked is None else masked
    seen = np.where(hidden, 0.0, values)
    shades = LinearSegmentedColormap.from_list("shades", ["white", CLASS_COLOURS["used"]])
    most = max(1.0, float(seen.max()))
    axes.imshow(seen, cmap=shades, vmin=0, vmax=1.25 * most, aspect="auto")
    for row in range(height):
        for column in range(width):
            if hidden[row, column]:
                corner = (column - 0.5, row - 0.5)
                axes.add_patch(
                    Rectangle(corner, 1, 1, facecolor="#EFEFEF", edgecolor=PALE_INK, hatch="////", linewidth=0)
                )
                continue
            value = float(seen[row, column])
            dark = value > _WHITE_ON * 1.25 * most
            text = f"{value:.{digits}f}".removesuffix(".000")
            axes.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if dark else INK)
    axes.set_xticks([])
    axes.set_yticks(range(height) if labels else [], list(labels))
    axes.tick_params(left=False, labelsize=7.5, pad=2)
    for side in axes.spines.values():
        side.set_visible(True)


def _pool_inches(shown: Sequence[tuple[str, list[Slot]]]) -> float:
    return 0.3 + ROW * len(shown) + 0.3


def _pool(page: _Page, top: float, shown: Sequence[tuple[str, list[Slot]]], block_size: int) -> None:
    """The pool in rows of slots, blocks apart, and what the colours mean."""
    from matplotlib.patches import Rectangle

    width = WIDTH_INCHES - 0.06
    page.text(0.06, top + 0.06, f"The pool: {len(shown[0][1])} slots in blocks of {block_size}")
    axes = page.axes(0.06, top + 0.26, width, ROW * len(shown))
    axes.set_xlim(0, width)
    axes.set_ylim(ROW * len(shown), 0)
    axes.axis("off")
    for row, (caption, slots) in enumerate(shown):
        middle = (row + 0.5) * ROW
        axes.text(0, middle, caption, fontsize=7.5, va="center")
        for at, slot in enumerate(slots):
            left = CAPTION + at * SLOT + at // block_size * GAP
            colour, size = CLASS_COLOURS[slot.kind], ROW - 0.08
            axes.add_patch(
                Rectangle(
                    (left, middle - size / 2), SLOT - 0.02, size, facecolor=colour, edgecolor=PALE_INK, linewidth=0.5
                )
            )
            ink = _READABLE_ON.get(slot.kind, INK)
            axes.text(left + SLOT / 2 - 0.01, middle, slot.token, fontsize=7.5, ha="center", va="center", color=ink)
    there = {slot.kind for _, slots in shown for slot in slots}
    kinds = [kind for kind in CLASSES if kind in there]
    handles = [
        Rectangle((0, 0), 1, 1, facecolor=CLASS_COLOURS[kind], edgecolor=PALE_INK, linewidth=0.5) for kind in kinds
    ]
    page.figure.legend(
        handles,
        kinds,
        ncols=len(kinds),
        fontsize=7.5,
        loc="upper left",
        bbox_to_anchor=((0.06 + CAPTION) / WIDTH_INCHES, 1 - (top + 0.26 + ROW * len(shown)) / page.height),
        borderaxespad=0.2,
        handlelength=1.2,
    )

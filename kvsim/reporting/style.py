"""One look for every figure: colours, fonts, provenance at the foot, equal bytes for equal input.

Figures are drawn through the Figure object, never through pyplot, so that nothing is shared between two of
them.
"""

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kvsim.metrics.result import Result, write_whole
from kvsim.reporting.finding import shared, sources
from kvsim.reporting.slim import slim_png, slim_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASS_COLOURS: Mapping[str, str] = {
    "used": "#0072B2",
    "reserved": "#56B4E9",
    "internal": "#E69F00",
    "dead": "#CC79A7",
    "moving": "#F0E442",
    "cached": "#009E73",
    "external": "#D55E00",
    "free": "#EFEFEF",
}
"""Colour of each class of the accounting identity: the palette of Okabe and Ito, told apart by every kind of
eye (jfly.uni-koeln.de/color), with a light grey for what is free."""

INK = "#222222"
PALE_INK = "#6A6A6A"
ALARM = CLASS_COLOURS["external"]

WIDTH_INCHES = 4.75
"""Set for a text column: scaled down to 3.4 inches, the smallest type (7 points) still measures 5."""

PNG_DOTS_PER_INCH = 200
_POINTS_PER_INCH = 72
_FINELY = 20
"""Dots a point in which text is measured, so that rounding to dots does not count."""
_SUBPIXELS = 64.0
"""Parts of a dot that a font's widths are told in."""
_SLACK = 0.97
"""Of the width a line may take: screens round the widths of letters up."""
FOOTER_LINE_INCHES = 0.123
"""Height of a line of the footer's type."""
FOOTER_POINTS = 7
"""Size of the footer's type."""
MARGIN_INCHES = 0.06
"""Between an edge of a figure and the text there."""

SETTINGS: Mapping[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "svg.fonttype": "none",
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.edgecolor": PALE_INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "svg.hashsalt": "kvsim",
    "pdf.fonttype": 42,
    "text.parse_math": False,
}
"""DejaVu Sans comes with matplotlib, so that a PNG's letters are the same on every machine. An SVG keeps its text as
text, which can be searched and is drawn in DejaVu Sans where the reader has it; a PDF embeds the letters it uses as
TrueType, as publishers ask."""


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save inside this; settings of the caller's process come back afterwards.

    Letters that DejaVu Sans lacks are boxes in a PNG and a PDF; an SVG has them. That is not worth a warning a letter.
    """
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
        mpl.rcdefaults()
        mpl.rcParams.update(cast(Any, SETTINGS))
        yield


def new_figure(height_inches: float) -> "Figure":
    """Return an empty figure of the house's width. Call inside `house_style`."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH_INCHES, height_inches), layout=None)


def text_inches(text: str, points: float, *, bold: bool = False) -> float:
    """How wide a text of this size is, by the widths of its letters."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")))
    font.set_size(points, _POINTS_PER_INCH * _FINELY)
    font.set_text(text, 0.0)
    return float(font.get_width_height()[0] / (_POINTS_PER_INCH * _FINELY * _SUBPIXELS))


def wrapped(text: str, points: float, *, bold: bool = False) -> list[str]:
    """The lines of a text of this size that fit the width of a figure."""
    most = (WIDTH_INCHES - 2 * MARGIN_INCHES) * _SLACK

    def wide(line: str) -> bool:
        return text_inches(line, points, bold=bold) > most

    lines = [""]
    for word in text.split():
        # A word that no line can hold is cut.
        while wide(word):
            fits = next(length for length in range(len(word) - 1, 0, -1) if not wide(word[:length]))
            lines += [word[:fits]]
            word = word[fits:]
        longer = f"{lines[-1]} {word}".strip()
        if wide(longer):
            lines.append(word)
        else:
            lines[-1] = longer
    return [line for line in lines if line]


def foot_text(text: str) -> str:
    """A text in lines that fit at the foot of a figure."""
    return "\n".join(wrapped(text, FOOTER_POINTS))


def provenance_line(results: Sequence[Result], *, price: bool = False) -> str:
    """Say what made the figure and where its numbers come from, in lines that fit below a figure.

    `price` is for figures that show costs.
    """
    parts = [f"kvsim {results[0].version}", f"seed {results[0].seed}"]
    parts += shared([sources(result, price=price) for result in results], results)
    return foot_text(" · ".join(parts))


def footer_inches(results: Sequence[Result]) -> float:
    """Height that the footer takes at the foot of a figure, with the space above it."""
    return foot_inches(provenance_line(results))


def foot_inches(lines: str) -> float:
    """The same for these lines."""
    return 0.14 + FOOTER_LINE_INCHES * (lines.count("\n") + 1)


def footer(figure: "Figure", results: Sequence[Result]) -> None:
    """Write the provenance at the foot of a figure of these results."""
    write_foot(figure, provenance_line(results))


def write_foot(figure: "Figure", lines: str) -> None:
    """Write lines that fit (see `foot_text`) at the foot of a figure."""
    figure.text(0.012, 0.01, lines, fontsize=FOOTER_POINTS, color=PALE_INK, va="bottom", linespacing=1.25)


FORMATS: Mapping[str, Mapping[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": "kvsim"},
    "pdf": {"CreationDate": None, "Creator": "kvsim", "Producer": None},
}
"""The forms in which figures are written, each with what its file says of itself: no date and no version."""


def figure_bytes(figure: "Figure", form: str) -> bytes:
    """The figure as a file of this form, of `FORMATS`; equal figures give equal bytes."""
    stream = io.BytesIO()
    # A picture is packed when it is slim, and only then.
    how: dict[str, Any] = {"pil_kwargs": {"compress_level": 1}} if form == "png" else {}
    with house_style():
        figure.savefig(
            stream, format=form, dpi=PNG_DOTS_PER_INCH, metadata=dict(FORMATS[form]), facecolor="white", **how
        )
    written = stream.getvalue()
    if form == "png":
        return slim_png(written)
    return slim_svg(written.decode()).encode() if form == "svg" else written


def save_figure(figure: "Figure", folder: Path, stem: str, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write `stem.png` and so on, one file for each of the formats, into a folder that exists."""
    return [write_whole(folder / f"{stem}.{form}", figure_bytes(figure, form)) for form in formats]

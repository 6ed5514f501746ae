"""The figure of a cliff: latency, running and waiting requests and KV in use by load, with the marks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kvsim.reporting.finding import sources_of, three_digits
from kvsim.reporting.plan.cliff_words import marks
from kvsim.reporting.style import (
    ALARM,
    CLASS_COLOURS,
    INK,
    foot_inches,
    foot_text,
    house_style,
    new_figure,
    write_foot,
)
from kvsim.study.planning.cliff import Cliff
from kvsim.study.planning.rates.sustained import Trial
from kvsim.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Heights in inches.
_HEAD, _PANEL, _BETWEEN, _AXIS = 0.58, 1.25, 0.14, 0.45

_MARKS: Mapping[str, tuple[str, str]] = {
    "knee": (CLASS_COLOURS["cached"], "-"),
    "preemption onset": (CLASS_COLOURS["internal"], "--"),
    "queue blow-up": (ALARM, ":"),
}

_PANELS: Sequence[tuple[str, Sequence[tuple[str, tuple[str, ...], float]], bool]] = (
    ("latency p99 (s)", (("TTFT", ("ttft_s", "p99"), 1.0), ("TPOT", ("tpot_s", "p99"), 1.0)), True),
    ("requests", (("running, mean", ("mean_running",), 1.0), ("waiting, mean", ("mean_waiting",), 1.0)), False),
    ("share (%)", (("KV in use", ("mean_share", "used"), 100.0),), False),
)
"""Label of the axis, its lines (name, metric, what it is multiplied by), whether the scale is logarithmic."""

_LOOKS = ((CLASS_COLOURS["used"], "o"), (CLASS_COLOURS["dead"], "s"))


def draw_cliff(cliff: Cliff) -> "Figure":
    """The means of the replications at each rate; the marks run through all panels."""
    said = sources_of(cliff.provenance, cliff.expected_error, price=False)
    foot = foot_text(" · ".join([f"kvsim {__version__}", f"seed {cliff.seed}", *said]))
    below = foot_inches(foot) + _AXIS
    height = _HEAD + len(_PANELS) * (_PANEL + _BETWEEN) + below
    with house_style():
        figure = new_figure(height)
        for number, (label, lines, logarithmic) in enumerate(_PANELS):
            bottom = height - _HEAD - (number + 1) * _PANEL - number * _BETWEEN
            axes = figure.add_axes((0.11, bottom / height, 0.87, _PANEL / height))
            for look, (name, path, scale) in zip(_LOOKS, lines, strict=False):
                _line(axes, cliff.trials, look, name, path, scale)
            for name, rate in marks(cliff).items():
                colour, dashes = _MARKS[name]
                axes.axvline(rate, color=colour, linestyle=dashes, linewidth=1.1, zorder=0)
            if logarithmic:
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_formatter("")
            else:
                axes.set_ylim(bottom=0)
            axes.set_xlim(left=0)
            axes.set_ylabel(label)
            axes.legend(fontsize=6.5, loc="upper left", borderaxespad=0.2, frameon=True, edgecolor="none")
            axes.tick_params(labelbottom=number == len(_PANELS) - 1)
        axes.set_xlabel(
            "load (requests/s)" if cliff.scenario.settings.workload.sessions is None else "load (sessions/s)"
        )
        figure.text(0.012, 1 - 0.08 / height, f"{cliff.name}: where the cliff is", weight="bold", fontsize=9.5,
                    va="top", color=INK)  # fmt: skip
        left = 0.012
        for name, rate in marks(cliff).items():
            text = f"{name} {three_digits(rate)}/s"
            figure.text(left, 1 - 0.32 / height, text, fontsize=7.5, va="top", color=_MARKS[name][0], weight="bold")
            left += 0.33
        write_foot(figure, foot)
    return figure


def _line(
    axes: "Axes", trials: Sequence[Trial], look: tuple[str, str], name: str, path: tuple[str, ...], scale: float
) -> None:
    there = [(one.rate_per_s, value * scale) for one in trials if (value := one.mean(*path)) is not None]
    if there:
        axes.plot(*zip(*there, strict=True), color=look[0], marker=look[1], markersize=3, label=name)

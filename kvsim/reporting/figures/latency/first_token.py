"""What the time to the first token is made of: waiting in the queue, and computing the prompt."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kvsim.metrics.result import Result
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, beside, over, short
from kvsim.reporting.finding import three_digits
from kvsim.reporting.style import CLASS_COLOURS, INK, house_style
from kvsim.reporting.ttft import ttft_split

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS: Mapping[str, tuple[str, str]] = {
    "queue_s": ("queue: arrival to first scheduled", CLASS_COLOURS["internal"]),
    "prefill_s": ("prefill: to the first token", CLASS_COLOURS["used"]),
}
"""Metrics whose means add up to that of the TTFT: what they are, and their colours."""

ROOM = 1.24
"""How far the axis goes, against the longest bar: its number stands behind it."""

# Inches.
BAR, GAP, AXIS, BESIDE = 0.2, 0.1, 0.42, 0.85


def has_first_tokens(results: Sequence[Result]) -> bool:
    """Some request of some result got a token."""
    return any(_timed(result) for result in results)


def first_token(results: Sequence[Result]) -> "Figure":
    """A bar for each result: its mean TTFT in seconds, as the sum of the mean times in queue and prefill.

    Raises ValueError where nobody got a token (see `has_first_tokens`).
    """
    shown = [result for result in results if _timed(result)]
    if not shown:
        raise ValueError("results must hold one whose requests got tokens")
    notes = dict.fromkeys(split.note for result in shown if (split := ttft_split(result)) is not None)
    with house_style():
        room = len(shown) * (BAR + GAP)
        frame = Frame(
            shown,
            title="What the time to the first token is made of",
            finding=_finding(shown),
            note=f"means of the requests that arrive in {over(shown)}{''.join(f'; {note}' for note in notes)}",
            room_inches=LEGEND_LINE + 0.06 + room + AXIS,
        )
        left = beside([short(result.name) for result in shown])
        axes = frame.axes(LEGEND_LINE + 0.06, room, left=max(0.5, left), right=BESIDE)
        start = [0.0] * len(shown)
        for name, (label, colour) in PARTS.items():
            means = [result.metrics[name]["mean"] for result in shown]
            height = BAR / (BAR + GAP)
            axes.barh(range(len(shown)), means, height, left=start, color=colour, label=label, linewidth=0)
            start = [before + mean for before, mean in zip(start, means, strict=True)]
        for place, total in enumerate(start):
            axes.text(total, place, f" {three_digits(total)} s", va="center", fontsize=7, color=INK)
            prefill = f"prefill {three_digits(shown[place].metrics['prefill_s']['mean'])} s"
            axes.text(1.0, place, prefill, transform=axes.get_yaxis_transform(), va="center", fontsize=7)
        axes.set_xlim(0, ROOM * max(start) or 1)
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_yticks(range(len(shown)), [short(result.name) for result in shown])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("mean TTFT (s)")
        axes.xaxis.set_major_formatter("{x:,g}")
        frame.legend(0, axes.get_legend_handles_labels()[0], columns=2)
    return frame.figure


def _timed(result: Result) -> bool:
    return bool(result.metrics["ttft_s"] and all(result.metrics[name] for name in PARTS))


def _finding(results: Sequence[Result]) -> str:
    slowest = max(results, key=lambda result: float(result.metrics["ttft_s"]["mean"]))
    total, queue = slowest.metrics["ttft_s"]["mean"], slowest.metrics["queue_s"]["mean"]
    share = queue / total if total else 0.0
    return f"under {short(slowest.name)} {share:.0%} of the {three_digits(total)} s is waiting in the queue"

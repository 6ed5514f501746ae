"""A plan's figures: how many requests of each length run at once, and a single request's KV against the weights."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.capacity.answers.expected import expected_error, in_words
from kvsim.capacity.plan import Plan
from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.figures.catalog.lengths import LENGTHS, length_axis, log_axis
from kvsim.reporting.style import (
    FOOTER_LINE_INCHES,
    INK,
    PALE_INK,
    foot_text,
    house_style,
    new_figure,
    save_figure,
    write_foot,
)
from kvsim.units import GIB
from kvsim.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KV, WEIGHTS = "#0072B2", "#E69F00"

# Inches.
HEAD, PANEL, AXIS = 0.33, 1.95, 0.55


def write_plan(made: Plan, record: dict[str, Any], folder: str | Path) -> list[Path]:
    """Write `plan.json`, `concurrency.png|svg` and `kv-and-weights.png|svg` into `folder`, made if it is not there."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = [write_whole(target / "plan.json", to_json(record).encode())]
    written += save_figure(concurrency(made), target, "concurrency")
    return written + save_figure(kv_and_weights(made), target, "kv-and-weights")


def concurrency(made: Plan) -> "Figure":
    """Requests at once against their length; what lies beyond the model's own limit is drawn pale."""
    with house_style():
        figure, axes = _panel(made)
        limit = made.deployment.model.max_context
        inside = [length for length in LENGTHS if length <= limit]
        axes.plot(LENGTHS, [made.requests_at_once(length) for length in LENGTHS], color=PALE_INK, linestyle=":")
        axes.plot(inside, [made.requests_at_once(length) for length in inside], color=KV, marker="o", markersize=3)
        axes.axhline(1, color=INK, linewidth=0.7)
        log_axis(axes)
        axes.set_ylabel("requests at once")
        axes.set_title(f"{_title(made)}: requests that fit")
        length_axis(axes)
    return figure


def kv_and_weights(made: Plan) -> "Figure":
    """KV of a single request on one GPU, beside the weights there, from 4K to 1M tokens."""
    with house_style():
        figure, axes = _panel(made)
        step = made.deployment.step_tokens
        shape = made.layout
        sizes = [shape.request_blocks(length, step) * shape.block_bytes / GIB for length in LENGTHS]
        axes.plot(LENGTHS, sizes, color=KV, marker="o", markersize=3, label="KV of one request")
        axes.axhline(made.stage.weights.best / GIB, color=WEIGHTS, label="weights")
        axes.axhline(made.deployment.total.best / GIB, color=INK, linewidth=0.7, linestyle="--", label="card")
        log_axis(axes)
        axes.set_ylabel("GiB on one GPU")
        axes.set_title(f"{_title(made)}: one request")
        axes.legend()
        length_axis(axes)
    return figure


def _title(made: Plan) -> str:
    asked = made.deployment
    card = asked.gpu.name if asked.gpu is not None else f"{asked.total.gib:.2f} GiB"
    cards = asked.tensor_parallel * asked.pipeline_parallel
    return f"{asked.model.name}, {f'{cards} x ' if cards > 1 else ''}{card}"


def _panel(made: Plan) -> "tuple[Figure, Axes]":
    """A figure with one panel, and at its foot where the plan comes from and how far off it may be."""
    low, high = made.tokens.low, made.tokens.high
    text = f"kvsim {__version__} · {made.provenance['policy'].partition(' (')[0]} · {low:,.0f} to {high:,.0f} tokens"
    foot = foot_text(f"{text} · {in_words(expected_error(made))}")
    below = AXIS + FOOTER_LINE_INCHES * (foot.count("\n") + 1)
    height = HEAD + PANEL + below
    figure = new_figure(height)
    write_foot(figure, foot)
    return figure, figure.add_axes((0.13, below / height, 0.84, PANEL / height))

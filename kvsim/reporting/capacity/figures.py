"""A plan's figures: how many requests of each length run at once, and a single request's KV against the weights."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.capacity.answers.expected import expected_error, in_words
from kvsim.capacity.plan import Plan
from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.figures.catalog.lengths import LENGTHS, length_axis, length_text, log_axis
from kvsim.reporting.figures.frame import Frame
from kvsim.reporting.style import INK, PALE_INK, house_style, save_figure
from kvsim.units import GIB
from kvsim.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KV, WEIGHTS = "#0072B2", "#E69F00"

TOLD = (4096, 131_072)
"""Lengths whose numbers the heading tells."""
DOTTED = "dotted: beyond the model's context"

# Inches.
PANEL, AXIS = 1.9, 0.46


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
        frame = Frame((), title=f"{_title(made)}: requests that fit", finding=_fit(made), note=DOTTED, foot=_foot(made),
                      room_inches=PANEL + AXIS)  # fmt: skip
        axes = frame.axes(0.04, PANEL, left=0.62)
        limit = made.deployment.model.max_context
        inside = [length for length in LENGTHS if length <= limit]
        axes.plot(LENGTHS, [made.requests_at_once(length) for length in LENGTHS], color=PALE_INK, linestyle=":")
        axes.plot(inside, [made.requests_at_once(length) for length in inside], color=KV, marker="o", markersize=3)
        axes.axhline(1, color=INK, linewidth=0.7)
        log_axis(axes)
        axes.set_ylabel("requests at once")
        length_axis(axes)
    return frame.figure


def kv_and_weights(made: Plan) -> "Figure":
    """KV of a single request on one GPU, beside the weights there, from 4K to 1M tokens."""
    with house_style():
        frame = Frame((), title=f"{_title(made)}: one request", finding=_share(made), foot=_foot(made),
                      room_inches=PANEL + AXIS)  # fmt: skip
        axes = frame.axes(0.04, PANEL, left=0.62)
        step = made.deployment.step_tokens
        shape = made.layout
        sizes = [shape.request_blocks(length, step) * shape.block_bytes / GIB for length in LENGTHS]
        axes.plot(LENGTHS, sizes, color=KV, marker="o", markersize=3, label="KV of one request")
        axes.axhline(made.stage.weights.best / GIB, color=WEIGHTS, label="weights")
        axes.axhline(made.deployment.total.best / GIB, color=INK, linewidth=0.7, linestyle="--", label="card")
        log_axis(axes)
        axes.set_ylabel("GiB on one GPU")
        axes.legend()
        length_axis(axes)
    return frame.figure


def _title(made: Plan) -> str:
    asked = made.deployment
    card = asked.gpu.name if asked.gpu is not None else f"{asked.total.gib:.2f} GiB"
    cards = asked.tensor_parallel * asked.pipeline_parallel
    return f"{asked.model.name}, {f'{cards} x ' if cards > 1 else ''}{card}"


def _fit(made: Plan) -> str:
    told = [length for length in TOLD if length <= made.deployment.model.max_context] or [LENGTHS[0]]
    return "; ".join(f"{made.requests_at_once(length):,.1f} of {length_text(length)} tokens at once" for length in told)


def _share(made: Plan) -> str:
    longest = max((at for at in LENGTHS if at <= made.deployment.model.max_context), default=LENGTHS[0])
    kv = made.layout.request_blocks(longest, made.deployment.step_tokens) * made.layout.block_bytes
    weights = made.stage.weights.best
    return f"at {length_text(longest)} tokens KV is {kv / GIB:,.1f} GiB, {kv / (kv + weights):.0%} of KV and weights"


def _foot(made: Plan) -> str:
    low, high = made.tokens.low, made.tokens.high
    text = f"kvsim {__version__} · {made.provenance['policy'].partition(' (')[0]} · {low:,.0f} to {high:,.0f} tokens"
    return f"{text} · {in_words(expected_error(made))}"

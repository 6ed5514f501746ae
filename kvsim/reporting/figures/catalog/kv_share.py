"""One request's KV against the weights: its share of both together, from 4K to 1M tokens."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import model
from kvsim.metrics.result import Result
from kvsim.reporting.figures.catalog.lengths import LENGTHS, length_axis, length_text
from kvsim.reporting.figures.catalog.served import footprint_of
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, columns_for, lines_for, look_of, short
from kvsim.reporting.style import PALE_INK, house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BESIDE = ("llama-2-7b", "llama-3.1-70b", "gemma-3-27b", "qwen3-next-80b-a3b", "deepseek-v3")
"""Models that stand beside those of the runs: full heads, grouped, most layers windowed, most linear, latent."""

HALF = 50.0

# Inches.
PANEL, AXIS = 1.9, 0.42


def has_weights(results: Sequence[Result]) -> bool:
    """The model of some result is known, and how large it is."""
    return bool(_of_runs(results))


def share_percent(footprint: Footprint, tokens: int) -> float:
    """KV and state of one sequence, in per cent of them and the weights together, on one rank."""
    kv = footprint.sequence_bytes(tokens)
    return 100 * kv / (kv + footprint.weight_bytes)


def kv_share(results: Sequence[Result]) -> "Figure":
    """A line for each model: the share, in per cent, that one request's KV has of KV and weights on a GPU.

    The models of the runs are as they were served; others stand beside them, in bf16 on one GPU each. Beyond a model's
    own context a line is dotted. Raises ValueError where no model is known (see `has_weights`).
    """
    own = _of_runs(results)
    if not own:
        raise ValueError("results must hold one whose model and weights are known")
    lines = [(name, shown, 1.8) for name, shown in own.items()]
    served = {shown.model.name for shown in own.values()}
    lines += [(name, Footprint(model(name)), 0.9) for name in BESIDE if name not in served]
    names = [short(name, 34) for name, _, _ in lines]
    key_inches = LEGEND_LINE * lines_for(names, most=3) + 0.06
    with house_style():
        frame = Frame(
            results,
            title="One request's KV against the weights",
            finding=_finding(own),
            note="share of KV and weights on one GPU; thin: other models in bf16; dotted: beyond a model's context",
            room_inches=key_inches + PANEL + AXIS,
        )
        axes = frame.axes(key_inches, PANEL, left=0.62)
        for place, ((_, shown, width), name) in enumerate(zip(lines, names, strict=True)):
            colour, style = look_of(place)
            every = [share_percent(shown, length) for length in LENGTHS]
            inside = [at for at, length in enumerate(LENGTHS) if length <= shown.model.max_context]
            axes.plot(LENGTHS, every, color=colour, linestyle=":", linewidth=0.9)
            solid = [every[at] if at in inside else float("nan") for at in range(len(LENGTHS))]
            axes.plot(LENGTHS, solid, color=colour, linestyle=style, linewidth=width, marker="o", markersize=2.4,
                      label=name)  # fmt: skip
        axes.axhline(HALF, color=PALE_INK, linewidth=0.6, linestyle=(0, (4, 2)))
        axes.set_ylim(0, 100)
        axes.set_ylabel("KV (% of KV and weights)")
        length_axis(axes)
        frame.legend(0, axes.get_legend_handles_labels()[0], columns_for(names, most=3), left=0.2)
    return frame.figure


def _of_runs(results: Sequence[Result]) -> dict[str, Footprint]:
    """By name, with what tells it apart from the model as published."""
    found = {}
    for result in results:
        shown = footprint_of(result)
        if shown is not None and shown.model.weights_known:
            ranks = f" on {shown.tensor_parallel} GPUs" if shown.tensor_parallel > 1 else ""
            kinds = "" if shown.kv_dtype == "bf16" else f", {shown.kv_dtype} KV"
            found[f"{shown.model.name}{ranks}{kinds}"] = shown
    return found


def _finding(own: dict[str, Footprint]) -> str:
    name, shown = next(iter(own.items()))
    longest = max((length for length in LENGTHS if length <= shown.model.max_context), default=LENGTHS[0])
    told = dict.fromkeys((LENGTHS[0], longest))
    parts = [f"{share_percent(shown, length):.1f} % at {length_text(length)} tokens" for length in told]
    return f"{short(name, 34)}: {', '.join(parts)}"

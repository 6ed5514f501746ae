"""Median errors of every source and family as bars, beside the two baselines."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvsim.reporting.style import INK, PALE_INK, new_figure

SEEN, BLIND = "#0072B2", "#E69F00"
ROW_INCHES = 0.22
MOST_PERCENT = 100.0


def bars(seen: Sequence[Mapping[str, Any]], blind: Sequence[Mapping[str, Any]]) -> Any:
    """One row for each source and family: dots for unseen models and GPUs, ticks for the baselines; beyond 100 % at
    the edge. Call inside `house_style`."""  # fmt: skip
    unseen = {_key(one): one for one in blind}
    count = max(1, len(seen))
    height = 0.9 + ROW_INCHES * count
    figure = new_figure(height)
    axes = figure.add_axes((0.5, 0.42 / height, 0.47, (height - 0.86) / height))
    for place, one in enumerate(seen):
        at = count - 1 - place
        for name, marker in (("baseline_datasheet_median", "|"), ("baseline_linear_median", "x")):
            if one[name] is not None:
                axes.plot(_shown(one[name]), at, marker=marker, color=PALE_INK, markersize=5, linestyle="none")
        axes.barh(at, _shown(one["median_abs_error"]), height=0.62, color=SEEN)
        other = unseen.get(_key(one))
        if other is not None:
            axes.plot(_shown(other["median_abs_error"]), at, "o", color=BLIND, markeredgecolor=INK, markersize=4,
                      markeredgewidth=0.4)  # fmt: skip
    axes.set_yticks(range(count), [_name(one) for one in reversed(seen)], fontsize=7)
    axes.set_xlim(0, MOST_PERCENT * 1.02)
    axes.set_ylim(-0.7, count - 0.3)
    axes.set_xlabel("median |error|, %")
    axes.tick_params(axis="y", length=0)
    figure.text(0.012, 1 - 0.2 / height, "The cost model on rows it has not seen", weight="bold", fontsize=9.5)
    _legend(axes)
    return figure


def _legend(axes: Any) -> None:
    axes.barh([], [], color=SEEN, label="unseen model or shape")
    axes.plot([], [], "o", color=BLIND, markeredgecolor=INK, markeredgewidth=0.4, markersize=4, label="unseen GPU")
    axes.plot([], [], "|", color=PALE_INK, label="bytes / bandwidth")
    axes.plot([], [], "x", color=PALE_INK, label="straight line")
    axes.legend(
        loc="lower center", bbox_to_anchor=(0.0, 1.0), ncols=4, fontsize=7, handletextpad=0.3, columnspacing=0.9
    )


def _key(one: Mapping[str, Any]) -> tuple[str, str, str]:
    return one["source"], one["family"], one["kind"]


def _name(one: Mapping[str, Any]) -> str:
    source = one["source"].removesuffix(".csv").removesuffix("_llama-2-70b_tp2")
    family = one["family"].replace("_attention", "").replace("offline_throughput", "offline")
    family = {"tpot": "TPOT", "ttft": "TTFT"}.get(family, family)
    if family.split(":")[0] in source or source.startswith(("kernel", "linear")):
        family = family.partition(":")[2] or family
    kind = "" if one["kind"] == "kernel" else f", {one['kind']}"
    return f"{source}: {family}{kind}  ({one['n']:,})"


def _shown(share: float) -> float:
    return min(MOST_PERCENT, 100 * share)

"""Median errors of every source and family as bars, beside the two baselines."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from kvsim.reporting.figures.frame import Frame
from kvsim.reporting.style import INK, PALE_INK, WIDTH_INCHES
from kvsim.version import __version__

SEEN, BLIND = "#0072B2", "#E69F00"
ROW_INCHES, LEGEND_INCHES, AXIS_INCHES = 0.22, 0.2, 0.42
MOST_PERCENT = 100.0


def bars(seen: Sequence[Mapping[str, Any]], blind: Sequence[Mapping[str, Any]]) -> Any:
    """One row for each source and family: dots for unseen models and GPUs, ticks for the baselines; beyond 100 % at
    the edge. Call inside `house_style`."""  # fmt: skip
    unseen = {_key(one): one for one in blind}
    count = max(1, len(seen))
    room = ROW_INCHES * count
    frame = Frame(
        (),
        title="The cost model on rows it has not seen",
        finding=_finding(seen),
        foot=f"kvsim {__version__} · rows of each source: predicted without the model or the shape that they are of, "
        "or without their GPU, against measured",
        room_inches=LEGEND_INCHES + room + AXIS_INCHES,
    )
    axes = frame.axes(LEGEND_INCHES, room, left=0.5 * WIDTH_INCHES)
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
    _legend(axes)
    return frame.figure


def _finding(seen: Sequence[Mapping[str, Any]]) -> str:
    errors = sorted(100 * float(one["median_abs_error"]) for one in seen)
    if not errors:
        return "no rows"
    rows, middle = sum(int(one["n"]) for one in seen), median(errors)
    return f"median errors of {errors[0]:.1f} to {errors[-1]:,.0f} %, half of them below {middle:.0f} %; {rows:,} rows"


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

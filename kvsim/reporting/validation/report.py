"""The report of a validation: goals, errors by source and family, the worst rows, what was left out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.style import house_style, save_figure
from kvsim.reporting.validation.figures import bars
from kvsim.reporting.validation.recorded import draw_runs, section
from kvsim.study.recorded.session import Compared

TITLES = {
    "unseen_model": "Unseen shapes and models, on GPUs that were fitted",
    "unseen_gpu": "Unseen GPUs: data sheet and the median of the other GPUs' efficiencies",
    "kv_bound": "Runs whose pool holds fewer requests than are in flight (unseen model)",
    "unseen_release": "Unseen engine releases: other releases of the engine, else the other engines",
}
MOST_WORST = 20
HEAD = """# The cost model against measurements

Every row is predicted from fits that saw none of its group: no row of its shape or model, none of its GPU, none of its
engine's release. Errors are predicted / measured - 1. Two baselines are scored on the same rows: bytes over the
datasheet's bandwidth, and one straight line in tokens and KV bytes fitted to the same training rows. All measurements
are others', published; nothing here was measured by kvsim.

![Errors by source and family, beside the two baselines](validation.png)
"""


def write_validation(found: Mapping[str, Any], folder: str | Path, runs: Sequence[Compared] = ()) -> list[Path]:
    """Write `README.md`, `validation.json` and `validation.png|svg` into `folder`, made if it is not there.

    `runs` are the recorded runs that `found` tells of, for their figures.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = [
        write_whole(target / "README.md", _report(found).encode()),
        write_whole(target / "validation.json", to_json(_short(found)).encode()),
    ]
    with house_style():
        figure = bars(found["summary"]["unseen_model"], found["summary"]["unseen_gpu"])
    return written + save_figure(figure, target, "validation") + draw_runs(runs, target)


def _short(found: Mapping[str, Any]) -> dict[str, Any]:
    """What the report keeps: the groups alone are thousands of lines, and `--json` prints them."""
    return {
        key: value
        for key, value in found.items()
        if key not in ("groups", "first_token", "unseen_gpu", "unseen_release", "expected_errors")
    }


def _report(found: Mapping[str, Any]) -> str:
    summary = found["summary"]
    lines = [HEAD, "## Goals", "", "| goal | median % | p95 % | n | met |", "|" + " --- |" * 5]
    lines += [_goal(goal) for goal in summary["targets"]]
    lines += section(found["recorded_runs"])
    for part, title in TITLES.items():
        if summary[part]:
            lines += ["", f"## {title}", "", *_table(summary[part], ("source", "family", "kind"))]
    lines += ["", "## By GPU", "", *_table(summary["unseen_model_by_gpu"], ("source", "gpu", "family", "kind"))]
    lines += [
        "",
        "## By GPU, each unseen",
        "",
        *_table(summary["unseen_gpu_by_gpu"], ("source", "gpu", "family", "kind")),
    ]
    lines += ["", "## Worst served groups, unseen model", "", *_worst(found["groups"])]
    lines += ["", "## Offline and saturated runs beyond the pool, one by one", "", *_cliffs(found["kv_bound_rows"])]
    lines += ["", "## Left out", ""]
    lines += [f"- {one['rows']} rows: {one['reason']}" for one in found["skipped"]]
    lines += [f"- {line}" for line in found["not_scored_here"]]
    lines += [f"- {found['scored_rows']:,} of {found['rows']:,} rows are scored."]
    return "\n".join([*lines, ""])


def _goal(goal: Mapping[str, Any]) -> str:
    reached = goal["reached"]
    cells = [goal["goal"]]
    for name in ("median", "p95"):
        value = f"{100 * reached[f'{name}_abs_error']:.1f}"
        cells.append(value if goal.get(name) is None else f"{value} (goal {100 * goal[name]:.0f})")
    return "| " + " | ".join([*cells, f"{reached['n']:,}", "yes" if goal["met"] else "**no**"]) + " |"


def _table(rows: Sequence[Mapping[str, Any]], by: Sequence[str]) -> list[str]:
    head = [*by, "n", "median %", "p90 %", "bias %", "datasheet median %", "line median %"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in rows:
        cells = [str(row[name]) for name in by] + [f"{row['n']:,}"]
        cells += [_percent(row["median_abs_error"]), _percent(row["p90_abs_error"]), f"{100 * row['bias']:+.1f}"]
        cells += [_percent(row["baseline_datasheet_median"]), _percent(row["baseline_linear_median"])]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _worst(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    served = [group for group in groups if "engine" in group]
    ordered = sorted(served, key=lambda group: -group["median_abs_error"])[:MOST_WORST]
    lines = ["| source | GPU | model | engine | family | n | median % | bias % | worst row |", "|" + " --- |" * 9]
    for group in ordered:
        worst = group["worst"][0]
        cells = [group["source"], group["gpu"], group["model"], group["engine"], group["family"], f"{group['n']}"]
        cells += [_percent(group["median_abs_error"]), f"{100 * group['bias']:+.1f}"]
        lines.append("| " + " | ".join([*cells, f"{worst['row']}: {100 * worst['error']:+.0f} %"]) + " |")
    return lines


def _cliffs(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where the cliff is and how deep; runs of the closed loop are too many to list."""
    lines = ["| source | GPU | model | run | measured s | predicted s | error % |", "|" + " --- |" * 7]
    for row in rows:
        if row["family"] != "offline_throughput":
            continue
        measured, predicted = row["measured_s"], row["predicted_s"]
        cells = [row["source"], row["gpu"], row["model"], row["row"], f"{measured:g}", f"{predicted:g}"]
        lines.append("| " + " | ".join([*cells, f"{100 * (predicted / measured - 1):+.0f}"]) + " |")
    return lines


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"

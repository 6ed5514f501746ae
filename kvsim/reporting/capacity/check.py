"""The report of a checked table of start-ups: every row with its interval, error and reason, and the scores."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvsim.capacity.overheads.releases import overheads
from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.style import INK, PALE_INK, house_style, new_figure, save_figure

HEADINGS = {
    "given": "Given what each log prints of its overheads, its KV memory or its blocks",
    "default": "From model, GPU and flags alone. Each row is planned without what its own model logged: neither its "
    "non-torch memory nor its activation peaks, to which the numbers of the rule are fitted again. What that cannot "
    "undo is listed below. One vote for each engine release, model, GPU and TP; errors of tokens are those of KV "
    "memory",
}
OVERHEAD = "#0072B2"


def write_check(found: Mapping[str, Any], folder: str | Path) -> list[Path]:
    """Write `README.md`, `check.json` and `overhead.png|svg` into `folder`, made if it is not there."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = [
        write_whole(target / "README.md", _report(found).encode()),
        write_whole(target / "check.json", to_json(found).encode()),
    ]
    return written + save_figure(_overheads(found["default"]["rows"]), target, "overhead")


def _report(found: Mapping[str, Any]) -> str:
    lines = ["# The planner against logged start-ups", ""]
    lines += ["![Overhead planned against logged](overhead.png)", ""]
    for mode, part in found.items():
        lines += [f"## {mode}", "", f"{HEADINGS[mode]}.", ""]
        lines += [f"- {name}: {summary_text(value)}" for name, value in part["summary"].items()]
        lines += ["", *_table(part["rows"]), ""]
    lines += ["## What was fitted", ""]
    lines += ["| number or form | how | what fixes it | left out of its model's score |", "|" + " --- |" * 4]
    lines += ["| " + " | ".join(one.values()) + " |" for one in overheads()["fitted"]["numbers"]]
    return "\n".join([*lines, ""])


def summary_text(value: Any) -> str:
    """One line of a score for people."""
    if isinstance(value, dict) and set(value) == {"n", "median", "p90"}:
        return f"median {value['median']}, p90 {value['p90']} over {value['n']}"
    if isinstance(value, dict):
        return "; ".join(f"{name}: {summary_text(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    head = ["row", "engine", "model", "GPU x TP", "KV tokens logged", "planned", "interval", "error %"]
    head += ["overhead GiB logged", "planned", "verdict", "why", "source"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return lines + ["| " + " | ".join(_cells(row)) + " |" for row in rows]


def _cells(row: Mapping[str, Any]) -> list[str]:
    logged, planned = row["logged"], row["predicted"] or {}
    low, high = planned.get("kv_tokens_interval", (None, None))
    error = row["error"].get("kv_tokens", row["error"].get("kv_memory"))
    ended = "" if logged["outcome"] in ("", "ok") else f"logged: {logged['outcome']}"
    reason = "; ".join(text for text in (row["why"], planned.get("reason", ""), ended) if text)
    verdict = planned.get("verdict", "-")
    if planned.get("reason_class"):
        verdict += f" ({planned['reason_class']})"
    return [
        row["id"],
        row["engine"],
        row["model"].replace("|", "/"),
        f"{row['gpu']} x {row['tp']}",
        _whole(logged["kv_tokens"]),
        _whole(planned.get("kv_tokens")),
        "" if low is None else f"{low:,.0f} to {high:,.0f}",
        "" if error is None else f"{100 * error:+.2f}",
        _gib(logged["overhead_gib"]),
        _gib(planned.get("overhead_gib")),
        verdict,
        reason.replace("|", "/"),
        f"[log]({row['source']})" if row["source"].startswith("https://") else row["source"],
    ]


def _whole(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _gib(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _overheads(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Everything but weights and KV, planned against logged."""
    pairs = [
        (row["logged"]["overhead_gib"], row["predicted"]["overhead_gib"])
        for row in rows
        if row["predicted"] and row["logged"]["overhead_gib"] is not None
    ]
    with house_style():
        figure = new_figure(3.2)
        axes = figure.add_axes((0.11, 0.15, 0.85, 0.74))
        most = 1.05 * max((max(pair) for pair in pairs), default=1.0)
        axes.plot((0, most), (0, most), color=PALE_INK, linewidth=0.8)
        axes.scatter([pair[0] for pair in pairs], [pair[1] for pair in pairs], s=14, color=OVERHEAD, edgecolor=INK,
                     linewidth=0.3, alpha=0.8)  # fmt: skip
        axes.set_xlabel("logged, GiB")
        axes.set_ylabel("planned, GiB")
        axes.set_title("Everything but weights and KV, from flags alone")
    return figure

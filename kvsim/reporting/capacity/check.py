"""The report of a checked table of start-ups: every row with its interval, error and reason, and the scores."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvsim.capacity.overheads.releases import overheads
from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.figures.frame import Frame
from kvsim.reporting.style import INK, PALE_INK, house_style, save_figure
from kvsim.version import __version__

HEADINGS = {
    "given": "Given what each log prints of its overheads, its KV memory or its blocks",
    "default": "From model, GPU and flags alone. Each row is planned without what its own model logged: neither its "
    "non-torch memory nor its activation peaks, to which the numbers of the rule are fitted again. What that cannot "
    "undo is listed below. One vote for each engine release, model, GPU and TP; errors of tokens are those of KV "
    "memory",
}
LABELS = {
    "consistent_rows": "rows that the table marks consistent",
    "numbers_checked": "numbers that they log",
    "outside_interval": "of them outside the interval",
    "rows": "rows that log card, share, weights and KV",
    "overhead_gib": "overhead, off by",
    "kv_tokens": "KV tokens, off by",
    "kv_tokens_tight": "KV tokens of tight cards (KV under 40 % of the card)",
    "kv_tokens_rows_without_overheads": "KV tokens of the other rows, which log no overhead",
    "kv_blocks": "blocks",
    "max_concurrency": "concurrency",
    "kv_memory_from_overheads": "KV memory, computed from the overheads",
    "weights": "weights",
    "interval_coverage": "inside the interval",
    "interval_median_width": "median width of the interval, of the KV memory",
    "refusals_right": "starts that end as logged",
    "refusals_wrong": "starts that do not",
}
OVERHEAD = "#0072B2"

# Inches.
PANEL, AXIS = 2.4, 0.46


def write_check(found: Mapping[str, Any], folder: str | Path) -> list[Path]:
    """Write `README.md`, `check.json` and `overhead.png|svg` into `folder`, made if it is not there."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = [
        write_whole(target / "README.md", _report(found).encode()),
        write_whole(target / "check.json", to_json(found).encode()),
    ]
    return written + save_figure(_overheads(found["default"]), target, "overhead")


def _report(found: Mapping[str, Any]) -> str:
    lines = ["# The planner against logged start-ups", ""]
    lines += ["![Overhead planned against logged](overhead.png)", ""]
    for mode, part in found.items():
        lines += [f"## {mode}", "", f"{HEADINGS[mode]}.", ""]
        lines += [f"- {line}" for line in summary_lines(part["summary"])]
        lines += ["", *_table(part["rows"]), ""]
    lines += ["## What was fitted", ""]
    lines += ["| number or form | how | what fixes it | left out of its model's score |", "|" + " --- |" * 4]
    lines += ["| " + " | ".join(one.values()) + " |" for one in overheads()["fitted"]["numbers"]]
    return "\n".join([*lines, ""])


def summary_lines(summary: Mapping[str, Any]) -> list[str]:
    """The scores for people, one a line; n, median and p90 at the top of the JSON are those of the KV tokens."""
    lines = []
    for name, value in summary.items():
        if name == "baseline":
            lines += [f"the baseline's {LABELS[one]}: {_score(one, inner)}" for one, inner in value.items()]
        elif name == "where_the_baseline_is_weak":
            for kind, scores in value.items():
                planned, constant = (_score("overhead_gib", scores[one]) for one in ("overhead_gib", "baseline"))
                lines.append(f"overhead of {kind.replace('_', ' ')}: {planned}; the baseline: {constant}")
        elif name in LABELS:
            lines.append(f"{LABELS[name]}: {_score(name, value)}")
    return lines


def _score(name: str, value: Any) -> str:
    if isinstance(value, dict):
        if not value["n"]:
            return "none"
        median, p90 = (_size(name, value[one]) for one in ("median", "p90"))
        return f"median {median}, p90 {p90}, of {value['n']}"
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if value is None:
        return "none"
    return _size(name, value) if name.startswith("interval") else str(value)


def _size(name: str, value: float) -> str:
    return f"{value:.2f} GiB" if name == "overhead_gib" else f"{100 * value:.3g} %"


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


def _overheads(part: Mapping[str, Any]) -> Any:
    """Everything but weights and KV, planned against logged."""
    pairs = [
        (row["logged"]["overhead_gib"], row["predicted"]["overhead_gib"])
        for row in part["rows"]
        if row["predicted"] and row["logged"]["overhead_gib"] is not None
    ]
    with house_style():
        frame = Frame(
            (),
            title="Everything but weights and KV, from flags alone",
            note="a dot a start-up that logged it; line: planned as logged",
            room_inches=PANEL + AXIS,
            foot=f"kvsim {__version__} · {LABELS['overhead_gib']}: "
            f"{_score('overhead_gib', part['summary']['overhead_gib'])} kinds of start · each planned without what its "
            "own model logged",
        )
        axes = frame.axes(0.04, PANEL, left=0.5)
        most = 1.05 * max((max(pair) for pair in pairs), default=1.0)
        axes.plot((0, most), (0, most), color=PALE_INK, linewidth=0.8)
        axes.scatter([pair[0] for pair in pairs], [pair[1] for pair in pairs], s=14, color=OVERHEAD, edgecolor=INK,
                     linewidth=0.3, alpha=0.8)  # fmt: skip
        axes.set_xlabel("logged (GiB)")
        axes.set_ylabel("planned (GiB)")
    return frame.figure

"""The section of the validation report about recorded runs: a table, and a figure for each run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvsim.reporting.recorded.figures import draw_recorded
from kvsim.reporting.style import save_figure
from kvsim.study.recorded.session import Compared

KEYS = {
    "tpot_s.mean": "TPOT, mean",
    "e2e_s.mean": "E2E, mean",
    "ttft_s.mean": "TTFT, mean",
    "running_queueing": "running while any wait, mean",
    "kv_share": "KV use, mean share of the pool",
}
TEXT = """Real servers whose requests were recorded one by one, replayed by the engine from model, card and flags alone
(`kvsim compare-run`): the same arrivals and lengths, the server's own scheduling rules. No row of these runs is fitted
to; the cards have no kernel tables, and what stands in for them is said below each figure."""


def section(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of Markdown; none where no run was recorded."""
    if not rows:
        return []
    lines = ["", "## Recorded runs, replayed", "", TEXT, ""]
    lines += ["| run | quantity | measured | simulated | off by | apart on average |", "|" + " --- |" * 6]
    for run in rows:
        for key, label in KEYS.items():
            row = run["rows"].get(key)
            if row is not None:
                lines.append(_line(run["name"], label, row))
    for run in rows:
        pairs = ", ".join(f"{name.removesuffix('_s').upper()} {100 * value:.1f} %"
                          for name, value in run["request_by_request"].items())  # fmt: skip
        lines += ["", f"![{run['name']}: measured and simulated]({stem(run['name'])}.png)", ""]
        lines += [f"{run['name']}: step times from {run['provenance']['timing']}. Median distance request by request: "
                  f"{pairs}."]  # fmt: skip
    return lines


def draw_runs(runs: Sequence[Compared], folder: Path) -> list[Path]:
    """The figure of each run as PNG and SVG."""
    written = []
    for run in runs:
        written += save_figure(draw_recorded(run), folder, stem(run.result.name))
    return written


def stem(name: str) -> str:
    """The name of a run's figure."""
    return f"recorded_{name.removeprefix('vllm_run_')}"


def _line(name: str, label: str, row: Mapping[str, Any]) -> str:
    share = row["unit"] == "share"
    numbers = [f"{row[side]:.4g}" for side in ("measured", "simulated")]
    off = f"{100 * row['error']:+.1f} {'points' if share else '%'}"
    apart = row.get("mean_distance")
    told = "" if apart is None else f"{100 * apart:.1f} points" if share else f"{apart:.3g}"
    return "| " + " | ".join([name, label, *numbers, off, told]) + " |"

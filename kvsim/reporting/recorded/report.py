"""The folder that `kvsim compare-run -o` writes: report, figure, and both sides in tables."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.finding import sources
from kvsim.reporting.recorded.figures import draw_recorded
from kvsim.reporting.recorded.rows import HEAD, cells, pairs_line
from kvsim.reporting.style import save_figure
from kvsim.study.recorded.benchmark import bench_serve_text
from kvsim.study.recorded.measured import LATENCIES, SERIES, Measured
from kvsim.study.recorded.session import Compared

FIGURE = "compared"


def write_recorded(found: Compared, folder: str | Path) -> list[Path]:
    """Write README.md, comparison.json, compared.png|svg, requests.csv, series.csv and vllm_bench.json."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    contents = {
        "README.md": report(found),
        "comparison.json": to_json(found.as_json()),
        "requests.csv": _requests(found),
        "series.csv": _series(found),
        "vllm_bench.json": bench_serve_text(found.result),
        "resolved.json": to_json(found.result.scenario_resolved),
    }
    written = [write_whole(target / name, text.encode()) for name, text in contents.items() if text]
    return written + save_figure(draw_recorded(found), target, FIGURE)


def report(found: Compared, figure: str = f"{FIGURE}.png") -> str:
    """The report as Markdown: the figure, the table, what was assumed."""
    comparison = found.comparison
    lines = [
        f"# {found.result.name}: measured and simulated",
        "",
        f"Measured: {comparison.measured.source}. Errors are simulated / measured - 1, of shares the difference in "
        "points; *apart on average* is the mean distance over the moments that were measured.",
        "",
        f"![KV use, running and waiting over time, and latencies, measured and simulated]({figure})",
        "",
        *table(found),
        "",
        pairs_line(comparison),
        "",
        *(f"- {note}" for note in found.notes),
        *(f"- {line}" for line in sources(found.result)),
        "",
        "`requests.csv` and `series.csv` have both sides row by row, `vllm_bench.json` the simulated one as "
        "`vllm bench serve` writes results, `resolved.json` every setting.",
    ]
    return "\n".join([*lines, ""])


def table(found: Compared) -> list[str]:
    """The rows of the comparison as a Markdown table."""
    lines = [HEAD, ("---",) * len(HEAD)]
    lines += [tuple(cells(row)) for row in found.comparison.rows if row.simulated is not None]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _requests(found: Compared) -> str:
    """Both sides request by request where they are the same ones, else each side's own rows."""
    lines: list[Sequence[object]] = []
    for name, side in (("measured", found.comparison.measured), ("simulated", found.comparison.simulated)):
        requests = side.requests
        if requests is None:
            continue
        for index in range(len(requests)):
            numbers = (requests.arrival_s, requests.ttft_s, requests.tpot_s, requests.e2e_s)
            lengths = (requests.prompt_tokens, requests.output_tokens)
            lines.append([name, index, *(int(column[index]) for column in lengths),
                          *(_number(column[index]) for column in numbers)])  # fmt: skip
    head = ("side", "request", "prompt_tokens", "output_tokens", "arrival_s", *LATENCIES)
    return _csv(head, lines)


def _series(found: Compared) -> str:
    lines: list[Sequence[object]] = []
    for name, side in (("measured", found.comparison.measured), ("simulated", found.comparison.simulated)):
        lines += [[name, *row] for row in _moments(side)]
    return _csv(("side", "time_s", *SERIES), lines) if lines else ""


def _moments(side: Measured) -> Iterable[list[object]]:
    if side.series is None:
        return
    for index, time_s in enumerate(side.series.time_s):
        columns = (side.series.get(name) for name in SERIES)
        yield [_number(time_s), *("" if column is None else _number(column[index]) for column in columns)]


def _number(value: float) -> object:
    return "" if np.isnan(value) else round(float(value), 6)


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return stream.getvalue()

"""What a sweep's folder holds beside its runs: the summary, the figure and a README."""

from collections.abc import Sequence
from pathlib import Path

from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.finding import expected, three_digits
from kvsim.reporting.sweep.measures import measures
from kvsim.reporting.sweep.points import SATURATED, SATURATED_MEANS, every_point, goals, pareto
from kvsim.reporting.sweep.shape import shape
from kvsim.reporting.sweep.summary import expected_errors, sweep_summary
from kvsim.reporting.sweep.sustained import sentences, sustained
from kvsim.study.store import PIECES, STUDY, TABLE
from kvsim.study.sweeps.sweep import Sweep

SUMMARY = "summary.json"
README = "README.md"
FIGURE = "sweep"

_TEXT = """\
# {name}

Written by kvsim: a sweep of {runs} runs.

{found}
- `{table}`: a row a run, in the order of the points: its variant, the swept keys (rates per second, durations in
  seconds, sizes in bytes), replication, seed, version, the hash of all that decides it (`key`), its error, every
  metric of `kvsim run --json` by dotted name, and whether its queue grew for as long as requests came (`saturated`,
  and `queue_growth`: by what share of them, with its standard error)
- `{summary}`: every point with the mean, the least and the most of its replications, whether no other point is
  better in both latency and throughput (`pareto`), whether it is `saturated`, and which rates were `sustained`
- `{figure}.png`, `{figure}.svg`: the figure
- `{study}`: which study this is; `--resume` goes on with this one alone
- `{pieces}/`: the outcomes as they came, from which everything else can be made again
"""


MOST_POINTS = 40
"""Points that the README lists; the rest stands in the summary."""

MOST_COLUMNS = 5
"""Measures of a point that the README tells."""


def _found(sweep: Sweep, names: Sequence[str] | None) -> list[str]:
    """What is to be read before any file: sustained rates, the points, and the error to expect."""
    points, told = every_point(sweep), measures(sweep.rows, names)[:MOST_COLUMNS]
    lines = [f"- {sentence}" for sentence in sentences(sustained(sweep, points), points)]
    front = pareto(points, *goals(points))
    head = ["point", *(measure.title for measure in told), ""]
    lines += ["", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for at in points[:MOST_POINTS]:
        marks = ("*" if at in front else "") + (SATURATED if at.saturated else "") + ("!" if at.failed else "")
        cells = [at.name or "as it is", *(three_digits(at.mean(measure)) for measure in told), marks]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    low, high = goals(points)
    lines += ["", f"\\*: no other point has both less {low.label} and more {high.label}."]
    if any(at.saturated for at in points):
        lines.append(f"{SATURATED}: {SATURATED_MEANS}")
    if any(at.failed for at in points):
        lines.append("!: a run failed.")
    if len(points) > MOST_POINTS:
        lines.append(f"The other {len(points) - MOST_POINTS} points are in `{SUMMARY}`.")
    errors = [f"- {expected(error)}" for error in expected_errors(sweep)]
    return [*lines, "", *errors, ""]


def write_sweep(sweep: Sweep, folder: str | Path, names: Sequence[str] | None = None) -> list[Path]:
    """Write summary, figure and README of a sweep into the folder of its store; `names` are the measures told.

    A sweep without any result has no figure. Returns the paths.
    """
    folder = Path(folder)
    written = [write_whole(folder / SUMMARY, to_json(sweep_summary(sweep, names)).encode())]
    if len(sweep.failed) < len(sweep.rows):
        # Importing matplotlib takes most of a second, so it waits until a figure is really drawn.
        from kvsim.reporting.style import save_figure
        from kvsim.reporting.sweep.figures import draw_sweep

        form = shape(every_point(sweep), sweep.axes)
        written += save_figure(draw_sweep(sweep, form, measures(sweep.rows, names)), folder, FIGURE)
    text = _TEXT.format(
        name=sweep.name,
        runs=len(sweep.runs),
        found="\n".join(_found(sweep, names)),
        table=TABLE,
        summary=SUMMARY,
        figure=FIGURE,
        study=STUDY,
        pieces=PIECES,
    )
    return [*written, write_whole(folder / README, text.encode())]

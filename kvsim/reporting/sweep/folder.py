"""What a sweep's folder holds beside its runs: the summary, the figure and a README."""

from collections.abc import Sequence
from pathlib import Path

from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.sweep.measures import measures
from kvsim.reporting.sweep.shape import shape
from kvsim.reporting.sweep.summary import every_point, sweep_summary
from kvsim.study.store import PIECES, STUDY, TABLE
from kvsim.study.sweeps.sweep import Sweep

SUMMARY = "summary.json"
README = "README.md"
FIGURE = "sweep"

_TEXT = """\
# {name}

Written by kvsim: a sweep of {runs} runs.

- `{table}`: a row a run, in the order of the points: its variant, the swept keys (rates per second, durations in
  seconds, sizes in bytes), replication, seed, version, the hash of all that decides it (`key`), its error, and every
  metric of `kvsim run --json` by dotted name
- `{summary}`: every point with the mean, the least and the most of its replications, and whether no other point is
  better in both latency and throughput (`pareto`)
- `{figure}.png`, `{figure}.svg`: the figure
- `{study}`: which study this is; `--resume` goes on with this one alone
- `{pieces}/`: the outcomes as they came, from which everything else can be made again
"""


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
        table=TABLE,
        summary=SUMMARY,
        figure=FIGURE,
        study=STUDY,
        pieces=PIECES,
    )
    return [*written, write_whole(folder / README, text.encode())]

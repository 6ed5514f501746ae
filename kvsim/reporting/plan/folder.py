"""What the folder of a plan or of a cliff holds: the summary, the table, the figure and a README."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.plan.cliff_words import cliff_answer
from kvsim.reporting.plan.summary import candidate_row, cliff_summary, plan_summary
from kvsim.reporting.plan.words import advice_lines, answer, best, how
from kvsim.study.planning.cliff import Cliff
from kvsim.study.planning.plan import Plan
from kvsim.study.store.table import table_bytes
from kvsim.study.sweeps.runs import flat
from kvsim.version import __version__

PLAN, CANDIDATES, PARETO = "plan.json", "candidates.parquet", "pareto"
CLIFF, RATES = "cliff.json", "rates.parquet"
README = "README.md"

_OF_PLAN = f"""
- `{PLAN}`: goals, every candidate, the best, what they gave on fresh seeds, and where the numbers come from
- `{CANDIDATES}`: a row a candidate: its changes, whether it meets the goals with how many replicas and GPUs, its
  costs in US dollars (by the million, of the traffic sent), the largest rate that it bears, what binds it and what to
  change next
- `{PARETO}.png`, `{PARETO}.svg`: cost against latency
"""

_OF_CLIFF = f"""
- `{CLIFF}`: the marks and what became of every rate
- `{RATES}`: the rates alone, a row each
- `cliff.png`, `cliff.svg`: latency by load, with the marks
"""


def write_plan(plan: Plan, folder: str | Path) -> list[Path]:
    """Write a plan into a folder; one in which nothing was simulated has no figure. Returns the paths."""
    folder = Path(folder)
    found = how(plan)
    said = [answer(plan), "", f"{found[0].upper()}{found[1:]}.", "", *(f"- {line}" for line in advice_lines(plan))]
    rows = [flat(candidate_row(plan, one)) for one in plan.rows]
    written = [
        write_whole(folder / PLAN, to_json(plan_summary(plan)).encode()),
        write_whole(folder / CANDIDATES, _table(rows)),
        write_whole(folder / README, _readme(f"{plan.name}: a plan", said, _OF_PLAN)),
    ]
    if best(plan):
        # Importing matplotlib takes most of a second, so it waits until a figure is really drawn.
        from kvsim.reporting.plan.pareto import draw_pareto
        from kvsim.reporting.style import save_figure

        written += save_figure(draw_pareto(plan), folder, PARETO)
    return written


def write_cliff(cliff: Cliff, folder: str | Path) -> list[Path]:
    """Write a cliff into a folder. Returns the paths."""
    from kvsim.reporting.plan.cliff import draw_cliff
    from kvsim.reporting.style import save_figure

    folder = Path(folder)
    summary = cliff_summary(cliff)
    return [
        write_whole(folder / CLIFF, to_json(summary).encode()),
        write_whole(folder / RATES, _table([flat(row) for row in summary["rates"]])),
        write_whole(folder / README, _readme(f"{cliff.name}: where the cliff is", [cliff_answer(cliff)], _OF_CLIFF)),
        *save_figure(draw_cliff(cliff), folder, "cliff"),
    ]


def _table(rows: Sequence[Mapping[str, Any]]) -> bytes:
    texts = {name for row in rows for name, value in row.items() if isinstance(value, str)} | {"out"}
    return table_bytes(rows, metadata={"kvsim": __version__}, units={}, texts=texts)


def _readme(title: str, said: Sequence[str], files: str) -> bytes:
    return "\n".join([f"# {title}", "", *said, "", "Written by kvsim:", *files.rstrip().split("\n"), ""]).encode()

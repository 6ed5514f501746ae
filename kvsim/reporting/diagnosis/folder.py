"""The folder of a diagnosis: its numbers, its figure, and a README.md that reads like the command's output."""

from pathlib import Path
from typing import Any

from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.diagnosis.table import cure_rows, headings, pressure_rows
from kvsim.reporting.diagnosis.verdict import verdict
from kvsim.reporting.finding import measured, sources
from kvsim.study.diagnosis.diagnose import Diagnosis

README, NUMBERS, FIGURE = "README.md", "diagnosis.json", "diagnosis"


def write_diagnosis(found: Diagnosis, record: dict[str, Any], folder: str | Path) -> list[Path]:
    """Write `diagnosis.json`, `diagnosis.png|svg` and the README into `folder`, made if it is not there."""
    # Importing matplotlib takes most of a second, so it waits until a figure is really drawn.
    from kvsim.reporting.diagnosis.figure import draw_diagnosis
    from kvsim.reporting.style import save_figure

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return [
        write_whole(folder / NUMBERS, to_json(record).encode()),
        *save_figure(draw_diagnosis(found), folder, FIGURE),
        write_whole(folder / README, readme(found).encode()),
    ]


def readme(found: Diagnosis) -> str:
    """The verdict, the tables, and where the numbers come from."""
    lines = [f"# What presses on the KV memory of {_cell(found.result.name)}", "", _cell(verdict(found)), ""]
    lines += [f"![Pressures and cures]({FIGURE}.png)", "", "| pressure | % of taken | measured |", "|---|--:|---|"]
    lines += [f"| {name} | {share} | {_cell(text)} |" for name, share, text in pressure_rows(found.pressures)]
    heads = [heading.replace("-\n", "").replace("\n", " ") for heading in headings(found)]
    lines += ["", f"| | {' | '.join(heads)} |", f"|---|{'--:|' * len(heads)}"]
    lines += [f"| {_cell(name)} | {' | '.join(cells)} |" for name, cells in cure_rows(found)]
    said = [f"Not to be had: {one.cure.name} ({one.error})." for one in found.refused] + found.notes
    said += [
        f"kvsim {found.result.version}, seed {found.result.seed}.",
        *measured(found.result),
        *sources(found.result),
    ]
    said += [f"Not modelled: {gap}" for gap in found.result.not_modelled]
    return "\n".join([*lines, "", *(f"- {_cell(one)}" for one in said)]) + "\n"


def _cell(text: str) -> str:
    """Names come from users: no row is broken by one, and none is markup."""
    for letter in "\\|<>[]`*_":
        text = text.replace(letter, f"\\{letter}")
    return " ".join(text.split())

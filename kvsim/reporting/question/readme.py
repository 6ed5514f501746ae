"""The page of a report: a question, its answer with numbers, the figures, and all that a reader needs to check them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvsim.metrics.result import Result
from kvsim.reporting.comparison import Row, comparison_table
from kvsim.reporting.finding import expected, ledger, legend, measured, shared, sources, sources_of
from kvsim.reporting.question.answer import significant
from kvsim.reporting.question.header import Question
from kvsim.reporting.question.numbers import mean_of
from kvsim.reporting.sweep.measures import KNOWN, Measure
from kvsim.study.values import shown


@dataclass(frozen=True)
class Shown:
    """A figure of the page: its file beside the page, and what a reader sees there."""

    file: str
    caption: str


@dataclass(frozen=True)
class Beside:
    """A number that somebody published, beside the simulated one, both in `unit`."""

    label: str
    published: float
    simulated: float
    unit: str = ""

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Label, published, simulated and their distance: in points between shares, else as a part of the former."""
        label = f"{self.label}, {self.unit}" if self.unit else self.label
        if self.unit == "%":
            apart = f"{self.simulated - self.published:+.1f} points"
        else:
            apart = f"{100 * (self.simulated / self.published - 1):+.1f} %" if self.published else ""
        return label, significant(self.published), significant(self.simulated), apart


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page shows, from the top; whatever is empty is left out.

    `tables` are Markdown, each with its heading; `facts` say where the numbers come from and what to know of them,
    `gaps` what is not modelled, `page` is the HTML page beside it, `more` a text of its own below all that.
    """

    name: str
    question: Question
    answer: str
    commands: Sequence[str]
    figures: Sequence[Shown] = ()
    published: Sequence[Beside] = ()
    source: str = ""
    tables: Sequence[str] = ()
    facts: Sequence[str] = ()
    gaps: Sequence[str] = ()
    page: str = ""
    more: str = ""

    def text(self) -> str:
        """The page as Markdown."""
        asked = self.question
        parts = [f"# {asked.question or self.name}", f"**{self.answer}**"]
        for figure in self.figures:
            parts += [f"![{figure.caption}]({figure.file})", f"*{figure.caption}*" if figure.caption else ""]
        if self.page:
            parts.append(
                f"[{self.page}]({self.page}) shows it as a page to open in a browser: tables that sort, every figure, "
                "and where addresses were recorded the memory, to be played."
            )
        if self.published:
            rows = [beside.cells for beside in self.published]
            heading = "## Published beside simulated"
            columns = ("", "published", "simulated", "apart")
            parts += [heading, self.source, markdown_table(columns, rows)]
        parts += _section("What it shows", asked.shows)
        parts += _section("What to expect", asked.expect)
        parts += self.tables
        parts += _section("Where the numbers come from", "\n".join(f"- {fact}" for fact in self.facts))
        parts += _section("Not modelled", "\n".join(f"- {gap}" for gap in self.gaps))
        commands = "\n".join(self.commands)
        parts += _section("Again", f"```\n{commands}\n```\n\nThis page is written by `make reports`, never by hand.")
        parts.append(self.more)
        return "\n\n".join(part for part in parts if part) + "\n"


def results_tables(results: Sequence[Result]) -> list[str]:
    """The table of a comparison, a column a result."""
    rows = []
    for group in comparison_table(results):
        if group.heading == "Simulated / published":
            continue
        rows.append([f"**{group.heading}**", *("" for _ in results)])
        rows += [[_label(row), *(row.text(index) for index in range(len(results)))] for row in group.rows]
    legends = "\n".join(f"- {line}" for line in [*legend(results), *shared(list(map(measured, results)), results)])
    table = markdown_table(["", *(result.name for result in results)], rows)
    return [f"## All numbers\n\n{table}\n\n{legends}"]


def results_facts(results: Sequence[Result]) -> tuple[list[str], list[str]]:
    """Where the numbers of a comparison come from and what to know of them; and what it does not model."""
    known = shared([sources(result) + ledger(result) for result in results], results)
    known += shared([[f"Note: {note}" for note in result.notes] for result in results], results)
    return known, shared([result.not_modelled for result in results], results)


def results_published(results: Sequence[Result]) -> list[Beside]:
    """What a paper prints for any of the results, beside what came out."""
    found = []
    for group in comparison_table(results):
        for row in group.rows if group.heading == "Simulated / published" else ():
            for result, (simulated, published) in zip(results, row.values, strict=True):
                if simulated is not None and published is not None:
                    found.append(Beside(f"{result.name}: {row.label}", published, simulated, row.unit))
    return found


def sweep_tables(record: Mapping[str, Any]) -> list[str]:
    """The table of a sweep's summary, a row a point: the mean of its replications."""
    points = record["points"]
    variants = any(point["variant"] for point in points)
    keys = [axis["key"] for axis in record["axes"]]
    measures = [KNOWN.get(name, Measure(name, name)) for name in points[0]["metrics"]]
    headings = [f"{one.label}, {one.unit}" if one.unit else one.label for one in measures]
    rows = []
    for point in points:
        values = [point["variant"] or ""] if variants else []
        values += [shown(point["changes"].get(key)) for key in keys]
        rows.append(values + [_mean(point["metrics"][one.name], one) for one in measures])
    return ["## All points\n\n" + markdown_table([*(["variant"] if variants else []), *keys, *headings], rows)]


def sweep_facts(record: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Where the numbers of a sweep come from and what to know of them; and what it does not model."""
    said = [line for family, told in record["provenance"].items() for one in told for line in sources_of({family: one})]
    said += [expected(error) for error in record.get("expected_error", ())]
    return said + [f"Note: {note}" for note in _first_of_each_kind(record["notes"])], list(record["not_modelled"])


def cliff_tables(record: Mapping[str, Any]) -> list[str]:
    """The table of a cliff, a row a rate, with what is marked there."""
    marks = {record[key]: name for key, name in MARKS.items() if record[key] is not None}
    rows = []
    for rate in record["rates"]:
        cells = [significant(scale * rate[name]) for name, _, scale in RATES]
        rows.append([*cells, marks.get(rate["rate_per_s"], "")])
    return ["## All rates\n\n" + markdown_table([*(label for _, label, _ in RATES), "mark"], rows)]


MARKS: Mapping[str, str] = {
    "preemption_onset_per_s": "preemptions begin",
    "knee_per_s": "knee",
    "saturated_from_per_s": "the queue grows",
}
"""The marks of a cliff among the rates that were tried: key of its record, and what is said there."""

RATES = (
    ("rate_per_s", "requests, /s", 1.0),
    ("ttft_p99_s", "TTFT p99, s", 1.0),
    ("tpot_p99_s", "TPOT p99, ms", 1000.0),
    ("mean_running", "running", 1.0),
    ("mean_waiting", "waiting", 1.0),
    ("used_share", "KV used, %", 100.0),
    ("preemptions", "preempted", 1.0),
)
"""What is told of a rate: its key, the heading, and what it is multiplied by."""


def cliff_facts(record: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Where the numbers of a cliff come from and what to know of them; and what it does not model."""
    said = sources_of(record["provenance"], record.get("expected_error"))
    said.append(f"each rate: the mean of {record['replications']} runs on streams that all rates share")
    return said + [f"Note: {note}" for note in record["notes"]], list(record["not_modelled"])


def _first_of_each_kind(notes: Sequence[str]) -> list[str]:
    """Notes that begin with the same sentence differ in their numbers alone: one stands for all."""
    kinds: dict[str, list[str]] = {}
    for note in notes:
        kinds.setdefault(note.partition(". ")[0], []).append(note)
    return [alike[0] if len(alike) == 1 else f"{alike[0]} And {len(alike) - 1} like it." for alike in kinds.values()]


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in GitHub's Markdown: the first column to the left, the others to the right."""
    aligned = ["---", *("---:" for _ in headings[1:])]
    return "\n".join("| " + " | ".join(map(_cell, cells)) + " |" for cells in (headings, aligned, *rows))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _section(heading: str, text: str) -> list[str]:
    return [f"## {heading}\n\n{text}"] if text else []


def _label(row: Row) -> str:
    return f"{row.label.strip()}, {row.unit}" if row.unit else row.label.strip()


def _mean(spread: Mapping[str, float] | None, measure: Measure) -> str:
    return "-" if spread is None else significant(measure.scale * mean_of(spread))

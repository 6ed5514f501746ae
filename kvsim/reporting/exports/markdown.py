"""The table of a run or a comparison as Markdown, with the finding, the sources and what is not modelled."""

import re
from collections.abc import Iterator, Sequence

from kvsim.metrics.result import Result
from kvsim.reporting.comparison import Group, comparison_table
from kvsim.reporting.exports.interface import Export, Files, Options, Source
from kvsim.reporting.finding import finding, ledger, legend, measured, shared, shared_notes, sources
from kvsim.reporting.tenants import tenant_table
from kvsim.reporting.ttft import ttft_line

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~&!$])")


def _files(source: Source, options: Options) -> Files:
    yield "summary.md", markdown(source.title, source.results)


def markdown(title: str, results: Sequence[Result]) -> Iterator[str]:
    """A page of some results side by side, a paragraph or a line at a time."""
    yield f"# {escaped(title)}\n\n{escaped(finding(results))}\n\n"
    yield from table(comparison_table(results), [result.name for result in results])
    yield "\n"
    for result in results:
        tenants = tenant_table(result)
        if tenants is not None:
            yield f"## {escaped(result.name)}, by tenant\n\n"
            yield from table(tenants.groups, tenants.names)
            yield f"\n{escaped(tenants.note)}\n\n"
    said = [*legend(results), *shared([measured(result) for result in results], results)]
    said += shared([ttft_line(result) for result in results], results)
    said += [f"note: {note}" for note in shared_notes(results)]
    said += shared([sources(result) for result in results], results)
    said += shared([ledger(result) for result in results], results)
    for line in said:
        yield f"- {escaped(line)}\n"
    gaps = shared([result.not_modelled for result in results], results)
    if gaps:
        yield "\nNot modelled:\n\n"
    for gap in gaps:
        yield f"- {escaped(gap)}\n"


def table(groups: Sequence[Group], names: Sequence[str]) -> Iterator[str]:
    """The groups as one table: a column for the unit, and one for each name."""
    yield from rows(["", "unit", *names], ["---", "---", *("---:" for _ in names)])
    for group in groups:
        yield from rows([f"**{escaped(group.heading)}**", "", *("" for _ in names)], escape=False)
        for row in group.rows:
            yield from rows([row.label.strip(), row.unit, *(row.text(index) for index in range(len(names)))])


def rows(*lines: Sequence[str], escape: bool = True) -> Iterator[str]:
    """Lines of a table."""
    for cells in lines:
        yield "| " + " | ".join(escaped(cell) if escape else cell for cell in cells) + " |\n"


def escaped(text: str) -> str:
    """Text that stays text, in one line: no mark of Markdown's or HTML's in a name means anything."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


MARKDOWN = Export(
    name="markdown",
    meaning="the table of a run or a comparison, with sources and what is not modelled",
    files=_files,
)

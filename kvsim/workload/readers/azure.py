"""Azure LLM inference traces: a CSV of wall-clock time, prompt tokens and output tokens per call.

2023 (code, conv): 7 fraction digits and no zone. 2024: `+00:00`. 2025 (multimodal): ISO with `T` and `Z`, and
a column `NumImages` that is not read. Published at github.com/Azure/AzurePublicDataset.
"""

import csv
from collections.abc import Iterator
from typing import ClassVar, Protocol

from kvsim.workload.readers import clock, tokens
from kvsim.workload.readers.interface import Identity, Intake, Row, shown

_TIME, _PROMPT, _OUTPUT = "TIMESTAMP", "ContextTokens", "GeneratedTokens"


class _CsvTable(Protocol):
    line_num: int

    def __iter__(self) -> Iterator[list[str]]: ...

    def __next__(self) -> list[str]: ...


class AzureReader:
    """Columns are found by name, in any order; others are left alone and named in the report."""

    format: ClassVar[str] = "azure"
    columns: ClassVar[tuple[str, ...]] = (_TIME, _PROMPT, _OUTPUT)
    time_unit: ClassVar[str] = "wall clock"
    prefix_identity: ClassVar[Identity] = "absent"

    def recognises(self, first_line: str) -> bool:
        """At least two of the three columns: where one is missing, the message can say which."""
        names = {name.strip().strip('"') for name in first_line.split(",")}
        return len(names & set(self.columns)) >= 2

    def rows(self, lines: Iterator[str], intake: Intake) -> Iterator[Row]:
        """Rows in file order; times in picoseconds on the file's wall clock, exact to the last digit."""
        table = csv.reader(lines, strict=True)
        try:
            yield from self._rows(table, intake)
        except csv.Error as error:
            raise intake.wrong(
                f"line {table.line_num} is not CSV ({error}); close every quote, one call per line"
            ) from None

    def _rows(self, table: "_CsvTable", intake: Intake) -> Iterator[Row]:
        names = [name.strip() for name in next(table, [])]
        at_time, at_prompt, at_output = (_index(names, column, intake) for column in self.columns)
        intake.ignored_columns = tuple(name for name in names if name not in self.columns)
        width = len(names)
        read_ps = clock.WallClock().read_ps
        read_tokens = tokens.read_tokens
        row = 0
        blank_lines: list[int] = []
        for cells in table:
            if not cells:
                blank_lines.append(table.line_num)
                continue
            if blank_lines:
                # Only now is it known that these did not end the file, where blank lines do no harm.
                for line in blank_lines:
                    row += 1
                    intake.row, intake.line = row, line
                    intake.bad(None, "", "blank line", "remove it")
                blank_lines.clear()
            row += 1
            intake.row, intake.line = row, table.line_num
            if len(cells) != width:
                cut = ",".join(cells)
                intake.bad(None, cut, f"{len(cells)} columns, not {width}", f"write {', '.join(names)}")
                continue
            try:
                time_ps = read_ps(cells[at_time])
            except ValueError as reason:
                intake.bad(_TIME, cells[at_time], str(reason), clock.RIGHT)
                continue
            prompt = read_tokens(cells[at_prompt])
            output = read_tokens(cells[at_output])
            if prompt and output:
                yield time_ps, prompt, output
            elif not prompt:
                intake.bad(_PROMPT, cells[at_prompt], tokens.why_not(cells[at_prompt], "prompt"), tokens.RIGHT)
            else:
                intake.bad(_OUTPUT, cells[at_output], tokens.why_not(cells[at_output], "output"), tokens.RIGHT)


def _index(names: list[str], column: str, intake: Intake) -> int:
    if names.count(column) == 1:
        return names.index(column)
    what = "is there twice" if column in names else "is missing"
    raise intake.wrong(
        f"column {column} {what}; the header is {shown(','.join(names))} and needs {', '.join(AzureReader.columns)}"
    )

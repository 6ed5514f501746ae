"""Azure LLM inference traces: a CSV of wall-clock time, prompt tokens and output tokens per call.

2023 (code, conv): 7 fraction digits and no zone. 2024: `+00:00`. 2025 (multimodal): ISO with `T` and `Z`, and
a column `NumImages` that is not read. Published at github.com/Azure/AzurePublicDataset.
"""

from collections.abc import Iterator
from typing import ClassVar

from kvsim.workload.readers.base import BaseReader
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake, Row
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.tables.csv_file import Cells
from kvsim.workload.readers.values import clock, tokens

_TIME, _PROMPT, _OUTPUT = "TIMESTAMP", "ContextTokens", "GeneratedTokens"


class AzureReader(BaseReader):
    """Columns are found by name, in any order; others are left alone and named in the report."""

    format: ClassVar[str] = "azure"
    columns: ClassVar[tuple[str, ...]] = (_TIME, _PROMPT, _OUTPUT)
    time_unit: ClassVar[str] = "wall clock"

    def recognises(self, head: Head) -> bool:
        """At least two of the three columns: where one is missing, the message can say which."""
        return len(set(head.names) & set(self.columns)) >= 2

    def rows(self, source: Source, intake: Intake) -> Iterator[Row]:
        """Rows in file order; times in picoseconds on the file's wall clock, exact to the last digit. 3 us a row."""
        cells_of = Cells(source.lines(), intake)
        at_time, at_prompt, at_output = (cells_of.at(column, self.columns) for column in self.columns)
        read_ps = clock.WallClock().read_ps
        read_tokens = tokens.read_tokens
        for cells in cells_of.rows():
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

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """As `rows`: the file says nothing more of a call."""
        for time_ps, prompt, output in self.rows(source, intake):
            yield TraceRequest(str(intake.row), prompt, output, time_ps)

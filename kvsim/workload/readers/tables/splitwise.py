"""splitwise-sim traces: a CSV of arrivals in seconds, prompt and output tokens (github.com/Mutinifni/splitwise-sim)."""

from collections.abc import Iterator
from typing import ClassVar

from kvsim.workload.readers.base import BaseReader, Links
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.tables.csv_file import Cells, read_count, read_number_ps

_TIME, _PROMPT, _OUTPUT, _ID, _APPLICATION = (
    "arrival_timestamp",
    "prompt_size",
    "token_size",
    "request_id",
    "application_id",
)
_SECONDS = 0
_RIGHT = "write seconds, such as 4.314479"


class SplitwiseReader(BaseReader):
    """`request_type` and `batch_size` are not read: all of its requests are generative, of one prompt."""

    format: ClassVar[str] = "splitwise"
    columns: ClassVar[tuple[str, ...]] = (_TIME, _PROMPT, _OUTPUT)
    time_unit: ClassVar[str] = "seconds"

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Calls in file order; the application is the tenant."""
        cells_of = Cells(source.lines(), intake)
        at_time, at_prompt, at_output = (cells_of.at(column, self.columns) for column in self.columns)
        at_id, at_application = cells_of.maybe_at(_ID), cells_of.maybe_at(_APPLICATION)
        links = Links(intake)
        for cells in cells_of.rows():
            time_ps = read_number_ps(cells[at_time], _TIME, _SECONDS, _RIGHT, intake)
            prompt = 0 if time_ps is None else read_count(cells[at_prompt], _PROMPT, "prompt", intake)
            output = prompt and read_count(cells[at_output], _OUTPUT, "output", intake)
            id = str(intake.row) if at_id is None else cells[at_id]
            if output and (at_id is None or links.is_new(id, _ID)):
                tenant = "" if at_application is None else cells[at_application]
                yield TraceRequest(id, prompt, output, time_ps, tenant=tenant)

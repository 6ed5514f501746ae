"""CSV of prompt and output tokens with arrivals in seconds or without: Vidur's traces and lengths, recorded runs.

Vidur's are published at github.com/microsoft/vidur (`data/processed_traces`) and github.com/project-etalon/etalon. The
requests of a recorded server run are those that `kvsim compare-run` lays beside their simulation.
"""

from collections.abc import Iterator
from typing import ClassVar

from kvsim.workload.readers.base import BaseReader
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.tables.csv_file import Cells, read_count, read_number_ps

_TIME, _PROMPT, _OUTPUT = "arrived_at", "num_prefill_tokens", "num_decode_tokens"
_SECONDS = 0
_RIGHT = "write seconds, such as 4.314579"


class VidurReader(BaseReader):
    """`num_total_tokens` and `pd_ratio` follow from the others and are not read."""

    format: ClassVar[str] = "vidur"
    columns: ClassVar[tuple[str, ...]] = (_TIME, _PROMPT, _OUTPUT)
    time_unit: ClassVar[str] = "seconds"

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Calls in file order, with times where the format has them."""
        cells_of = Cells(source.lines(), intake)
        *time, prompt_tokens, output_tokens = self.columns
        at_time = cells_of.at(time[0], self.columns) if time else None
        at_prompt, at_output = (cells_of.at(column, self.columns) for column in (prompt_tokens, output_tokens))
        for cells in cells_of.rows():
            time_ps = None
            if at_time is not None:
                time_ps = read_number_ps(cells[at_time], time[0], _SECONDS, _RIGHT, intake)
                if time_ps is None:
                    continue
            prompt = read_count(cells[at_prompt], prompt_tokens, "prompt", intake)
            output = prompt and read_count(cells[at_output], output_tokens, "output", intake)
            if output:
                yield TraceRequest(str(intake.row), prompt, output, time_ps)


class LengthsReader(VidurReader):
    """The same without arrivals: what lengths are, not when calls come."""

    format: ClassVar[str] = "lengths"
    columns: ClassVar[tuple[str, ...]] = (_PROMPT, _OUTPUT)
    time_unit: ClassVar[str] = "none"

    def recognises(self, head: Head) -> bool:
        """The lengths, and no arrivals."""
        return super().recognises(head) and _TIME not in head.names


class RecordedRunReader(VidurReader):
    """A run of a real server, one request a row; what the server did with them is not read here."""

    format: ClassVar[str] = "recorded-run"
    columns: ClassVar[tuple[str, ...]] = ("arrival_s", "in_len", "out_len")
    time_unit: ClassVar[str] = "seconds"

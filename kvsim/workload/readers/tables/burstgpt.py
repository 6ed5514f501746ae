"""BurstGPT: a CSV of calls to ChatGPT and GPT-4 of one campus, times in seconds from the first day's midnight.

The first two files have 6 columns; the third inserts `Session ID` and `Elapsed time` (seconds, end to end) in the
middle, so columns are read by name. Calls of 0 tokens failed. Published at github.com/HPMLL/BurstGPT.
"""

from collections.abc import Iterator
from typing import ClassVar

from kvsim.workload.readers.base import FAILED, BaseReader, Links
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.tables.csv_file import Cells, read_count, read_number_ps
from kvsim.workload.readers.values.times import ps_of

_TIME, _PROMPT, _OUTPUT, _MODEL, _TYPE = "Timestamp", "Request tokens", "Response tokens", "Model", "Log Type"
_SESSION, _ELAPSED = "Session ID", "Elapsed time"
_SECONDS = 0
_RIGHT = "write seconds, such as 19440110.0"


class BurstGptReader(BaseReader):
    """A prompt holds its session's history as far as the service sent it: lengths are those of whole calls."""

    format: ClassVar[str] = "burstgpt"
    columns: ClassVar[tuple[str, ...]] = (_TIME, _PROMPT, _OUTPUT)
    time_unit: ClassVar[str] = "seconds"

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Calls in file order. Within a session the next waits for the answer, and then as long as its person did."""
        cells_of = Cells(source.lines(), intake)
        at_time, at_prompt, at_output = (cells_of.at(column, self.columns) for column in self.columns)
        at_model, at_type = cells_of.maybe_at(_MODEL), cells_of.maybe_at(_TYPE)
        at_session, at_elapsed = cells_of.maybe_at(_SESSION), cells_of.maybe_at(_ELAPSED)
        cells_of.maybe_at("Total tokens")
        links = Links(intake)
        ends_ps: dict[str, int] = {}
        for cells in cells_of.rows():
            time_ps = read_number_ps(cells[at_time], _TIME, _SECONDS, _RIGHT, intake)
            if time_ps is None:
                continue
            id = str(intake.row)
            failed = _is_zero(cells[at_prompt]) or _is_zero(cells[at_output])
            if failed and intake.options.failed == "drop":
                intake.drop(FAILED)
                continue
            prompt = 0 if failed else read_count(cells[at_prompt], _PROMPT, "prompt", intake)
            output = prompt and read_count(cells[at_output], _OUTPUT, "output", intake)
            if not output and not failed:
                continue
            request = TraceRequest(id, prompt, output, time_ps, failed=failed)
            request.tags = {
                key: cells[at] for key, at in (("model", at_model), ("type", at_type)) if at is not None and cells[at]
            }
            elapsed_ps = None if at_elapsed is None else ps_of(cells[at_elapsed], _SECONDS)
            request.duration_ps = elapsed_ps
            if at_session is not None and cells[at_session]:
                session = request.session = cells[at_session]
                end_ps = ends_ps.get(session)
                request.after = links.goes_on(session, id, None if end_ps is None else max(0, time_ps - end_ps))
                if elapsed_ps is not None:
                    ends_ps[session] = time_ps + elapsed_ps
            yield request


def _is_zero(text: str) -> bool:
    text = text.strip()
    return bool(text) and not text.strip("0.") and "0" in text

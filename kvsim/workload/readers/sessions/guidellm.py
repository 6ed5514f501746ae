"""What guidellm measured: its `benchmarks.json`, a document of benchmarks with their requests by how these ended.

`{"benchmarks": [{"requests": {"successful": [...], "incomplete": [...], "errored": [...]}}]}`. Of a request it has
`prompt_tokens`, `output_tokens`, and seconds of the wall clock: `request_start_time` and `request_end_time` (before
0.4: `start_time`, `end_time`), and with `info.conversation_id` the conversation that it is a turn of (guidellm 0.8,
`GenerativeRequestStats`). What was incomplete when a benchmark ended counts as failed.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kvsim.workload.readers.base import FAILED, BaseReader, Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.json_values import document_objects
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.values.times import ps_of

_BENCHMARKS, _REQUESTS, _SUCCESSFUL = "benchmarks", "requests", "successful"
_ENDINGS = (_SUCCESSFUL, "incomplete", "errored")
_ID, _PROMPT, _OUTPUT = "request_id", "prompt_tokens", "output_tokens"
_STARTS, _ENDS = ("request_start_time", "start_time"), ("request_end_time", "end_time")
_SECONDS = 0
_RIGHT = "write seconds"
_KEEP = "keep the requests of a benchmark (guidellm writes them unless told otherwise)"


class GuidellmReader(BaseReader):
    """Benchmarks of a file stand one behind the other, each with its requests in the order in which they began."""

    format: ClassVar[str] = "guidellm"
    columns: ClassVar[tuple[str, ...]] = (_STARTS[0], _PROMPT, _OUTPUT)
    time_unit: ClassVar[str] = "seconds"

    def recognises(self, head: Head) -> bool:
        """A report: benchmarks, and what was asked for."""
        return _BENCHMARKS in head.keys and bool({"metadata", "args", "config"} & head.keys)

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Requests in order."""
        links = Links(intake)
        for report in document_objects(source.lines(), intake):
            benchmarks = report.get(_BENCHMARKS)
            if not isinstance(benchmarks, list) or not all(isinstance(one, dict) for one in benchmarks):
                intake.bad(_BENCHMARKS, benchmarks, "no list of benchmarks", "keep the whole report")
                continue
            intake.row -= 1
            for number, benchmark in enumerate(benchmarks):
                ends_ps: dict[str, int] = {}
                for row, ending in _in_order(benchmark, intake):
                    intake.row += 1
                    request = _request(row, ending, intake)
                    if request is None or not links.is_new(request.id, _ID):
                        continue
                    _link(request, row, number, links, ends_ps)
                    yield request


def _in_order(benchmark: dict[str, Any], intake: Intake) -> list[tuple[dict[str, Any], str]]:
    """The requests of a benchmark by when they began, each with how it ended; none after they were found wrong."""
    by_ending = benchmark.get(_REQUESTS)
    found = []
    for ending in _ENDINGS:
        rows = by_ending.get(ending) if isinstance(by_ending, dict) else None
        rows = [] if rows is None and isinstance(by_ending, dict) else rows
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            intake.row += 1
            intake.bad(_REQUESTS, rows, "no list of requests", _KEEP)
            return []
        found += [(row, ending) for row in rows]
    # A request without a good time is told when it is read; until then it stays where it is.
    return sorted(found, key=lambda one: ps_of(_time(one[0], _STARTS)[1], _SECONDS) or 0)


def _request(row: dict[str, Any], ending: str, intake: Intake) -> TraceRequest | None:
    failed = ending != _SUCCESSFUL or row.get(_OUTPUT) == 0
    if failed and intake.options.failed == "drop":
        intake.drop(FAILED)
        return None
    column, start = _time(row, _STARTS)
    start_ps = json_lines.read_time_ps({column: start}, column, _SECONDS, _RIGHT, intake)
    if start_ps is None:
        return None
    prompt = 0 if failed and not row.get(_PROMPT) else json_lines.read_count(row, _PROMPT, "prompt", intake)
    output = 0 if failed else prompt and json_lines.read_count(row, _OUTPUT, "output", intake)
    if not failed and not output:
        return None
    request = TraceRequest(str(row.get(_ID) or intake.row), prompt, output, start_ps, failed=failed)
    end_ps = ps_of(_time(row, _ENDS)[1], _SECONDS)
    if end_ps is not None and end_ps >= start_ps:
        request.duration_ps = end_ps - start_ps
    return request


def _link(request: TraceRequest, row: dict[str, Any], benchmark: int, links: Links, ends_ps: dict[str, int]) -> None:
    """Conversation, and what the request waited for. Mutates."""
    info = row.get("info")
    conversation = info.get("conversation_id") if isinstance(info, dict) else None
    if conversation is None:
        return
    assert request.arrival_ps is not None
    # Benchmarks of a sweep may go through the same conversations again.
    session = request.session = f"{benchmark}/{conversation}"
    wait_ps = max(0, request.arrival_ps - ends_ps.get(session, request.arrival_ps))
    request.after = links.goes_on(session, request.id, wait_ps)
    ends_ps[session] = request.arrival_ps + (request.duration_ps or 0)


def _time(row: dict[str, Any], columns: tuple[str, ...]) -> tuple[str, Any]:
    """The first of these columns that says something, and what; the first and None where none does."""
    return next(((name, row[name]) for name in columns if row.get(name) is not None), (columns[0], None))

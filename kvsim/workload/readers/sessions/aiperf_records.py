"""What aiperf measured: its `profile_export.jsonl`, a JSON line per request in the order in which they ended.

`{"metadata": {"session_num", "x_request_id", "x_correlation_id", "turn_index", "benchmark_phase", "request_start_ns",
"request_end_ns", ...}, "metrics": {"input_sequence_length": {"value", "unit"}, ...}, "error"}`. Requests of one
`x_correlation_id` are the turns of a session; `parent_correlation_id` names the session that started it, and
`root_correlation_id` the one that all of these go back to. Warm-up requests are no traffic (aiperf 0.13,
`MetricRecordInfo`).
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kvsim.workload.readers.base import FAILED, BaseReader, Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import After, TraceRequest
from kvsim.workload.readers.values.times import ps_of

_METADATA, _METRICS, _ERROR = "metadata", "metrics", "error"
_START, _END, _CANCELLED = "request_start_ns", "request_end_ns", "cancellation_time_ns"
_ID, _SESSION, _PARENT, _ROOT = "x_request_id", "x_correlation_id", "parent_correlation_id", "root_correlation_id"
_PHASE, _WARMUP = "benchmark_phase", "warmup"
_PROMPTS = ("input_sequence_length", "usage_prompt_tokens")
_OUTPUTS = ("output_sequence_length", "usage_completion_tokens", "output_token_count")
_NANOSECONDS = 9
_RIGHT = "write nanoseconds"
_NO_RECORD = "a line that is no record of a request"


class AiperfRecordsReader(BaseReader):
    """Rows are in the order in which requests ended, so that a replay by times must sort them."""

    format: ClassVar[str] = "aiperf-records"
    columns: ClassVar[tuple[str, ...]] = (_START, *(_PROMPTS[0], _OUTPUTS[0]))
    time_unit: ClassVar[str] = "nanoseconds"

    def recognises(self, head: Head) -> bool:
        """Metadata with a start, and metrics."""
        metadata = head.row.get(_METADATA)
        return isinstance(metadata, dict) and _START in metadata and _METRICS in head.keys

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Requests in file order."""
        links = Links(intake)
        ends_ps: dict[str, int] = {}
        for row in json_lines.objects(source.lines(), intake):
            told, metrics = row.get(_METADATA), row.get(_METRICS)
            if not isinstance(told, dict) or not isinstance(metrics, dict):
                intake.bad(_METADATA, told, _NO_RECORD, "keep the lines that aiperf wrote")
                continue
            if told.get(_PHASE) == _WARMUP:
                intake.drop("a warm-up request")
                continue
            request = _request(row, told, metrics, intake)
            if request is None or not links.is_new(request.id, _ID):
                continue
            _link(request, told, links, ends_ps)
            yield request


def _request(row: dict[str, Any], told: dict[str, Any], metrics: dict[str, Any], intake: Intake) -> TraceRequest | None:
    start_ps = json_lines.read_time_ps(told, _START, _NANOSECONDS, _RIGHT, intake)
    if start_ps is None:
        return None
    prompt_name, prompt_value = _metric(metrics, _PROMPTS)
    output_name, output_value = _metric(metrics, _OUTPUTS)
    failed = row.get(_ERROR) is not None or not output_value
    if failed and intake.options.failed == "drop":
        intake.drop(FAILED)
        return None
    values = {prompt_name: prompt_value, output_name: output_value}
    prompt = 0 if failed and not prompt_value else json_lines.read_count(values, prompt_name, "prompt", intake)
    output = 0 if failed else prompt and json_lines.read_count(values, output_name, "output", intake)
    if not failed and not output:
        return None
    request = TraceRequest(str(told.get(_ID) or intake.row), prompt, output, start_ps, failed=failed)
    end_ps, cancelled_ps = ps_of(told.get(_END), _NANOSECONDS), ps_of(told.get(_CANCELLED), _NANOSECONDS)
    if end_ps is not None and end_ps >= start_ps:
        request.duration_ps = end_ps - start_ps
    if cancelled_ps is not None and cancelled_ps > start_ps:
        request.cancel_at_ps = cancelled_ps
    return request


def _link(request: TraceRequest, told: dict[str, Any], links: Links, ends_ps: dict[str, int]) -> None:
    """Session, and what the request waited for. Mutates."""
    assert request.arrival_ps is not None
    session = request.session = str(told.get(_SESSION) or "")
    if not session:
        return
    request.play = str(told.get(_ROOT) or "")
    wait_ps = max(0, request.arrival_ps - ends_ps.get(session, request.arrival_ps))
    request.after = links.goes_on(session, request.id, wait_ps)
    parent = str(told.get(_PARENT) or "")
    spawner = links.last(parent) if parent and not request.after else None
    # A parent whose turns all end later than its child's is not told which of them started it.
    if spawner is not None and ends_ps[parent] <= request.arrival_ps:
        request.after = (After(spawner, request.arrival_ps - ends_ps[parent], "end", "spawn"),)
    ends_ps[session] = request.arrival_ps + (request.duration_ps or 0)


def _metric(metrics: dict[str, Any], names: tuple[str, ...]) -> tuple[str, Any]:
    """The first of these metrics that is there, and its value; the first name and None where none is."""
    for name in names:
        metric = metrics.get(name)
        if metric is not None:
            return name, metric.get("value") if isinstance(metric, dict) else metric
    return names[0], None

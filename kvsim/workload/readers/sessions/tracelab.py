"""TraceLab's rounds of coding agents: a JSON line per call, with what the provider's cache held of its prompt.

A call came when what it answers came: at the first of its `timing_events`. Lines are in order within a session.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kvsim.workload.readers.base import BaseReader, Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.values.clock import RIGHT, WallClock

_EVENTS, _PROMPT, _NEW, _OUTPUT = "timing_events", "input_tokens_total", "newly_append_tokens", "output_tokens"
_ID, _SESSION = "round_id", "session_id"
_INPUTS = ("user_message", "tool_result")


class TraceLabReader(BaseReader):
    """`newly_append_tokens` is what the cache did not hold, so no less than what the session did not hold before."""

    format: ClassVar[str] = "tracelab"
    columns: ClassVar[tuple[str, ...]] = (_EVENTS, _PROMPT, _NEW, _OUTPUT)
    time_unit: ClassVar[str] = "wall clock"

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Calls in file order, which is not that of their times where there are several sessions."""
        clock, links = WallClock(), Links(intake)
        ends_ps: dict[str, int] = {}
        for row in json_lines.objects(source.lines(), intake):
            prompt = json_lines.read_count(row, _PROMPT, "prompt", intake)
            output = prompt and json_lines.read_count(row, _OUTPUT, "output", intake)
            times = _times_ps(row, clock, intake) if output else None
            if times is None:
                continue
            new = row.get(_NEW)
            if type(new) is not int or not 0 <= new <= prompt:
                intake.bad(_NEW, new, "no part of the prompt", f"write a whole number from 0 to {prompt}")
                continue
            request = TraceRequest(str(row.get(_ID, intake.row)), prompt, output, times[0], new_prompt_tokens=new)
            if not links.is_new(request.id, _ID):
                continue
            request.duration_ps = times[1] - times[0]
            session = request.session = str(row.get(_SESSION, ""))
            if session:
                wait_ps = max(0, times[0] - ends_ps.get(session, times[0]))
                request.after = links.goes_on(session, request.id, wait_ps)
                ends_ps[session] = times[1]
            if row.get("model") is not None:
                request.tags = {"model": str(row["model"])}
            yield request


def _times_ps(row: dict[str, Any], clock: WallClock, intake: Intake) -> tuple[int, int] | None:
    """When the last input came and when the last of the answer did; None after the row was handed to `intake.bad`."""
    events = row.get(_EVENTS)
    if not isinstance(events, list) or not events or not all(isinstance(event, dict) for event in events):
        intake.bad(_EVENTS, events, "no list of events", "write the events of a call, each with a timestamp")
        return None
    times = []
    for event in events:
        text = event.get("timestamp")
        try:
            times.append(clock.read_ps(text if isinstance(text, str) else ""))
        except ValueError as reason:
            intake.bad(_EVENTS, text, str(reason), RIGHT)
            return None
    inputs = [time for time, event in zip(times, events, strict=True) if event.get("event_type") in _INPUTS]
    start_ps = max(inputs) if inputs else min(times)
    return start_ps, max(start_ps, *times)

"""GitHub Copilot agents 2026 (Azure public datasets): a JSON line per session, its turns, and their calls to models.

Each call has its time, how long it took, how it ended, and how much of its prompt the provider's cache held.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kvsim.workload.readers.base import FAILED, BaseReader, Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.values.clock import RIGHT, WallClock
from kvsim.workload.readers.values.times import ps_of

_SESSION, _TURNS, _CALLS, _ID = "session_id", "turns", "llm_calls", "message_id"
_TIME, _DURATION, _RESULT, _TOKENS = "timestamp", "duration_ms", "result", "tokens"
_PROMPT, _OUTPUT, _CACHED = "prompt", "completion", "cached"
_SUCCESS, _CANCELLED = "Success", "UserCancel"
_MILLISECONDS = 3


class CopilotReader(BaseReader):
    """`UserCancel` is a client that gave up at the call's end; any other result than `Success` is a failed call."""

    format: ClassVar[str] = "copilot"
    columns: ClassVar[tuple[str, ...]] = (_SESSION, _TURNS)
    time_unit: ClassVar[str] = "wall clock"

    def recognises(self, head: Head) -> bool:
        """Turns that are calls."""
        turns = head.row.get(_TURNS)
        return isinstance(turns, list) and bool(turns) and isinstance(turns[0], dict) and _CALLS in turns[0]

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Calls in file order; a row is a session, and a session with a wrong call goes on behind it."""
        clock, links = WallClock(), Links(intake)
        for row in json_lines.objects(source.lines(), intake):
            session = str(row.get(_SESSION, intake.row))
            end_ps = None
            for call in _calls(row, intake):
                request = _request(call, session, clock, intake)
                if request is None or not links.is_new(request.id, _ID):
                    continue
                assert request.arrival_ps is not None
                wait_ps = 0 if end_ps is None else max(0, request.arrival_ps - end_ps)
                request.after = links.goes_on(session, request.id, wait_ps)
                end_ps = request.arrival_ps + (request.duration_ps or 0)
                yield request


def _calls(row: dict[str, Any], intake: Intake) -> list[dict[str, Any]]:
    turns = row.get(_TURNS)
    found: list[dict[str, Any]] = []
    for turn in turns if isinstance(turns, list) else [None]:
        calls = turn.get(_CALLS) if isinstance(turn, dict) else None
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            intake.bad(_TURNS, turn, f"no turn with {_CALLS}", "write a list of calls")
            return found
        found += calls
    return found


def _request(call: dict[str, Any], session: str, clock: WallClock, intake: Intake) -> TraceRequest | None:
    told = call.get(_TOKENS)
    tokens: dict[str, Any] = told if isinstance(told, dict) else {}
    result = call.get(_RESULT, _SUCCESS)
    failed = result not in (_SUCCESS, _CANCELLED) or tokens.get(_OUTPUT) == 0
    if failed and intake.options.failed == "drop":
        intake.drop(FAILED)
        return None
    try:
        text = call.get(_TIME)
        time_ps = clock.read_ps(text if isinstance(text, str) else "")
    except ValueError as reason:
        intake.bad(_TIME, call.get(_TIME), str(reason), RIGHT)
        return None
    prompt = 0 if failed and not tokens.get(_PROMPT) else json_lines.read_count(tokens, _PROMPT, "prompt", intake)
    output = 0 if failed else prompt and json_lines.read_count(tokens, _OUTPUT, "output", intake)
    if not failed and not output:
        return None
    request = TraceRequest(str(call.get(_ID, f"{session}#{intake.row}")), prompt, output, time_ps, session)
    request.failed = failed
    cached = tokens.get(_CACHED)
    if type(cached) is int and 0 <= cached <= prompt:
        request.new_prompt_tokens = prompt - cached
    request.duration_ps = ps_of(call.get(_DURATION), _MILLISECONDS)
    if result == _CANCELLED and request.duration_ps is not None:
        request.cancel_at_ps = time_ps + request.duration_ps
    request.tags = {key: str(call[key]) for key in ("model", _RESULT, "initiator_type") if call.get(key) is not None}
    return request

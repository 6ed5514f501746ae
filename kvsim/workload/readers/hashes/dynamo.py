"""Dynamo's request trace (`dynamo.request.trace.v1`): JSON lines of events; a request is told when it ends.

`request.replay` has the prompt's block hashes and their size, `agent_context` the session and the one it was spawned
by. A `tool_end` event of class `agent` says which request takes in what a session spawned by another came to. Other
events are no requests.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kvsim.workload.readers.base import BaseReader, Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.head import Head, first_object
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Identity, Intake, Scope
from kvsim.workload.readers.request import After, TraceRequest
from kvsim.workload.readers.values.times import ps_of

SCHEMA = "dynamo.request.trace"
_EVENT, _END, _TOOL = "event_type", "request_end", "tool_end"
_RECEIVED, _TOTAL, _ID, _OUTPUT = "request_received_ms", "total_time_ms", "request_id", "output_tokens"
_PROMPT, _IDS, _BLOCK = "input_length", "input_sequence_hashes", "trace_block_size"
_MILLISECONDS = 3
_RIGHT = "write milliseconds, 0 or more"
_NO_REPLAY = "a request without `replay`: its prompt is not told"


class DynamoReader(BaseReader):
    """Rows are in the order in which requests ended, so a replay by times must sort them."""

    format: ClassVar[str] = "dynamo"
    columns: ClassVar[tuple[str, ...]] = (_EVENT,)
    time_unit: ClassVar[str] = "milliseconds"
    prefix_identity: ClassVar[Identity] = "real"
    hash_scope: ClassVar[Scope] = "global"

    def recognises(self, head: Head) -> bool:
        """The schema, or an event."""
        return str(head.row.get("schema", "")).startswith(SCHEMA) or _EVENT in head.keys

    def block_tokens(self, source: Source) -> int:
        """The first request's that tells one; 0 where none does. Reads as far as that."""
        for line in source.lines():
            size = _within(first_object(line), "request", "replay").get(_BLOCK)
            if type(size) is int and size > 0:
                return size
        return 0

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Requests in the order they ended."""
        links = Links(intake)
        ends_ps: dict[str, int] = {}
        joins: dict[str, str] = {}
        for row in json_lines.objects(source.lines(), intake):
            event = row.get(_EVENT)
            if event == _TOOL:
                claude = _within(row, "tool", "claude")
                if {"consumer_request_id", "child_session_id"} <= claude.keys():
                    joins[str(claude["consumer_request_id"])] = str(claude["child_session_id"])
            if event != _END:
                intake.drop("an event that ends no request")
                continue
            request = self._request(row, intake)
            if request is None or not links.is_new(request.id, _ID):
                continue
            if _add_links(request, row, joins.get(request.id), links, ends_ps, intake):
                yield request

    def _request(self, row: dict[str, Any], intake: Intake) -> TraceRequest | None:
        told = _within(row, "request")
        replay = _within(told, "replay")
        if not replay:
            intake.drop(_NO_REPLAY)
            return None
        prompt = json_lines.read_count(replay, _PROMPT, "prompt", intake)
        output = prompt and json_lines.read_count(told, _OUTPUT, "output", intake)
        time_ps = json_lines.read_time_ps(told, _RECEIVED, _MILLISECONDS, _RIGHT, intake) if output else None
        if time_ps is None:
            return None
        size = intake.options.block_tokens or replay.get(_BLOCK)
        if type(size) is not int or size < 1:
            intake.bad(_BLOCK, size, "no size of a block", "write a whole number of tokens")
            return None
        ids = json_lines.read_ids(replay, _IDS, prompt, size, intake)
        if ids is None:
            return None
        request = TraceRequest(str(told.get(_ID, intake.row)), prompt, output, time_ps)
        request.blocks, request.block_tokens = tuple(ids), size
        request.duration_ps = ps_of(told.get(_TOTAL), _MILLISECONDS)
        return request


def _add_links(
    request: TraceRequest,
    row: dict[str, Any],
    joined: str | None,
    links: Links,
    ends_ps: dict[str, int],
    intake: Intake,
) -> bool:
    """Session, and what the request waited for; whether the row is good. Mutates."""
    assert request.arrival_ps is not None
    context = _within(row, "agent_context")
    session = request.session = str(context.get("session_id", ""))
    if not session:
        return True
    parent = context.get("parent_session_id")
    found = []
    before = links.last(session)
    if before is not None:
        found.append(After(before, max(0, request.arrival_ps - ends_ps[session])))
    elif parent is not None:
        spawner = links.last(str(parent))
        if spawner is None:
            right = "put a session behind the one that spawned it"
            intake.bad("parent_session_id", parent, "no earlier row is of this session", right)
            return False
        found.append(After(spawner, max(0, request.arrival_ps - ends_ps[str(parent)]), "end", "spawn"))
    taken_in = None if joined is None else links.last(joined)
    if joined is not None and taken_in is not None:
        found.append(After(taken_in, max(0, request.arrival_ps - ends_ps[joined]), "end", "join"))
    request.after = tuple(found)
    links.goes_on(session, request.id)
    ends_ps[session] = request.arrival_ps + (request.duration_ps or 0)
    return True


def _within(row: Any, *path: str) -> dict[str, Any]:
    """The object under nested keys; an empty one where there is none."""
    for key in path:
        row = row.get(key) if isinstance(row, dict) else None
    return row if isinstance(row, dict) else {}

"""WEKA's Claude Code sessions (kv-cache-tester): one JSON object per session, in a file each; a file or a folder.

Times are seconds from the session's start: when sessions begin is up to whoever replays them. Block ids mean something
within their session alone (`hash_id_scope`: local); `tool_tokens` and `system_tokens` say how long the prompt is that
all sessions of a kind have in common, which `options.shared_system` makes up again. A subagent is a list of requests
within the list, with times from its own start. Published at github.com/callanjfox/kv-cache-tester.
"""

from collections.abc import Generator, Iterator
from typing import Any, ClassVar

from kvsim.workload.readers.base import FAILED, BaseReader, Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.json_values import document_objects
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Identity, Intake, Scope
from kvsim.workload.readers.request import After, TraceRequest
from kvsim.workload.readers.values.chain import chained_blocks
from kvsim.workload.readers.values.times import ps_of

_ID, _BLOCK, _SCOPE, _REQUESTS = "id", "block_size", "hash_id_scope", "requests"
_TIME, _PROMPT, _OUTPUT, _IDS, _TYPE, _SUBAGENT = "t", "in", "out", "hash_ids", "type", "subagent"
_SECONDS = 0
_RIGHT = "write seconds from the session's start"
_ENDINGS = (".json", ".json.gz")
_SAME_START = 5
"""Sessions that have this many first requests in common are the same session, or one forked from the other."""


class WekaReader(BaseReader):
    """Failed calls (no output) are left out and counted."""

    format: ClassVar[str] = "weka"
    columns: ClassVar[tuple[str, ...]] = (_ID, _BLOCK, _REQUESTS)
    time_unit: ClassVar[str] = "seconds"
    prefix_identity: ClassVar[Identity] = "real"
    hash_scope: ClassVar[Scope] = "session"

    def recognises(self, head: Head) -> bool:
        """A session, or a folder with nothing but JSON files, seen by their names."""
        if head.kind == "folder":
            return any(name.endswith(_ENDINGS) and "dataset" not in name for name in head.names)
        return {_SCOPE, _REQUESTS} <= head.keys or {_BLOCK, _REQUESTS} <= head.keys

    def block_tokens(self, source: Source) -> int:
        """64, as the publication's README has it; each file tells its own."""
        size = source.head.row.get(_BLOCK)
        return size if type(size) is int and size > 0 else 64

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Sessions by file name, requests in file order, a subagent's where it stands."""
        links, starts = Links(intake), set[tuple[int, ...]]()
        trace = intake.trace
        for part in source.parts(*_ENDINGS):
            intake.trace = part.name
            if part is not source and not self.recognises(part.head):
                raise intake.wrong(f"no session: it has no {_REQUESTS}; leave only sessions in the folder")
            for document in document_objects(part.lines(), intake):
                intake.row -= 1  # Requests are the rows, not sessions.
                session = _Session(document, links, intake)
                if session.is_good:
                    if session.start() in starts:
                        intake.note(f"sessions that begin as an earlier one does, {_SAME_START} requests long")
                    starts.add(session.start())
                    yield from session.requests()
        intake.trace = trace


class _Session:
    def __init__(self, document: dict[str, Any], links: Links, intake: Intake) -> None:
        self._links, self._intake = links, intake
        self._document = document
        self._id = str(document.get(_ID, intake.trace))
        rows = document.get(_REQUESTS)
        self._rows: list[dict[str, Any]] = rows if isinstance(rows, list) else []
        size = intake.options.block_tokens or document.get(_BLOCK)
        self._size = size if type(size) is int and size > 0 else 0
        self.is_good = self._check(rows)
        self._system = self._system_ids() if intake.options.shared_system and self.is_good else {}
        self._last_end_ps = 0

    def start(self) -> tuple[int, ...]:
        """What tells sessions apart that are not copies of each other."""
        first = [row for row in self._rows if row.get(_TYPE) != _SUBAGENT][:_SAME_START]
        return chained_blocks([repr((row.get(_PROMPT), row.get(_OUTPUT), row.get(_IDS))) for row in first])

    def requests(self) -> Iterator[TraceRequest]:
        before: str | None = None
        joins: list[After] = []
        for row in self._rows:
            if row.get(_TYPE) == _SUBAGENT:
                last = yield from self._subagent(row, before)
                if last is not None:
                    joins.append(After(last, 0, "end", "join"))
                continue
            request = self._request(row, 0)
            if request is None:
                continue
            if before is not None:
                request.after = (After(before, self._wait_ps(row, request)), *joins)
            joins.clear()
            before = request.id
            self._last_end_ps = (request.session_time_ps or 0) + (request.duration_ps or 0)
            yield request

    def _check(self, rows: object) -> bool:
        self._intake.row += 1
        try:
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                self._intake.bad(_REQUESTS, rows, "no list of requests", "write a list of objects")
                return False
            if not self._size:
                self._intake.bad(_BLOCK, self._document.get(_BLOCK), "no size of a block", "write a whole number")
                return False
            return self._links.is_new(self._id, _ID)
        finally:
            self._intake.row -= 1

    def _subagent(self, agent: dict[str, Any], before: str | None) -> Generator[TraceRequest, None, str | None]:
        """The requests of a subagent; returns the id of the last."""
        rows = agent.get(_REQUESTS)
        start_ps = ps_of(agent.get(_TIME), _SECONDS)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or start_ps is None:
            self._intake.row += 1
            right = "write when it began (t) and a list of its requests"
            self._intake.bad(_SUBAGENT, agent.get(_TIME), "no subagent", right)
            return None
        last: str | None = None
        main_end_ps, self._last_end_ps = self._last_end_ps, 0
        for row in rows:
            request = self._request(row, start_ps)
            if request is None:
                continue
            request.session = f"{self._id}/{agent.get('agent_id', request.id)}"
            if last is not None:
                request.after = (After(last, self._wait_ps(row, request)),)
            elif before is not None:
                request.after = (After(before, max(0, start_ps - main_end_ps), "end", "spawn"),)
            last = request.id
            self._last_end_ps = (request.session_time_ps or 0) + (request.duration_ps or 0)
            yield request
        self._last_end_ps = main_end_ps
        return last

    def _request(self, row: dict[str, Any], start_ps: int) -> TraceRequest | None:
        intake = self._intake
        intake.row += 1
        time_ps = json_lines.read_time_ps(row, _TIME, _SECONDS, _RIGHT, intake)
        if time_ps is None:
            return None
        failed = row.get(_OUTPUT) == 0
        if failed and intake.options.failed == "drop":
            intake.drop(FAILED)
            return None
        prompt = json_lines.read_count(row, _PROMPT, "prompt", intake)
        output = 0 if failed or not prompt else json_lines.read_count(row, _OUTPUT, "output", intake)
        if not prompt or not (output or failed):
            return None
        ids = json_lines.read_ids(row, _IDS, prompt, self._size, intake)
        if ids is None:
            return None
        request = TraceRequest(f"{self._id}#{intake.row}", prompt, output, failed=failed)
        request.session, request.session_time_ps = self._id, start_ps + time_ps
        request.play = self._id
        request.blocks = tuple(self._global(id) for id in ids)
        request.block_tokens = self._size
        request.scope = "" if self._document.get(_SCOPE) == "global" or self._system else self._id
        request.duration_ps = ps_of(row.get("api_time"), _SECONDS)
        if row.get("model") is not None:
            request.tags = {"model": str(row["model"])}
        return request

    def _wait_ps(self, row: dict[str, Any], request: TraceRequest) -> int:
        """As recorded, else what lies between the two."""
        think_ps = ps_of(row.get("think_time"), _SECONDS)
        if think_ps is not None and think_ps >= 0:
            return think_ps
        return max(0, (request.session_time_ps or 0) - self._last_end_ps)

    def _system_ids(self) -> dict[int | str, str]:
        """Local ids of the blocks of the tools and the system prompt, to names that all such sessions share."""
        tools, system = self._document.get("tool_tokens", 0), self._document.get("system_tokens", 0)
        first = next((row for row in self._rows if row.get(_TYPE) != _SUBAGENT), {})
        ids = first.get(_IDS)
        if not isinstance(ids, list) or type(tools) is not int or type(system) is not int:
            return {}
        self._intake.note("sessions whose tools and system prompt were taken to be those of others of their size")
        return {
            id: f"{tools}+{system}:{at}"
            for at, id in enumerate(ids[: (tools + system) // self._size])
            if type(id) in (int, str)
        }

    def _global(self, id: int | str) -> int | str:
        if not self._system:
            return id
        return self._system.get(id, f"{self._id}:{id}")

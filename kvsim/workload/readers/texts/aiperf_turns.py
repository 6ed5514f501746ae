"""aiperf's conversations in words: a JSON line per session, its turns, and the sessions that turns spawn or fork.

`{"session_id", "turns": [{"text" | "messages", "delay" | "think_time_ms"?, "output_length" | "max_tokens"?, "spawns"?,
"forks"?}]}`. A turn tells what it adds; its prompt is all that went before in its session, answers included. The turn
behind one that spawned sessions waits for their ends, unless `join_at` names a later one. A fork goes on with its
parent's history, a spawn starts fresh. Sessions stand behind those that start them.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from kvsim.workload.readers.base import Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import After, TraceRequest
from kvsim.workload.readers.texts.base import TextReader
from kvsim.workload.readers.texts.wording import Wording, content_text, messages_text
from kvsim.workload.readers.values.times import ps_of

_SESSION, _TURNS, _SPAWNS, _FORKS, _JOIN = "session_id", "turns", "spawns", "forks", "join_at"
_RELATIONS: tuple[tuple[str, Literal["fork", "spawn"]], ...] = ((_SPAWNS, "spawn"), (_FORKS, "fork"))
_MILLISECONDS = 3
_RIGHT = "write milliseconds, 0 or more"


@dataclass
class _Start:
    """A session that another one starts."""

    by: "_Conversation"
    parent: str
    relation: Literal["fork", "spawn"]
    history: list[Hashable] = field(default_factory=list)


class AiperfTurnsReader(TextReader):
    """A row is a session. Turns that wait for other sessions come behind them; until then they are held."""

    format: ClassVar[str] = "aiperf-turns"
    columns: ClassVar[tuple[str, ...]] = (_TURNS,)
    time_unit: ClassVar[str] = "milliseconds"

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Turns in file order, those that wait for other sessions behind the last of these."""
        wording, links = Wording(intake), Links(intake)
        starts: dict[str, _Start] = {}
        for row in json_lines.objects(source.lines(), intake):
            session = str(row.get(_SESSION, intake.row))
            turns = row.get(_TURNS)
            if not isinstance(turns, list) or not turns or not all(isinstance(turn, dict) for turn in turns):
                intake.bad(_TURNS, turns, "no list of turns", "write a list of objects, one a turn")
            elif links.is_new(session, _SESSION):
                place = intake.row, intake.line
                yield from _Conversation(session, turns, starts, wording, links, intake).requests()
                intake.row, intake.line = place
        for session, start in starts.items():
            intake.row, intake.line = start.by.place
            where = f"{intake.place}, column {_TURNS}"
            raise intake.wrong(
                f"{where}: session {session!r}, which {start.parent} starts, is not in the trace; add it"
            )


class _Conversation:
    def __init__(
        self,
        session: str,
        turns: list[dict[str, Any]],
        starts: dict[str, _Start],
        wording: Wording,
        links: Links,
        intake: Intake,
    ) -> None:
        self._session, self._turns, self._starts = session, turns, starts
        self._wording, self._links, self._intake = wording, links, intake
        self.place = intake.row, intake.line
        self._start = starts.pop(session, None)
        self._said = list(self._start.history) if self._start is not None else []
        self._held = len(self._said)
        self._next = 0
        self._awaited: dict[str, int] = {}
        """Sessions that it started and takes in, to the turn that does."""
        self._ended: dict[int, list[str]] = {}
        """Last requests of those that ended, by that turn."""

    def requests(self) -> Iterator[TraceRequest]:
        """The turns up to one that waits; then, once the last is out, those of the session that waited for it."""
        intake = self._intake
        while self._next < len(self._turns):
            number = self._next
            if any(turn <= number for turn in self._awaited.values()):
                return
            intake.row, intake.line = self.place
            turn = self._turns[number]
            request = self._request(turn, number)
            if request is None or not self._starts_others(turn, number, request):
                self._turns = self._turns[:number]
                break
            self._next += 1
            self._said += [(request.id, token) for token in range(request.output_tokens)]
            self._held = len(self._said)
            yield request
        if self._start is not None:
            by = self._start.by
            joined = by._awaited.pop(self._session, None)
            last = self._links.last(self._session)
            if joined is not None:
                if last is not None:
                    by._ended.setdefault(joined, []).append(last)
                yield from by.requests()

    def _request(self, turn: dict[str, Any], number: int) -> TraceRequest | None:
        intake, id = self._intake, f"{self._session}/{number}"
        text = messages_text(turn["messages"]) if "messages" in turn else content_text(turn.get("text"))
        if text is None:
            intake.bad(_TURNS, turn, "a turn without text", "write text or messages")
            return None
        column = next((name for name in ("think_time_ms", "delay") if turn.get(name) is not None), "delay")
        delay_ps = ps_of(turn.get(column) or 0, _MILLISECONDS)
        if delay_ps is None or delay_ps < 0:
            intake.bad(column, turn[column], "no wait", _RIGHT)
            return None
        output = self._wording.output_tokens(turn, "output_length", "max_tokens")
        self._said += self._wording.tokens(text)
        request = self._wording.request(id, self._said, output) if output else None
        if request is None:
            return None
        request.session = self._session
        request.new_prompt_tokens = len(self._said) - self._held
        if number == 0 and turn.get("timestamp") is not None:
            request.arrival_ps = json_lines.read_time_ps(turn, "timestamp", _MILLISECONDS, _RIGHT, intake)
            if request.arrival_ps is None:
                return None
        after = self._links.goes_on(self._session, id, delay_ps)
        if not after and self._start is not None:
            after = (After(self._start.parent, delay_ps, "end", self._start.relation),)
        elif not after and request.arrival_ps is None:
            request.session_time_ps = delay_ps
        joins = [After(last, delay_ps, "end", "join") for last in self._ended.pop(number, ())]
        request.after = (*after, *joins)
        return request

    def _starts_others(self, turn: dict[str, Any], number: int, request: TraceRequest) -> bool:
        """Keep which sessions a turn starts, and which later turn takes them in; whether that can be."""
        for column, relation in _RELATIONS:
            names, join = turn.get(column, []), turn.get(_JOIN)
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                self._intake.bad(column, names, "no list of sessions", "write a list of session ids")
                return False
            if join is not None and (type(join) is not int or not number < join < len(self._turns)):
                self._intake.bad(_JOIN, join, "no later turn", f"write a number up to {len(self._turns) - 1}")
                return False
            for name in names:
                if name in self._starts or self._links.is_there(name):
                    right = "let one turn start a session, earlier in the file"
                    reason = "is started twice, stands before what starts it, or starts itself"
                    self._intake.bad(column, name, reason, right)
                    return False
                answer = [(request.id, token) for token in range(request.output_tokens)]
                history = [*self._said, *answer] if relation == "fork" else []
                self._starts[name] = _Start(self, request.id, relation, history)
                if join is not None or (relation == "spawn" and number + 1 < len(self._turns)):
                    self._awaited[name] = number + 1 if join is None else join
        return True

"""What most readers share: the short forms, derived from whole requests, and how requests refer to each other."""

from collections.abc import Iterator
from typing import ClassVar

from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Call, Identity, Intake, Prompt, Row, Scope
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.readers.request import After, TraceRequest

FAILED = "a failed call"


class BaseReader:
    """A reader that only has to say what it recognises, and to read requests."""

    format: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    time_unit: ClassVar[str]
    prefix_identity: ClassVar[Identity] = "absent"
    hash_scope: ClassVar[Scope] = "none"

    def recognises(self, head: Head) -> bool:
        """Whether the columns or keys that the format must have are all there."""
        return set(self.columns) <= (head.keys or set(head.names))

    def identity(self, source: Source, options: ReadOptions) -> Identity:
        """What the format can tell."""
        return self.prefix_identity

    def block_tokens(self, source: Source) -> int:
        """The format has no blocks."""
        return 0

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """The usable requests in file order."""
        raise NotImplementedError

    def rows(self, source: Source, intake: Intake) -> Iterator[Row]:
        """Requests by their own times; those that came to nothing are left out."""
        for request in self.requests(source, intake):
            row = self._row(request, intake)
            if row is not None:
                yield row

    def prompts(self, source: Source, intake: Intake, block_tokens: int) -> Iterator[Prompt]:
        """Prompts by their blocks; ids of a narrow scope carry it."""
        for request in self.requests(source, intake):
            if request.prompt_tokens and _fits(request, block_tokens, intake):
                yield Prompt(request.prompt_tokens, request.keyed_blocks)

    def calls(self, source: Source, intake: Intake, block_tokens: int) -> Iterator[Call]:
        """Rows with the blocks of their prompts."""
        for request in self.requests(source, intake):
            row = self._row(request, intake)
            if row is not None and _fits(request, block_tokens, intake):
                yield Call(row, request.keyed_blocks, request.session)

    def _row(self, request: TraceRequest, intake: Intake) -> Row | None:
        if request.failed:
            intake.drop(FAILED)
        elif request.arrival_ps is None:
            self._has_no_time(request, intake)
        else:
            return request.arrival_ps, request.prompt_tokens, request.output_tokens
        return None

    def _has_no_time(self, request: TraceRequest, intake: Intake) -> None:
        if request.after:
            reason = "no time of its own: it waits for another call"
            right = "give a trace in which every call has a time"
        elif request.session_time_ps is not None:
            reason = "only a time since its session began"
            right = "say when sessions begin by making a trace of it, with a time for every call"
        else:
            reason = "no time"
            right = "fit traffic to its lengths (kvsim trace fit) and give a rate"
        intake.bad(None, request.id, reason, right)


def _fits(request: TraceRequest, block_tokens: int, intake: Intake) -> bool:
    if not request.blocks or request.block_tokens == block_tokens:
        return True
    right = f"split the trace by the size of its blocks, or say the size (--block-tokens {request.block_tokens})"
    intake.bad(None, request.block_tokens, f"blocks of so many tokens among those of {block_tokens}", right)
    return False


class Links:
    """Which requests there were, in which session and when, and which was the last of its session.

    About 200 bytes a request that has an id of its own, which is what telling a wrong reference needs.
    """

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._seen: dict[str, tuple[str, int]] = {}
        self._last: dict[str, str] = {}

    def is_new(self, id: str, column: str) -> bool:
        """Whether no earlier row has this id; if one has, the row is handed to `intake.bad`. Mutates."""
        if id in self._seen:
            self._intake.bad(column, id, "an earlier row has this id", "give every row an id of its own")
            return False
        self._seen[id] = _NOWHERE
        return True

    def is_there(self, id: str) -> bool:
        """Whether an earlier row has this id."""
        return id in self._seen

    def knows(self, id: str, column: str) -> bool:
        """Whether an earlier row has this id; if none has, the row is handed to `intake.bad`."""
        if id in self._seen:
            return True
        self._intake.bad(
            column,
            id,
            "no earlier row has this id: it does not exist, was left out, or each waits for the other",
            "put a row behind those it refers to",
        )
        return False

    def place(self, id: str, session: str, start_ps: int) -> None:
        """Keep in which session a request is, and when it began. Mutates."""
        self._seen[id] = (session, start_ps)

    def where(self, id: str) -> tuple[str, int]:
        """Session and beginning of a request that was placed."""
        return self._seen[id]

    def last(self, session: str) -> str | None:
        """The id of the session's last request, if it had one."""
        return self._last.get(session)

    def goes_on(self, session: str, id: str, delay_ps: int | None = None) -> tuple[After, ...]:
        """What a request waits for that is its session's next. Mutates."""
        before = self._last.get(session)
        self._last[session] = id
        return () if before is None else (After(before, delay_ps),)


_NOWHERE = ("", 0)

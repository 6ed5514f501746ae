"""A request as traces tell of it: one record for all formats, plain data.

What a format does not say stays at its default, and nothing is made up. Times are integer picoseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

BlockId = int | str | tuple[str, int | str]
"""A prefix block: as the file names it, or with the scope in front where the name means something there alone."""


class After(NamedTuple):
    """What a request waits for: another request of the trace, earlier in the file.

    The request comes `delay_ps` after that one has ended, or been sent (`trigger`); None: the file does not say when.
    A `turn` goes on with the same session, a `fork` starts with its parent's history, a `spawn` starts fresh, a `join`
    takes a result in.
    """

    request: str
    delay_ps: int | None
    trigger: Literal["end", "start"] = "end"
    relation: Literal["turn", "fork", "spawn", "join"] = "turn"


@dataclass(slots=True)
class TraceRequest:
    """One call of a trace, in the file's order.

    `arrival_ps` counts from any fixed moment of the trace; it is None where the call only waits (`after`), where the
    file has times from its session's start alone (`session_time_ps`), or no times at all. Both are there where a
    file tells both: an open replay takes `arrival_ps`, a closed one `after`.
    """

    id: str
    """Unlike any other of the trace."""
    prompt_tokens: int
    output_tokens: int
    arrival_ps: int | None = None
    session: str = ""
    """Empty where the file knows no sessions."""
    play: str = ""
    """Sessions of one play begin together: their times from its start are on one clock. Empty: each by itself."""
    session_time_ps: int | None = None
    after: tuple[After, ...] = ()
    blocks: tuple[int | str, ...] = ()
    """Ids of the blocks the prompt begins with, head first, the last one perhaps partly filled; a prefix chain."""
    block_tokens: int = 0
    scope: str = ""
    """Where the ids mean what they mean; empty: in the whole trace. Equal ids of two scopes are two things."""
    new_prompt_tokens: int | None = None
    """Prompt tokens that the session did not hold before; None where the file does not say."""
    tenant: str = ""
    priority: int = 0
    deadline_ps: int | None = None
    """When its client gives up, on the clock of `arrival_ps`."""
    cancel_at_ps: int | None = None
    """When its client did give up, on the clock of `arrival_ps`."""
    duration_ps: int | None = None
    """From sending to the last token, as recorded."""
    failed: bool = False
    """Whether the call came to nothing; then its token counts may be 0."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """What else tells calls apart: model, type, class of service."""

    @property
    def keyed_blocks(self) -> tuple[BlockId, ...]:
        """The blocks with their scope, so that ids of different scopes are never taken for each other."""
        if not self.scope:
            return self.blocks
        return tuple((self.scope, block) for block in self.blocks)

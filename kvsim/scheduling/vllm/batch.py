"""A request as this scheduler follows it, and a batch of them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from kvsim.memory.prefix import Holding
from kvsim.request import Sequence


@dataclass(slots=True, eq=False)
class Followed:
    """One request's state. `sequence.tokens` are its known tokens, `sequence.written` those computed or scheduled."""

    sequence: Sequence
    holding: Holding
    drafts: int = 0
    """Drafts that wait to be verified with its next token."""
    placeholders: int = 0
    """Tokens that batches in flight will yield, drafts included: scheduled on, not known yet."""
    in_flight: int = 0
    """Tokens scheduled in batches whose output has not come."""
    stale: int = 0
    """Those of them that were scheduled before it was preempted: they yield tokens, and nothing else of it changes."""
    prefilling: bool = False
    """Its last scheduled tokens did not reach the end of the known ones, so that they yield none."""
    running: bool = False
    ended: bool = False
    set_aside: bool = False
    """It was passed over in the queue, because output of it is still in flight."""

    @property
    def order(self) -> tuple[int, int, int]:
        """What priority scheduling goes by: the lowest first."""
        return self.sequence.priority, self.sequence.arrival_ps, self.sequence.id


class Row(NamedTuple):
    """One request's part of a batch."""

    request: Followed
    tokens: int
    drafts: int
    """Of these tokens the last ones are drafts."""


class Admitted(NamedTuple):
    """A request that runs from this step on, for the first time or again, and what it found cached."""

    request: Followed
    hit_tokens: int


class Lost(NamedTuple):
    """A request that was preempted with so many tokens computed or scheduled."""

    request: Followed
    tokens: int


class Unmet(NamedTuple):
    """A request whose slots could not be had: `need` free blocks were asked for, and `free` were there."""

    request: Followed
    need_blocks: int
    free_blocks: int
    waits: bool
    """It stays in the queue; otherwise somebody is preempted."""
    alone: bool
    """Nobody else runs."""


@dataclass(slots=True, eq=False)
class Batch:
    """Who computes how much in one step, in scheduling order, and what happened while that was decided."""

    rows: list[Row] = field(default_factory=list)
    admitted: list[Admitted] = field(default_factory=list)
    preempted: list[Lost] = field(default_factory=list)
    unmet: list[Unmet] = field(default_factory=list)
    samples: set[int] = field(default_factory=set)
    """Ids of the sequences whose rows yield a token."""


class Emitted(NamedTuple):
    """Tokens that a request has yielded, and whether it may have no more."""

    sequence: Sequence
    tokens: int
    ended: bool
    stale: bool = False
    """They were in flight when it was preempted."""

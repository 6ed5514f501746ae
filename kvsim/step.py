"""Plain data that the rooms exchange about one step: what is asked, what is granted, what is planned.

Nothing here decides anything. Times are integer picoseconds, room is counted in slots (one slot holds one token's KV).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from kvsim.request import Sequence

CLASSES = ("used", "reserved", "internal", "dead", "moving", "cached", "external", "free")
"""The eight classes of the accounting identity; every slot of a pool is in exactly one of them."""

CAUSES = ("capacity", "fragmentation", "never", "outgrown", "activation", "queue")
"""Why an allocation could not be met at once, or was not even tried: as many wait as may."""

ENDS = ("finished", "rejected", "cancelled", "aborted", "unfinished")
"""How a request ends; every request ends in exactly one of these ways."""


@dataclass(slots=True, eq=False)
class DecodeSet:
    """The sequences that get one token each step, kept as aggregates over one decode clock.

    The clock counts decode steps. A member's written tokens are `origin + clock`, so that a step, or a leap over
    many, touches three numbers here and no member at all. The allocator that holds their KV is the only one to
    change it.
    """

    clock: int = 0
    count: int = 0
    written: int = 0
    """Written tokens of all members together."""
    origin_squares: int = 0
    """Sum of the squares of the members' origins."""

    @property
    def pairs(self) -> int:
        """Pairs of tokens that attend to one another if all members, with the token each computes now, start anew."""
        ahead = self.clock + 1
        origins = self.written - self.count * self.clock
        squares = self.origin_squares + 2 * ahead * origins + self.count * ahead * ahead
        return (squares + origins + self.count * ahead) // 2

    def join(self, sequence: Sequence) -> None:
        """Take in a sequence that has just sampled a token: all its known tokens but that one are written."""
        sequence.origin = sequence.written - self.clock
        sequence.decoding = True
        self.count += 1
        self.written += sequence.written
        self.origin_squares += sequence.origin * sequence.origin

    def leave(self, sequence: Sequence) -> None:
        """Let a member go, its own numbers brought up to date."""
        sequence.written = written = sequence.origin + self.clock
        sequence.tokens = written + 1
        sequence.decoding = False
        self.count -= 1
        self.written -= written
        self.origin_squares -= sequence.origin * sequence.origin

    def advance(self, steps: int = 1) -> None:
        """Every member has written `steps` tokens more."""
        self.clock += steps
        self.written += steps * self.count

    def written_of(self, sequence: Sequence) -> int:
        """Written tokens of a sequence now, member or not."""
        return sequence.origin + self.clock if sequence.decoding else sequence.written


class Ask(NamedTuple):
    """Slots wanted so that `sequence` can hold `tokens` tokens in all.

    With `admit` the sequence owns nothing yet and comes from the waiting queue: the allocator may then demand more
    (a watermark), and a `gate` above zero demands that the slots for that many tokens could be had now, although
    only those for `tokens` need be taken. `alone` says that no other sequence is running.
    """

    sequence: Sequence
    tokens: int
    admit: bool = False
    gate: int = 0
    alone: bool = False


class Grant(NamedTuple):
    """The slots were had; `copied_slots` written slots move to a new place during the step.

    `mapped_pages` pages of physical memory must be mapped before the step can begin. `compacted` says what was short
    before regions slid together; each of these requests has its slots now.
    """

    copied_slots: int = 0
    mapped_pages: int = 0
    compacted: tuple["Blocked", ...] = ()


class Short(NamedTuple):
    """The slots could not be had, and nothing changed."""

    cause: str
    need_slots: int
    free_slots: int
    largest_hole_slots: int


class Blocked(NamedTuple):
    """One failed allocation and what the scheduler did about it."""

    sequence: Sequence
    short: Short
    outcome: str


class Preempted(NamedTuple):
    """A running request that gave up its place in the pool."""

    sequence: Sequence
    lost_tokens: int
    """Written tokens that are gone."""
    decoding: bool
    """It was decoding, not computing a prompt."""
    swapped_tokens: int = 0
    """Written tokens that wait in host memory instead."""


class Forked(NamedTuple):
    """`child` goes on from where `parent` is; they share `common` tokens for as long as both live."""

    parent: Sequence
    child: Sequence
    common: int


class Chunk(NamedTuple):
    """Tokens of one sequence's prompt (or of what it must compute again) that a step writes, after `written` ones."""

    sequence: Sequence
    tokens: int
    written: int


class Rows(NamedTuple):
    """The decoding part of a step: as many rows, which attend to so many tokens together.

    Each row attends to one token more from step to step. With ragged kernels the rows are the decoding sequences and
    the context is theirs; padded kernels give every row the longest context, and static batching keeps the rows of
    those that have finished.
    """

    height: int
    """Rows."""
    context: int
    pairs: int = 0
    """Pairs of tokens that attend to one another where all of the context is computed again (0 where KV is kept)."""

    @classmethod
    def even(cls, height: int, length: int, *, anew: bool) -> "Rows":
        """Rows that all attend to `length` tokens, computed `anew` in each step or kept."""
        return cls(height, height * length, height * (length * (length + 1) // 2) if anew else 0)


NO_ROWS = Rows(0, 0)


@dataclass(slots=True, eq=False)
class StepPlan:
    """Who computes what in the next step, and what happened while that was decided."""

    chunks: list[Chunk] = field(default_factory=list)
    decodes: int = 0
    """Sequences that decode one token each."""
    rows: Rows = NO_ROWS
    """What the step computes for them."""
    stalled: bool = False
    """Only prompts are computed: those that decode wait for the next step."""
    rectangle: bool = False
    """The chunks are padded to the longest of them."""
    pairs: int = 0
    """Pairs of tokens that attend to one another in a step that keeps nothing and computes all contexts again."""
    copied_slots: int = 0
    mapped_pages: int = 0
    gathered_slots: int = 0
    """Written slots copied to keep the batch of a padded kernel compact."""
    swapped_slots: int = 0
    """Written slots that cross the link to host memory, in either direction, before the step can begin."""
    admitted: list[Sequence] = field(default_factory=list)
    resumed: list[Sequence] = field(default_factory=list)
    """Sequences that are back from host memory; those that were decoding go on in this very step."""
    preempted: list[Preempted] = field(default_factory=list)
    aborted: list[Sequence] = field(default_factory=list)
    forked: list[Forked] = field(default_factory=list)
    """Samples that have forked off at the end of their prompt, when the step is over."""
    blocked: list[Blocked] = field(default_factory=list)
    granted: list[Sequence] = field(default_factory=list)
    """Sequences whose own request for slots was met after the batch as a whole could not be, or by compaction."""
    ahead: list[Sequence] = field(default_factory=list)
    """Sequences that decode in it although the end of their prompt is still in flight: they have slots for that."""
    late: list[Sequence] = field(default_factory=list)
    """Sequences preempted since it was planned, for which a token comes of it all the same."""

    def take(self, grant: Grant) -> None:
        """A grant is part of this step: what it costs, and what was short before it could be given."""
        self.copied_slots += grant.copied_slots
        self.mapped_pages += grant.mapped_pages
        if grant.compacted:
            self.blocked += grant.compacted
            self.granted += [blocked.sequence for blocked in grant.compacted]

    def moved_before(self, plan: "StepPlan") -> None:
        """What an earlier plan that computes nothing has moved is charged to this one."""
        self.copied_slots += plan.copied_slots
        self.mapped_pages += plan.mapped_pages
        self.gathered_slots += plan.gathered_slots
        self.swapped_slots += plan.swapped_slots

    @property
    def context(self) -> int:
        """Tokens that the decoding part attends to, padding included."""
        return self.rows.context

    @property
    def empty(self) -> bool:
        """Nothing is computed: no time passes."""
        return not self.decodes and not self.chunks

    @property
    def padded_chunks(self) -> list[tuple[int, int]]:
        """(tokens computed, tokens written before) of each chunk, padding included."""
        shapes = [(chunk.tokens, chunk.written) for chunk in self.chunks]
        if not self.rectangle or len(shapes) < 2:
            return shapes
        return [(max(tokens for tokens, _ in shapes), max(written for _, written in shapes))] * len(shapes)

    @property
    def computed_anew(self) -> int:
        """Tokens computed where nothing is kept: everyone's whole context, padding included."""
        return self.rows.context + sum(tokens + written for tokens, written in self.padded_chunks)

    @property
    def padding_tokens(self) -> int:
        """Positions of the batch that hold no token of anybody and are computed all the same."""
        padding = self.rows.height - self.decodes
        if self.rectangle:
            padding += sum(tokens for tokens, _ in self.padded_chunks) - sum(chunk.tokens for chunk in self.chunks)
        return padding


@dataclass(slots=True, eq=False)
class Upkeep:
    """What it takes an allocator to do its work: counts since the start, of blocks or of regions."""

    allocations: int = 0
    frees: int = 0
    copies: int = 0
    """Blocks or regions whose content was copied to another place."""
    evictions: int = 0
    """Cached blocks that lost their content."""
    mapped_pages: int = 0
    table_bytes: int = 0
    """The most that the tables saying where everything lies took at any time."""


class PoolUse(NamedTuple):
    """Slots of a pool by what the allocator knows: it cannot tell `reserved` from `internal` (both are unwritten).

    All but `largest_hole` add up to the pool. `rounding` is what regions take beyond what was asked: nobody owns it, it
    cannot be had, and it is part of `external`.
    """

    used: int
    unwritten: int
    dead: int
    moving: int
    cached: int
    free: int
    largest_hole: int
    rounding: int = 0

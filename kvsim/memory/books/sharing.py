"""Who holds which blocks in common after forks: runs of full blocks, and last blocks that are copied when written.

A fork costs O(1) whatever its length: the full blocks up to it become one run that both hold, and the last, partly
filled block waits for the first of its holders to write. Each writer but the last then gets a copy of its own
(copy-on-write, PagedAttention s4.4).
"""

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Run:
    """Full blocks in a row that several sequences hold, directly or behind later runs."""

    blocks: int
    end: int
    """Blocks from the start of the sequence to the end of the run."""
    before: "Run | None"
    holders: int = 2
    """Sequences that go on alone from its end, and runs that follow it."""


@dataclass(slots=True, eq=False)
class LastBlock:
    """A partly filled block that several sequences hold until they write."""

    tokens: int
    holders: dict[int, None] = field(default_factory=dict)


class Sharing:
    """What the sequences of one pool hold in common; keyed by sequence id."""

    __slots__ = ("_landing", "_size", "blocks", "copies_due", "last", "moving", "runs", "slots")

    def __init__(self, block_size: int) -> None:
        self._size = block_size
        self.blocks = 0
        """Entries of block tables beyond one for each block in use."""
        self.slots = 0
        """Written tokens of sequences beyond one for each used slot."""
        self.copies_due = 0
        """Blocks to be copied when everyone writes."""
        self.moving = 0
        """Slots that are being copied into in this step."""
        self.runs: dict[int, Run] = {}
        self.last: dict[int, LastBlock] = {}
        self._landing: dict[int, int] = {}
        """Slots of its new last block that a sequence is waiting for."""

    def fork(self, parent: int, child: int, written: int) -> None:
        """`child` holds the same `written` tokens as `parent`."""
        full, rest = divmod(written, self._size)
        run = self.runs.get(parent)
        start = run.end if run else 0
        if full > start:
            run = self.runs[parent] = Run(full - start, full, run)
        elif run:
            run.holders += 1
        if run:
            self.runs[child] = run
        self.blocks += full
        self.slots += written
        if rest:
            last = self.last.get(parent) or LastBlock(rest, {parent: None})
            last.holders[child] = None
            self.last[parent] = self.last[child] = last
            self.blocks += 1
            self.copies_due += 1

    def must_copy(self, sequence: int, before: Collection[int]) -> bool:
        """The next token that it writes goes into a block that others hold as well, also when those `before` copied."""
        last = self.last.get(sequence)
        return last is not None and len(last.holders) - sum(other in last.holders for other in before) > 1

    def copy(self, sequence: int) -> int:
        """It gets a copy of its last block; the written slots copied."""
        last = self._let_go(sequence)
        self._landing[sequence] = last.tokens
        self.moving += last.tokens
        return last.tokens

    def copy_all(self) -> tuple[int, int]:
        """Everyone writes: (blocks, written slots) copied."""
        blocks, before = self.copies_due, self.moving
        while self.last:
            self.copy(next(iter(self.last)))
        return blocks, self.moving - before

    def landed(self) -> None:
        """The step is over, and with it all copies."""
        if self._landing:
            self.slots -= self.moving
            self.moving = 0
            self._landing.clear()

    def release(self, sequence: int, table: int) -> int:
        """It gives back the `table` blocks of its table; how many of them nobody else holds."""
        alone = table
        if sequence in self.last:
            self.slots -= self._let_go(sequence).tokens
            alone -= 1
        elif landing := self._landing.pop(sequence, 0):
            self.slots -= landing
            self.moving -= landing
        run = self.runs.pop(sequence, None)
        while run:
            run.holders -= 1
            if run.holders:
                self.blocks -= run.end
                self.slots -= run.end * self._size
                return alone - run.end
            run = run.before
        return alone

    def _let_go(self, sequence: int) -> LastBlock:
        """It holds its shared last block no more; whoever is left alone with it owns it."""
        last = self.last.pop(sequence)
        del last.holders[sequence]
        self.blocks -= 1
        self.copies_due -= 1
        if len(last.holders) == 1:
            del self.last[next(iter(last.holders))]
        return last

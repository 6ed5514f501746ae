"""A user of one allocator: the verbs, to be watched, and its own books of what they did."""

from collections.abc import Sequence as Seq
from dataclasses import astuple
from random import Random
from typing import Any

from kvsim.memory.interface import Allocator, Leap
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, Short
from kvsim.testing.allocators.shares import Shares


class User:
    """Subclasses watch the verbs: `acquire`, `settle`, `begin_decode`, `fork`, `land`, `retire`, `release`, `apply`.

    It keeps its own count of what is written and trusts the allocator with nothing.
    """

    def __init__(self, allocator: Allocator, seed: int, longest: int) -> None:
        self.allocator = allocator
        self.longest = longest
        """No sequence ever holds more tokens."""
        self.random = Random(seed)
        self.running: list[Sequence] = []
        """In admission order."""
        self.retired: list[Sequence] = []
        """Those that have ended and keep their slots."""
        self.written: dict[int, int] = {}
        """Written tokens of each live sequence, counted here."""
        self.shares = Shares()
        self.copies = 0
        """Slots that the latest Grant had to copy because others hold them too."""
        self._ids = 0
        self._admissions = 0

    @property
    def live(self) -> list[Sequence]:
        """Everyone that owns slots."""
        return [*self.running, *self.retired]

    def new_sequence(self, tokens: int) -> Sequence:
        """A sequence that has not been admitted."""
        self._ids += 1
        return Sequence(self._ids, tokens, None, tokens=tokens)

    def enter(self, sequence: Sequence, written: int) -> None:
        """It runs from now on."""
        sequence.admission = self._admissions
        self._admissions += 1
        self.running.append(sequence)
        self.written[sequence.id] = written

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        """Slots for some of the running requests, or for one that is admitted."""
        got = self.allocator.acquire(asks, decodes=decodes)
        if isinstance(got, Grant):
            writers = self.running if decodes else [ask.sequence for ask in asks]
            self.copies = sum(self.shares.write(s.id) for s in writers if s.decoding)
        return got

    def settle(self, chunks: list[Chunk], *, stalled: bool = False) -> bool:
        """The step is over."""
        came_free = self.allocator.settle(chunks, stalled=stalled)
        for sequence in () if stalled else self.running:
            self.written[sequence.id] += sequence.decoding
        self.shares.settle()
        for chunk in chunks:
            self.written[chunk.sequence.id] += chunk.tokens
        return came_free

    def begin_decode(self, sequence: Sequence) -> None:
        """Its known tokens but the last are written."""
        self.allocator.begin_decode(sequence)

    def fork(self, parent: Sequence, child: Sequence) -> int:
        """Where slots can be shared: `child` goes on from where `parent` is."""
        common = self.allocator.fork(parent, child)
        self.enter(child, self.written[parent.id])
        self.shares.fork(parent.id, child.id, self.written, common)
        return common

    def land(self, sequence: Sequence) -> None:
        """It is back with what it had written."""
        self.allocator.land(sequence)
        self.enter(sequence, sequence.written)

    def retire(self, sequence: Sequence) -> None:
        """It ends and keeps its slots."""
        self.allocator.retire(sequence)
        self.running.remove(sequence)
        self.retired.append(sequence)

    def release(self, sequence: Sequence, *, comes_again: bool = False) -> None:
        """It leaves; or it is preempted, and comes again."""
        (self.allocator.preempt if comes_again else self.allocator.release)(sequence)
        (self.running if sequence in self.running else self.retired).remove(sequence)
        del self.written[sequence.id]
        self.shares.leave(sequence.id)

    def apply(self, leap: Leap, steps: int, limit: int) -> None:
        """A leap of `steps` of the steps that `leap` offers for `limit`."""
        leap.apply(steps)
        for sequence in self.running:
            self.written[sequence.id] += steps

    def progress(self) -> dict[str, Any]:
        """How far it has come, read from nothing but its own books."""
        return {"who runs": sorted(self.written), "what is written": dict(self.written), "asks": self._ids}

    def state(self) -> dict[str, Any]:
        """Everything that can be read of the allocator, between steps."""
        allocator = self.allocator
        decodes = allocator.decodes
        state: dict[str, Any] = {
            "usage": allocator.usage(),
            "shared_slots": allocator.shared_slots,
            "the decode set": (decodes.clock, decodes.count, decodes.written, decodes.pairs),
            "what each request owns": [(s.id, allocator.owned(s)) for s in self.live],
            "what each request has written": [(s.id, decodes.written_of(s)) for s in self.live],
            "external": [allocator.external(need) for need in (1, self.longest // 2, self.longest)],
            "upkeep": astuple(allocator.upkeep),
        }
        if self.running and all(s.decoding for s in self.running):
            state["the steps of a leap"] = allocator.leap(self.longest).steps
        return state

"""A pseudo-random user of one allocator that keeps a scheduler's manners, so that any verb may be watched.

A step is: slots for everyone that runs (all together, or one by one with preemption), admissions
unless somebody was preempted, settle, begin_decode for whose prompt is complete, releases. While everyone decodes a
walk also leaps. It keeps its own count of what is written and trusts the allocator with nothing.
"""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Seq
from random import Random
from typing import Any

from kvsim.memory.interface import Allocator, Leap
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, Short

MakeAllocator = Callable[[int], Allocator]


class Walk:
    """Subclasses watch the verbs: `acquire`, `settle`, `begin_decode`, `release`, `apply`, and `rest` between steps.

    No sequence ever holds more than `longest` tokens. Two walks with the same seed on equal allocators do the same.
    """

    def __init__(self, allocator: Allocator, seed: int, longest: int) -> None:
        self.allocator = allocator
        self.longest = longest
        self.random = Random(seed)
        self.running: list[Sequence] = []
        """In admission order."""
        self.written: dict[int, int] = {}
        """Written tokens of each running sequence, counted here."""
        self._ends: dict[int, int] = {}
        self._waiting: list[Sequence] = []
        self._ids = 0
        self._admissions = 0

    def new_sequence(self, tokens: int) -> Sequence:
        """A sequence that has not been admitted."""
        self._ids += 1
        return Sequence(self._ids, tokens, None, tokens=tokens)

    # The verbs, to be watched.

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        """Slots for some of the running requests, or for one that is admitted."""
        return self.allocator.acquire(asks, decodes=decodes)

    def settle(self, chunks: list[Chunk]) -> bool:
        """The step is over."""
        came_free = self.allocator.settle(chunks)
        for sequence in self.running:
            self.written[sequence.id] += sequence.decoding
        for chunk in chunks:
            self.written[chunk.sequence.id] += chunk.tokens
        return came_free

    def begin_decode(self, sequence: Sequence) -> None:
        """Its known tokens are written, it samples one."""
        sequence.tokens += 1
        self.allocator.begin_decode(sequence)

    def release(self, sequence: Sequence) -> None:
        """It ends or is preempted."""
        self.allocator.release(sequence)
        self.running.remove(sequence)
        del self.written[sequence.id]

    def apply(self, leap: Leap, steps: int, limit: int) -> None:
        """A leap of `steps` of the steps that `leap` offers for `limit`."""
        leap.apply(steps)
        self._advance(steps)

    def rest(self) -> None:
        """Between two steps."""

    # The walk.

    def steps(self, count: int) -> Iterator[None]:
        """Yield after each of so many steps."""
        for _ in range(count):
            self.step()
            yield

    def step(self) -> None:
        """One step, and perhaps a leap after it."""
        chunks: list[Chunk] = []
        if not self._extend(chunks):
            self._admit(chunks)
        self.settle(chunks)
        for chunk in chunks:
            if self.written[chunk.sequence.id] == chunk.sequence.tokens:
                self.begin_decode(chunk.sequence)
        self._retire()
        self.rest()
        self._leap()

    def _extend(self, chunks: list[Chunk]) -> bool:
        """Slots for everyone that runs; True if somebody lost theirs."""
        wants = {}
        for sequence in self.running:
            left = sequence.tokens - self.written[sequence.id]
            wants[sequence.id] = 1 if sequence.decoding else self.random.randint(min(left, 1), left)
        asked = [s for s in self.running if not s.decoding and wants[s.id]]
        asks = [Ask(s, self.written[s.id] + wants[s.id]) for s in asked]
        if self.random.random() < 0.8 and isinstance(self.acquire(asks, decodes=True), Grant):
            chunks += [Chunk(s, wants[s.id], self.written[s.id]) for s in asked]
            return False
        lost = False
        for sequence in list(self.running):
            if sequence not in self.running or not wants[sequence.id]:
                continue
            written, want = self.written[sequence.id], wants[sequence.id]
            while isinstance(self.acquire((Ask(sequence, written + want),)), Short):
                lost = True
                victim = self.random.choice([self.running[-1], self.random.choice(self.running)])
                if len(self.running) > 1:
                    self._waiting.insert(0, victim)
                self.release(victim)
                victim.written = 0
                chunks[:] = [chunk for chunk in chunks if chunk.sequence is not victim]
                if victim is sequence:
                    break
            else:
                if not sequence.decoding:
                    chunks.append(Chunk(sequence, want, written))
        return lost

    def _admit(self, chunks: list[Chunk]) -> None:
        while self.random.random() < 0.6:
            sequence = self._waiting[0] if self._waiting else None
            if sequence is None:
                sequence = self.new_sequence(self.random.randint(1, self.random.randint(1, self.longest)))
                self._ends[sequence.id] = self.random.randint(sequence.tokens, self.longest)
            tokens = self.random.randint(1, sequence.tokens)
            gate = self.random.choice([0, sequence.tokens])
            alone = not self.running
            if isinstance(self.acquire((Ask(sequence, tokens, True, gate, alone),)), Short):
                return
            if self._waiting:
                del self._waiting[0]
            sequence.admission = self._admissions
            self._admissions += 1
            self.running.append(sequence)
            self.written[sequence.id] = 0
            chunks.append(Chunk(sequence, tokens, 0))

    def _retire(self) -> None:
        for sequence in list(self.running):
            if self.written[sequence.id] >= self._ends[sequence.id] or self.random.random() < 0.03:
                self.release(sequence)

    def _leap(self) -> None:
        if self.random.random() < 0.5 or not self.running or not all(s.decoding for s in self.running):
            return
        limit = min(self._ends[s.id] - self.written[s.id] for s in self.running)
        leap = self.allocator.leap(limit)
        if leap.steps > 0:
            self.apply(leap, self.random.randint(1, leap.steps), limit)
            self._retire()

    def _advance(self, steps: int) -> None:
        for sequence in self.running:
            self.written[sequence.id] += steps

    def progress(self) -> dict[str, Any]:
        """How far the walk has come, read from nothing but the walk itself."""
        return {"who runs": sorted(self.written), "what is written": dict(self.written), "asks": self._ids}

    def state(self) -> dict[str, Any]:
        """Everything that can be read of the allocator, between steps."""
        allocator = self.allocator
        decodes = allocator.decodes
        state: dict[str, Any] = {
            "usage": allocator.usage(),
            "the decode set": (decodes.clock, decodes.count, decodes.written),
            "what each request owns": [(s.id, allocator.owned(s)) for s in self.running],
            "what each request has written": [(s.id, decodes.written_of(s)) for s in self.running],
            "external": [allocator.external(need) for need in (1, self.longest // 2, self.longest)],
        }
        if self.running and all(s.decoding for s in self.running):
            state["the steps of a leap"] = allocator.leap(self.longest).steps
        return state


def pools(make: MakeAllocator, longest: int) -> Iterator[Callable[[], Allocator]]:
    """Makers of fresh allocators, from room for one of the longest sequences to room for many."""
    whole = make(1 << 20).capacity(longest)
    for slots in (whole, 2 * whole, 7 * whole // 2, 9 * whole):
        yield lambda slots=slots: make(slots)  # type: ignore[misc]


WALKS = 3
"""Walks through each pool."""

STEPS = 60
"""Steps of a walk."""


def walk(kind: type[Walk], make: MakeAllocator, longest: int) -> Iterator[Walk]:
    """A walk of one kind through every pool; yields it after each step."""
    for fresh in pools(make, longest):
        for seed in range(WALKS):
            walker = kind(fresh(), seed, longest)
            for _ in walker.steps(STEPS):
                yield walker


def side_by_side(one: type[Walk], other: type[Walk], make: MakeAllocator, longest: int) -> Iterator[tuple[Walk, Walk]]:
    """Two walks of two kinds that do the same on equal pools; yields both after each step."""
    for fresh in pools(make, longest):
        for seed in range(WALKS):
            walkers = one(fresh(), seed, longest), other(fresh(), seed, longest)
            for _ in zip(*(walker.steps(STEPS) for walker in walkers), strict=True):
                yield walkers

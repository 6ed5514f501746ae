"""A pseudo-random user of one allocator that keeps a scheduler's manners.

A step is: slots for everyone that runs (all together, or one by one with preemption), then, unless somebody was
preempted, those that come back from host memory and new ones; settle; begin_decode for whose prompt is complete, with
samples that fork off; releases. Or it is a stalled one, in which only prompts are computed. While everyone decodes a
walk also leaps. Where slots can be shared, decoding sequences fork and are dropped as beams are; where contents are
kept, whoever was preempted and finds a part of itself again computes the rest.
"""

from collections.abc import Callable, Iterator

from kvsim.memory.interface import Allocator
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, Short
from kvsim.testing.allocators.user import User

MakeAllocator = Callable[[int], Allocator]


class Walk(User):
    """Two walks with the same seed on equal allocators do the same. Subclasses watch the verbs, and `rest`."""

    def __init__(self, allocator: Allocator, seed: int, longest: int) -> None:
        super().__init__(allocator, seed, longest)
        self._ends: dict[int, int] = {}
        self._waiting: list[Sequence] = []
        self._swapped: list[Sequence] = []

    def rest(self) -> None:
        """Between two steps."""

    def steps(self, count: int) -> Iterator[None]:
        """Yield after each of so many steps."""
        for _ in range(count):
            self.step()
            yield

    def chance(self, share: float) -> bool:
        """True in so many of all cases."""
        return self.random.random() < share

    def step(self) -> None:
        """One step, and perhaps a leap after it."""
        chunks: list[Chunk] = []
        stalled = self.chance(0.1)
        if stalled:
            self._admit(chunks)
        elif not self._extend(chunks):
            self._swap_in()
            self._admit(chunks)
        self.settle(chunks, stalled=stalled)
        for chunk in chunks:
            if self.written[chunk.sequence.id] == chunk.sequence.tokens:
                self._sample(chunk.sequence)
        self._branch()
        self._end()
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
        if self.chance(0.8) and self._extend_together(asks, one_by_one=self.chance(0.2)):
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
                self._preempt(victim, for_good=len(self.running) == 1)
                chunks[:] = [chunk for chunk in chunks if chunk.sequence is not victim]
                if victim is sequence:
                    break
            else:
                if not sequence.decoding:
                    chunks.append(Chunk(sequence, want, written))
        return lost

    def _extend_together(self, asks: list[Ask], *, one_by_one: bool) -> bool:
        """Everyone's slots in one call, in which those that decode may ask one by one."""
        if one_by_one:
            asks = asks + [Ask(s, self.written[s.id] + 1) for s in self.running if s.decoding]
            asks.sort(key=lambda ask: ask.sequence.admission)
        return isinstance(self.acquire(asks, decodes=not one_by_one), Grant)

    def _preempt(self, victim: Sequence, for_good: bool) -> None:
        self.release(victim, comes_again=not for_good)
        if for_good:
            return
        if victim.written and self.chance(0.5):
            self._swapped.append(victim)
        else:
            victim.written = 0
            self._waiting.insert(0, victim)

    def _swap_in(self) -> None:
        while self._swapped and self.chance(0.6):
            sequence = self._swapped[0]
            tokens = min(sequence.written + 1, sequence.tokens)
            if isinstance(self.acquire((Ask(sequence, tokens, True, tokens, not self.live),)), Short):
                return
            del self._swapped[0]
            self.land(sequence)
            if sequence.written + 1 == sequence.tokens:
                self.begin_decode(sequence)

    def _admit(self, chunks: list[Chunk]) -> None:
        while self.chance(0.6):
            sequence = self._waiting[0] if self._waiting else None
            if sequence is None:
                sequence = self.new_sequence(self.random.randint(1, self.random.randint(1, self.longest)))
                self._ends[sequence.id] = self.random.randint(sequence.tokens, self.longest)
            hit = self.allocator.lookup(sequence)
            tokens = hit + self.random.randint(1, sequence.tokens - hit)
            gate = self.random.choice([0, sequence.tokens])
            if isinstance(self.acquire((Ask(sequence, tokens, True, gate, not self.live),)), Short):
                return
            if self._waiting:
                del self._waiting[0]
            self.enter(sequence, hit)
            chunks.append(Chunk(sequence, tokens - hit, hit))

    def _sample(self, sequence: Sequence) -> None:
        """Its prompt is complete: it decodes, and so do samples that fork off it."""
        sequence.tokens += 1
        family = [sequence]
        while self.allocator.shares and len(family) < 4 and self.chance(0.2):
            child = self.new_sequence(sequence.prompt_tokens)
            family.append(child)
            self._ends[child.id] = self.random.randint(self.written[sequence.id], self.longest)
            self.fork(sequence, child)
        for member in family:
            self.begin_decode(member)

    def _branch(self) -> None:
        """A beam forks, into a new sequence or in place of another one."""
        beams = [s for s in self.running if s.decoding]
        while self.allocator.shares and beams and len(self.running) < 12 and self.chance(0.3):
            parent, child = self.random.choice(beams), self.random.choice(beams)
            if child is parent:
                child = self.new_sequence(parent.prompt_tokens)
            else:
                self.release(child)
                beams.remove(child)
            self._ends[child.id] = self.random.randint(self.written[parent.id], self.longest)
            self.fork(parent, child)

    def _end(self) -> None:
        for sequence in [s for s in self.retired if self.chance(0.3)]:
            self.release(sequence)
        for sequence in list(self.running):
            if self.written[sequence.id] >= self._ends[sequence.id]:
                alone = self.shares.alone(sequence.id, self.written) and not self.allocator.caches
                stays = sequence.decoding and alone and self.chance(0.3)
                (self.retire if stays else self.release)(sequence)
            elif self.chance(0.03):
                self._preempt(sequence, for_good=self.chance(0.5))

    def _leap(self) -> None:
        if self.chance(0.5) or not self.running or not all(s.decoding for s in self.running):
            return
        limit = min(self._ends[s.id] - self.written[s.id] for s in self.running)
        leap = self.allocator.leap(limit)
        if leap.steps > 0:
            self.apply(leap, self.random.randint(1, leap.steps), limit)
            self._end()


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

"""Allocators against naive dictionaries: any order of admissions, extensions, decode steps, leaps and releases.

The models keep a block count per request, or the owner of every single slot; what the allocator answers to each call
and what it says of itself must be what the model finds by looking.
"""

from copy import deepcopy
from itertools import groupby

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kvsim.errors import CheckError
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, PoolUse, Short

LONGEST = 24
"""No request holds more tokens."""


class Blocks:
    """How many blocks each request owns."""

    def __init__(self, slots, size, watermark):
        self.size, self.total = size, slots // size
        self.slots, self.spare = self.total * size, int(watermark * (self.total + 1))  # a null block beside it
        self.owners = {}

    def free(self):
        return (self.total - sum(self.owners.values())) * self.size

    def largest(self):
        return self.free()

    def external(self, need):
        return 0

    def owned(self, id_):
        return self.owners.get(id_, 0) * self.size

    def grow(self, id_, tokens, *, admit=False, gate=0, known=0, alone=False, written=0):
        """None and the blocks are had, or the slots that are needed and cannot be had."""
        more = max(0, -(-tokens // self.size) * self.size - self.owned(id_))
        need = more
        if admit:
            gate = -(-gate // self.size) * self.size - self.owned(id_)
            need = max(more, gate) + (0 if alone else self.spare * self.size)
        if need > self.free():
            return need
        self.owners[id_] = self.owners.get(id_, 0) + more // self.size
        return None

    def settle(self):
        pass

    def release(self, id_):
        del self.owners[id_]


class Cells:
    """Who owns each slot of the address space."""

    def __init__(self, slots, capacity):
        self.slots, self.capacity = slots, capacity
        self.cells = [None] * slots
        self.moved = 0

    def holes(self):
        runs = [(owner, len(list(cells))) for owner, cells in groupby(self.cells)]
        return [length for owner, length in runs if owner is None]

    def free(self):
        return self.cells.count(None)

    def largest(self):
        return max(self.holes(), default=0)

    def external(self, need):
        return sum(hole for hole in self.holes() if hole < min(need, self.free()))

    def owned(self, id_):
        return self.cells.count(id_)

    def grow(self, id_, tokens, *, admit=False, gate=0, known=0, alone=False, written=0):
        owned = self.owned(id_)
        if tokens <= owned:
            return None
        need = self.capacity(max(tokens, gate, known if admit else 0))
        if owned:
            start = self.cells.index(id_)
            behind = self.cells[start + owned : start + need]
            if len(behind) == need - owned and set(behind) == {None}:
                self.cells[start : start + need] = [id_] * need
                return None
        places = range(self.slots - need + 1)
        start = next((at for at in places if set(self.cells[at : at + need]) == {None}), None)
        if start is None:
            return need
        self.cells = ["source" if owner == id_ else owner for owner in self.cells]
        self.cells[start : start + need] = [id_] * need
        self.moved += written if owned else 0
        return None

    def settle(self):
        self.cells = [None if owner == "source" else owner for owner in self.cells]
        self.moved = 0

    def release(self, id_):
        self.cells = [None if owner == id_ else owner for owner in self.cells]


def paged(size, watermark=0.0):
    def make(slots):
        slots = max(slots, size)
        return PagedAllocator(slots, block_size=size, watermark=watermark), Blocks(slots, size, watermark)

    return make


def contiguous(chunk):
    return lambda slots: (
        ContiguousAllocator(slots, chunk=chunk),
        Cells(slots, lambda tokens: -(-tokens // chunk) * chunk),
    )


def reserve(slots):
    return ReserveAllocator(slots, max_model_len=LONGEST), Cells(slots, lambda tokens: LONGEST)


PAIRS = {
    "paged-1": paged(1),
    "paged-4": paged(4),
    "paged-5-watermark": paged(5, 0.2),
    "paged-16": paged(16),
    "contiguous-1": contiguous(1),
    "contiguous-4": contiguous(4),
    "reserve": reserve,
}


class AllocatorMachine(RuleBasedStateMachine):
    def __init__(self, make):
        super().__init__()
        self.make = make

    @initialize(slots=st.integers(LONGEST, 5 * LONGEST))
    def fresh(self, slots):
        self.allocator, self.model = self.make(slots)
        self.running, self.written, self.chunks = [], {}, {}
        self.ids = self.used = self.moving = 0

    def ask(self, asks, decodes=False):
        """The same call to both; True if both grant it."""
        model, short = deepcopy(self.model), None
        everyone = [*asks]
        if decodes:
            everyone += [Ask(s, self.written[s.id] + 1) for s in self.running if s.decoding]
            everyone.sort(key=lambda ask: (isinstance(model, Cells), ask.sequence.admission))
        for sequence, tokens, admit, gate, alone in everyone:
            written = self.written.get(sequence.id, 0)
            options = {"admit": admit, "gate": gate, "known": sequence.tokens, "alone": alone}
            short = model.grow(sequence.id, tokens, written=written, **options)
            if short is not None:
                break
        got = self.allocator.acquire(asks, decodes=decodes)
        if short is None:
            assert isinstance(got, Grant)
            assert got.copied_slots == getattr(model, "moved", 0) - getattr(self.model, "moved", 0)
            self.model = model
            return True
        assert isinstance(got, Short)
        if len(everyone) == 1:
            cause = "capacity" if short > self.model.free() else "fragmentation"
            assert got == Short(cause, short, self.model.free(), self.model.largest())
        return False

    def decoding(self):
        return [s for s in self.running if s.decoding]

    @rule(
        prompts=st.lists(st.tuples(st.integers(1, LONGEST - 1), st.integers(1, LONGEST)), min_size=1, max_size=3),
        gated=st.booleans(),
    )
    def admit(self, prompts, gated):
        """One new request, or several in one call: all of them or none."""
        asks = []
        for tokens, part in prompts:
            self.ids += 1
            sequence = Sequence(self.ids, tokens, None, tokens=tokens, admission=self.ids)
            alone = not (self.running or asks)
            asks.append(Ask(sequence, min(part, tokens), True, tokens if gated else 0, alone))
        if self.ask(asks):
            for ask in asks:
                self.running.append(ask.sequence)
                self.written[ask.sequence.id] = 0
                self.chunks[ask.sequence.id] = Chunk(ask.sequence, ask.tokens, 0)

    @rule(data=st.data())
    def extend(self, data):
        """Those that compute a prompt ask for their next chunks, all in one call."""
        asks, chunks = [], {}
        for sequence in self.running:
            left = sequence.tokens - self.written[sequence.id]
            if not sequence.decoding and sequence.id not in self.chunks:
                chunk = data.draw(st.integers(1, left))
                asks.append(Ask(sequence, self.written[sequence.id] + chunk))
                chunks[sequence.id] = Chunk(sequence, chunk, self.written[sequence.id])
        if asks and self.ask(asks):
            self.chunks |= chunks

    @rule(data=st.data(), together=st.booleans())
    def step(self, data, together):
        """Everyone decodes, whatever chunks were granted are computed; somebody loses their slots if need be."""
        if together:
            while not self.ask([], decodes=True):
                self.drop(data.draw(st.sampled_from(self.running)))
        else:
            for sequence in self.decoding():
                while sequence in self.running and not self.ask([Ask(sequence, self.written[sequence.id] + 1)]):
                    self.drop(data.draw(st.sampled_from(self.running)))
        self.compare_usage()
        free = self.model.free()
        self.model.settle()
        assert self.allocator.settle(list(self.chunks.values())) == (self.model.free() > free)
        for sequence in self.decoding():
            self.written[sequence.id] += 1
        for sequence, tokens, _ in self.chunks.values():
            self.written[sequence.id] += tokens
            if self.written[sequence.id] == sequence.tokens:
                sequence.tokens += 1
                self.allocator.begin_decode(sequence)
        self.chunks = {}
        self.end_the_longest()

    def end_the_longest(self):
        for sequence in self.decoding():
            if self.written[sequence.id] == LONGEST:
                self.drop(sequence)

    def drop(self, sequence):
        self.allocator.release(sequence)
        self.model.release(sequence.id)
        self.running.remove(sequence)
        self.chunks.pop(sequence.id, None)
        del self.written[sequence.id]

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data):
        self.drop(data.draw(st.sampled_from(self.running)))

    @precondition(lambda self: self.running)
    @rule()
    def preempt(self):
        self.drop(self.running[-1])

    @rule()
    def release_a_stranger(self):
        with pytest.raises(CheckError):
            self.allocator.release(Sequence(self.ids + 1, 1, None, tokens=1))

    @precondition(lambda self: self.running and len(self.decoding()) == len(self.running))
    @rule(data=st.data(), a=st.integers(0, 10**6), b=st.integers(0, 10**3))
    def leap(self, data, a, b):
        limit = data.draw(st.integers(1, LONGEST - max(self.written.values())))
        leap = self.allocator.leap(limit)
        levels, end = [], deepcopy(self.model)
        for step in range(limit):
            before = end.free()
            needs = [end.grow(s.id, self.written[s.id] + step + 1) for s in self.running]
            if any(needs) or (isinstance(end, Cells) and (end.free() != before or "source" in end.cells)):
                break
            levels.append(sum(end.owned(s.id) - self.written[s.id] - step for s in self.running))
        assert leap.steps == len(levels)
        if not levels:
            return
        steps = data.draw(st.integers(1, len(levels)))
        first = data.draw(st.integers(0, steps - 1))
        assert leap.use_at(first).unwritten == levels[first]
        assert leap.use_at(first).used == sum(self.written.values()) + first * len(self.running)
        weighted = sum((a + b * step) * level for step, level in enumerate(levels[:steps]))
        assert leap.unwritten_sum(steps, a, b) == weighted
        assert leap.unwritten_peak(first, steps) == max(levels[first:steps])
        assert leap.bound >= max(levels)
        leap.apply(steps)
        for step in range(steps):
            assert not any(self.model.grow(s.id, self.written[s.id] + step + 1) for s in self.running)
        for sequence in self.running:
            self.written[sequence.id] += steps
        self.end_the_longest()

    def compare_usage(self):
        used, free = sum(self.written.values()), self.model.free()
        moving = getattr(self.model, "moved", 0)
        unwritten = self.model.slots - used - free - moving
        largest = self.model.largest()
        assert self.allocator.usage() == PoolUse(used, unwritten, 0, moving, 0, free, largest)
        assert min(self.allocator.usage()) >= 0
        for need in (1, 3, 4, LONGEST, self.model.slots):
            assert self.allocator.external(need) == self.model.external(need)

    @invariant()
    def agrees_with_the_model(self):
        self.compare_usage()
        for sequence in self.running:
            assert self.allocator.owned(sequence) == self.model.owned(sequence.id)
            assert self.allocator.decodes.written_of(sequence) == self.written[sequence.id]
        assert self.allocator.decodes.count == len(self.decoding())
        assert self.allocator.decodes.written == sum(self.written[s.id] for s in self.decoding())
        self.allocator.audit(self.running)


@pytest.mark.parametrize("pair", PAIRS)
def test_an_allocator_agrees_with_naive_books_whatever_is_done_to_it(pair):
    run_state_machine_as_test(
        lambda: AllocatorMachine(PAIRS[pair]),
        settings=settings(
            max_examples=50,
            stateful_step_count=40,
            deadline=None,
            database=None,
            phases=(Phase.generate,),  # a failing run is short enough, and shrinking it takes minutes
            suppress_health_check=list(HealthCheck),
        ),
    )

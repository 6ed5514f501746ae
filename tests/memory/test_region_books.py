"""Region allocators against naive books: a letter for every slot, and everything found by looking at all of them.

The books know nothing of holes, snapshots or heaps. They are made by the rules as they are documented, for any order of
admissions, steps, leaps and releases.
"""

from copy import deepcopy
from itertools import groupby, pairwise

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, PoolUse, Short

LONGEST = 24
"""No request holds more tokens."""
POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Books:
    """`places` says where each region lies: name -> (start, room, slots asked). A name is a request's or `copy n`."""

    def __init__(self, slots, sizes, fit="first", unit=1, in_place=True, parts=1, compaction=False):
        self.slots, self.sizes, self.fit, self.unit = slots, sizes, fit, unit
        self.in_place, self.parts, self.compaction = in_place, parts, compaction
        self.places, self.moving = {}, {}
        self.rover = self.copies = self.copied = 0
        self.compacted = []

    # Where things lie.

    def room(self, slots):
        if self.fit == "buddy":
            return next(power for power in POWERS if power >= slots)
        return next(room for room in range(0, 4 * self.slots + LONGEST, self.unit) if room >= slots)

    def cells(self):
        cells = [None] * self.slots
        for name, (start, room, _) in self.places.items():
            assert cells[start : start + room] == [None] * room, "two owners"
            cells[start : start + room] = [name] * room
        return cells

    def holes(self):
        if self.fit == "buddy":
            return self.blocks()
        holes, at = [], 0
        for owner, run in groupby(self.cells()):
            length = len(list(run))
            holes += [(at, length)] if owner is None else []
            at += length
        return holes

    def blocks(self):
        """The free blocks of a pool that is the greedy sum of powers of two."""
        cells, pieces, free, start = self.cells(), [], [], 0
        while start < self.slots:
            length = max(power for power in POWERS if start + power <= self.slots)
            pieces.append((start, length))
            start += length
        while pieces:
            start, length = pieces.pop()
            owners = set(cells[start : start + length])
            if owners == {None}:
                free.append((start, length))
            elif None in owners:
                pieces += [(start, length // 2), (start + length // 2, length // 2)]
        return sorted(free)

    def free(self):
        return self.cells().count(None)

    def largest(self):
        return max((length for _, length in self.holes()), default=0)

    def rounding(self):
        return sum(room - slots for _, room, slots in self.places.values())

    def external(self, need):
        limit = min(self.room(need), self.free())
        return self.rounding() + sum(length for _, length in self.holes() if length < limit)

    def place(self, slots):
        """Where a region of `slots` goes; None if nowhere."""
        room = self.room(slots)
        fitting = [hole for hole in self.holes() if hole[1] >= room]
        if not fitting:
            return None
        if self.fit in ("best", "buddy"):
            return min(fitting, key=lambda hole: (hole[1], hole[0]))[0]
        if self.fit == "worst":
            return min(fitting, key=lambda hole: (-hole[1], hole[0]))[0]
        if self.fit == "next":
            return next((hole for hole in fitting if hole[0] + hole[1] > self.rover), fitting[0])[0]
        return fitting[0][0]

    def take(self, name, slots):
        start = self.place(slots)
        if start is None:
            return False
        self.places[name] = (start, self.room(slots), slots)
        self.rover = start + self.room(slots)
        return True

    def owned(self, name):
        return self.places[name][2] if name in self.places else 0

    # What can be done.

    def grow(self, name, tokens, written, admit=None):
        """`admit`: all tokens known at admission. None, or (need, free, largest hole) that were short."""
        if tokens <= self.owned(name):
            return None
        slots = self.sizes(admit or tokens)
        short = self.try_to(name, slots, written)
        if short and self.compaction and short[0] <= short[1]:
            self.compact(name)
            self.compacted.append((name, short))
            short = self.try_to(name, slots, written)
        return short

    def try_to(self, name, slots, written):
        mine = self.places.get(name)
        if mine is None:
            return None if self.take(name, slots) else (self.room(slots), self.free(), self.largest())
        if self.parts > 1:
            return self.concatenate(name, slots, written[name])
        start, room, _ = mine
        if self.in_place and self.could_be(name, start, self.room(slots), room):
            self.places[name] = (start, self.room(slots), slots)
            return None
        if not self.take("new", slots):
            return (self.room(slots), self.free(), self.largest())
        self.copies += 1
        self.places[f"copy {self.copies}"] = mine
        self.moving[f"copy {self.copies}"] = written[name]
        self.places[name] = self.places.pop("new")
        self.copied += written[name]
        return None

    def could_be(self, name, start, larger, room):
        """Whether a region may reach from its start over `larger` slots."""
        if larger == room:
            return True
        behind = self.cells()[start + room : start + larger]
        if len(behind) < larger - room or set(behind) != {None}:
            return False
        if self.fit != "buddy":
            return True
        # Aligned, and all in one of the blocks that make up the pool: the bits of its size say which there are.
        roots, at = [], 0
        while at < self.slots:
            length = max(power for power in POWERS if at + power <= self.slots)
            roots.append((at, at + length))
            at += length
        return start % larger == 0 and any(low <= start and start + larger <= high for low, high in roots)

    def concatenate(self, name, slots, written):
        part = -(-written // self.parts)
        larger = part > max(self.moving.values(), default=0)
        before = dict(self.places), self.rover
        del self.places[name]
        if larger:
            self.places.pop("copy", None)
        need = self.room(slots) + (self.room(part) if larger else 0)
        there = need, self.free(), self.largest()
        if self.take(name, slots) and (not larger or self.take("copy", part)):
            self.copied += written
            if larger:
                self.moving = {"copy": part}
            return None
        self.places, self.rover = before
        return there

    def compact(self, name):
        """Requests in the order of their addresses, then what is being copied away, then the one that must grow."""
        requests = [n for n in self.places if isinstance(n, int) and n != name]
        order = sorted(requests, key=self.places.get)
        order += sorted((n for n in self.places if isinstance(n, str)), key=self.places.get)
        order += [name] if name in self.places else []
        end = 0
        for one in order:
            start, room, slots = self.places[one]
            if isinstance(one, int) and start != end:
                self.copied += self.written[one]
            self.places[one] = (end, room, slots)
            end += room
        self.rover = end

    def settle(self):
        for name in self.moving:
            del self.places[name]
        self.moving = {}


def contiguous(**options):
    growth, chunk = options.get("growth", "chunk"), options.get("chunk", 1)

    def sizes(tokens):
        if growth == "double":
            return next(power for power in POWERS if power >= tokens)
        return next(slots for slots in range(0, 4 * LONGEST, chunk) if slots >= tokens)

    def make(slots):
        return ContiguousAllocator(slots, **{"chunk": chunk} | options), Books(
            slots,
            sizes,
            fit=options.get("fit", "first"),
            unit=options.get("rounding_slots", 1),
            in_place=growth != "cat",
            parts=options.get("tensors", 1),
            compaction="compaction" in options,
        )

    return make


def reserve(fit, size):
    def make(slots):
        sizes = {"max": lambda tokens: LONGEST}.get(size, lambda tokens: tokens)
        return ReserveAllocator(slots, max_model_len=LONGEST, fit=fit, size=size), Books(slots, sizes, fit=fit)

    return make


PAIRS = {
    "best, chunk": contiguous(fit="best", chunk=4),
    "worst, exact": contiguous(fit="worst", growth="exact"),
    "next, chunk": contiguous(fit="next", chunk=3),
    "next, double": contiguous(fit="next", growth="double"),
    "buddy, chunk": contiguous(fit="buddy", chunk=3),
    "buddy, double": contiguous(fit="buddy", growth="double"),
    "buddy, exact": contiguous(fit="buddy", growth="exact"),
    "buddy, cat": contiguous(fit="buddy", growth="cat"),
    "first, double, rounded": contiguous(growth="double", rounding_slots=3),
    "first, cat": contiguous(growth="cat"),
    "first, cat by tensors": contiguous(growth="cat", tensors=4),
    "best, cat by tensors, rounded": contiguous(fit="best", growth="cat", tensors=3, rounding_slots=3),
    "first, chunk, compacted": contiguous(chunk=3, compaction="on-failure"),
    "next, double, compacted": contiguous(fit="next", growth="double", compaction="on-failure"),
    "worst, exact, rounded, compacted": contiguous(
        fit="worst", growth="exact", rounding_slots=4, compaction="on-failure"
    ),
    "best, cat, compacted": contiguous(fit="best", growth="cat", compaction="on-failure"),
    "first, cat by tensors, compacted": contiguous(growth="cat", tensors=4, compaction="on-failure"),
    "reserve max, buddy": reserve("buddy", "max"),
    "reserve oracle, best": reserve("best", "oracle"),
    "reserve pow2, buddy": reserve("buddy", "pow2"),
}


class RegionMachine(RuleBasedStateMachine):
    def __init__(self, make):
        super().__init__()
        self.make = make

    @initialize(slots=st.integers(LONGEST, 5 * LONGEST))
    def fresh(self, slots):
        self.allocator, self.books = self.make(slots)
        self.running, self.written, self.chunks, self.ids = [], {}, {}, 0

    def ask(self, asks, decodes=False):
        """The same call to both; True if both grant it."""
        books = deepcopy(self.books)
        books.written, books.copied, books.compacted, short = self.written, 0, [], None
        everyone = [*asks]
        if decodes:
            everyone += [Ask(s, self.written[s.id] + 1) for s in self.running if s.decoding]
            everyone.sort(key=lambda ask: ask.sequence.admission)
        for sequence, tokens, admit, _, _ in everyone:
            known = max(sequence.tokens, sequence.declared) if admit else None
            books.written = {**self.written, **({sequence.id: 0} if admit else {})}
            short = books.grow(sequence.id, tokens, books.written, known)
            if short:
                break
        got = self.allocator.acquire(asks, decodes=decodes)
        if not short:
            assert isinstance(got, Grant)
            assert got.copied_slots == books.copied
            told = [(one.sequence.id, one.short, one.outcome) for one in got.compacted]
            assert told == [(n, Short("fragmentation", *numbers), "compact") for n, numbers in books.compacted]
            self.books = books
            return True
        assert isinstance(got, Short)
        assert got == Short("capacity" if short[0] > short[1] else "fragmentation", *short)
        return False

    def decoding(self):
        return [s for s in self.running if s.decoding]

    @rule(tokens=st.integers(1, LONGEST - 1), part=st.integers(1, LONGEST), output=st.integers(1, LONGEST))
    def admit(self, tokens, part, output):
        self.ids += 1
        declared = self.allocator.declare(tokens, min(output, LONGEST - tokens))
        sequence = Sequence(self.ids, tokens, None, tokens=tokens, declared=declared, admission=self.ids)
        chunk = min(part, tokens)
        if self.ask([Ask(sequence, chunk, admit=True, alone=not self.running)]):
            self.running.append(sequence)
            self.written[sequence.id] = 0
            self.chunks[sequence.id] = Chunk(sequence, chunk, 0)

    @rule()
    def extend(self):
        """Those that compute a prompt ask for the rest of it, all in one call."""
        late = [s for s in self.running if not s.decoding and s.id not in self.chunks]
        if late and self.ask([Ask(s, s.tokens) for s in late]):
            self.chunks |= {s.id: Chunk(s, s.tokens - self.written[s.id], self.written[s.id]) for s in late}

    @rule(together=st.booleans())
    def step(self, together):
        """Everyone decodes and the granted chunks are computed; the last admitted lose theirs if need be."""
        if together:
            while not self.ask([], decodes=True):
                self.drop(self.running[-1])
        else:
            for sequence in self.decoding():
                while sequence in self.running and not self.ask([Ask(sequence, self.written[sequence.id] + 1)]):
                    self.drop(self.running[-1])
        self.agrees_with_the_books()
        free = self.books.free()
        self.books.settle()
        assert self.allocator.settle(list(self.chunks.values())) == (self.books.free() > free)
        for sequence in self.decoding():
            self.written[sequence.id] += 1
        for sequence, tokens, _ in self.chunks.values():
            self.written[sequence.id] += tokens
            if self.written[sequence.id] == sequence.tokens:
                sequence.tokens += 1
                self.allocator.begin_decode(sequence)
        self.chunks = {}
        for sequence in self.decoding():
            if self.written[sequence.id] == LONGEST:
                self.drop(sequence)

    def drop(self, sequence):
        self.allocator.release(sequence)
        del self.books.places[sequence.id]
        self.running.remove(sequence)
        self.chunks.pop(sequence.id, None)
        del self.written[sequence.id]

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data):
        self.drop(data.draw(st.sampled_from(self.running)))

    @precondition(lambda self: self.running and not self.books.moving and len(self.decoding()) == len(self.running))
    @rule(data=st.data())
    def leap(self, data):
        limit = data.draw(st.integers(1, LONGEST - max(self.written.values())))
        full = min(self.books.owned(s.id) - self.written[s.id] for s in self.running)
        leap = self.allocator.leap(limit)
        assert leap.steps == min(limit, full)
        if leap.steps:
            steps = data.draw(st.integers(1, leap.steps))
            leap.apply(steps)
            for sequence in list(self.running):
                self.written[sequence.id] += steps
                if self.written[sequence.id] == LONGEST:
                    self.drop(sequence)

    @invariant()
    def agrees_with_the_books(self):
        books, use = self.books, self.allocator.usage()
        used, moving = sum(self.written.values()), sum(books.moving.values())
        unwritten = sum(slots for _, _, slots in books.places.values()) - used - moving
        assert use == PoolUse(used, unwritten, 0, moving, 0, books.free(), books.largest(), books.rounding())
        assert min(use) >= 0
        assert sum(use) - use.largest_hole == books.slots
        for need in (1, 3, LONGEST, books.slots):
            assert self.allocator.external(need) == books.external(need)
        for sequence in self.running:
            assert self.allocator.owned(sequence) == books.owned(sequence.id)
            assert self.allocator.decodes.written_of(sequence) == self.written[sequence.id]
        edges = sorted((start, start + room) for start, room, _ in books.places.values())
        assert all(end <= start for (_, end), (start, _) in pairwise(edges))
        self.allocator.audit(self.running)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_region_allocator_agrees_with_naive_books_whatever_is_done_to_it(pair):
    run_state_machine_as_test(
        lambda: RegionMachine(PAIRS[pair]),
        settings=settings(
            max_examples=40,
            stateful_step_count=30,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

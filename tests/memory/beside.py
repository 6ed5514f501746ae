"""An allocator with its naive model beside it: every verb is done to both, and they must agree after each."""

from dataclasses import asdict
from itertools import pairwise

from kvsim.step import Ask, Grant, PoolUse, Short
from tests.memory.naive_blocks import NaiveBlocks
from tests.memory.naive_regions import NaiveRegions
from tests.memory.prefix.naive_tables import NaivePrefix
from tests.memory.radix.audit import audit
from tests.memory.radix.naive_rows import NaiveRadix

WEIGHTS = ((1, 0), (0, 1), (10**12 + 7, 10**9 + 1))
"""(a, b) of the weighted sums of a leap."""


class Beside:
    """To be used like the allocator; whatever is not a verb is the allocator's."""

    def __init__(self, allocator, model):
        self.allocator, self.model = allocator, model
        self.live, self.landing = {}, set()

    def __getattr__(self, name):
        return getattr(self.allocator, name)

    def decoding(self):
        return [s for s in self.live.values() if s.decoding]

    def acquire(self, asks, *, decodes=False):
        model, written, short = self.model.copy(), self.model.written, None
        model.begin()
        brought = [ask.sequence.written for ask in asks]
        for ask in asks:
            if ask.admit:
                model.meet(ask.sequence)
        everyone = [*asks]
        if decodes:
            everyone += [Ask(s, written[s.id] + 1) for s in self.decoding()]
            everyone.sort(key=lambda ask: ask.sequence.admission)
        for sequence, tokens, admit, gate, alone in everyone:
            short = model.grow(sequence.id, tokens, admit=admit, gate=gate, alone=alone, reach=sequence.reach)
            if short is not None:
                break
        got = self.allocator.acquire(asks, decodes=decodes)
        assert isinstance(got, Short if short else Grant)
        if short is None:
            model.granted()
            slid = [(one.sequence.id, one.short[1:], one.outcome) for one in got.compacted]
            assert slid == [(name, numbers, "compact") for name, numbers in model.compacted]
            assert got[:2] == (model.copied, model.pages)
            self.model = model
            for (sequence, _, admit, *_), written in zip(asks, brought, strict=True):
                if admit:
                    self.live[sequence.id] = sequence
                    # What it finds is written; what it brings along has yet to land.
                    model.enter(sequence.id, sequence.written - written)
                    if written:
                        self.landing.add(sequence.id)
        elif len(everyone) == 1:
            assert got == Short("capacity" if short[0] > short[1] else "fragmentation", *short)
        self.compare()
        return got

    def settle(self, chunks, *, stalled=False):
        free, kept, decoding = self.model.free(), self.model.kept(), self.decoding()
        self.model.settle()
        came_free = self.allocator.settle(chunks, stalled=stalled)
        for sequence in () if stalled else decoding:
            self.model.write(sequence.id, 1)
        for sequence, tokens, _ in chunks:
            self.model.write(sequence.id, tokens)
            self.model.computed(sequence.id)
        assert came_free == (self.model.free() > free or self.model.kept() > kept)
        self.compare()
        return came_free

    def lookup(self, sequence):
        hit = self.allocator.lookup(sequence)
        self.model.meet(sequence)
        assert hit == self.model.lookup(sequence.id)
        return hit

    def begin_decode(self, sequence):
        self.allocator.begin_decode(sequence)
        self.model.begin_decode(sequence.id)
        self.compare()

    def land(self, sequence):
        self.allocator.land(sequence)
        self.model.write(sequence.id, sequence.written)
        self.landing.discard(sequence.id)
        self.compare()

    def fork(self, parent, child):
        common = self.allocator.fork(parent, child)
        assert common == self.model.fork(parent.id, child.id)
        self.live[child.id] = child
        self.compare()
        return common

    def retire(self, sequence):
        self.allocator.retire(sequence)
        assert not sequence.decoding
        self.model.retire(sequence.id)
        self.compare()

    def release(self, sequence):
        self.allocator.release(sequence)
        assert (sequence.decoding, sequence.written) == (False, self.model.written[sequence.id])
        self.model.release(sequence.id)
        del self.live[sequence.id]
        self.compare()

    def preempt(self, sequence):
        self.allocator.preempt(sequence)
        assert (sequence.decoding, sequence.written) == (False, self.model.written[sequence.id])
        self.model.preempt(sequence.id)
        del self.live[sequence.id]
        self.compare()

    def in_order(self):
        return sorted(self.decoding(), key=lambda sequence: sequence.admission)

    def hit_lasts(self, sequence, limit):
        """For steps that a leap could take."""
        lasts, model = self.allocator.hit_lasts(sequence, limit), self.model.copy()
        model.meet(sequence)
        before, steps = model.finds(sequence.id), 0
        while steps < limit and self.a_step(model) and model.finds(sequence.id) == before:
            steps += 1
        assert lasts == steps
        return lasts

    def a_step(self, model):
        """Those that decode ask together and write a token; False if they are short."""
        names = [sequence.id for sequence in self.in_order()]
        model.begin()
        if any(model.grow(name, model.written[name] + 1) for name in names):
            return False
        model.granted()
        for name in names:
            model.write(name, 1)
        return True

    def leap(self, limit):
        leap, uses = self.allocator.leap(limit), self.uses_of_the_steps(limit)
        assert leap.steps == len(uses)
        if uses:
            levels = [use.unwritten for use in uses]
            for steps in {1, 1 + len(uses) // 2, len(uses)}:
                assert leap.use_at(steps - 1) == uses[steps - 1]
                assert leap.unwritten_peak(steps // 2, steps) == max(levels[steps // 2 : steps])
                for a, b in WEIGHTS:
                    weighted = sum((a + b * step) * level for step, level in enumerate(levels[:steps]))
                    assert leap.unwritten_sum(steps, a, b) == weighted
                    weighted = sum((a + b * step) * use.cached for step, use in enumerate(uses[:steps]))
                    assert leap.cached_sum(steps, a, b) == weighted
            assert leap.bound >= max(levels)
        return LeapBeside(self, leap)

    def uses_of_the_steps(self, limit):
        """What the model says during each step up to the first that is short, or has a cost of its own."""
        model, uses, names = self.model.copy(), [], [s.id for s in self.in_order()]
        for _ in range(limit):
            owned = sum(map(model.owned, names))
            model.begin()
            short = any(model.grow(name, model.written[name] + 1) for name in names)
            if not short:
                model.granted()
            grown = sum(map(model.owned, names)) != owned
            if short or model.copied or model.evicted or (grown and not model.grows_in_leaps):
                break
            uses.append(PoolUse(*model.usage()))
            for name in names:
                model.write(name, 1)
        return uses

    def compare(self):
        allocator, model, live = self.allocator, self.model, self.live.values()
        use = allocator.usage()
        assert use == PoolUse(*model.usage())
        assert min(use) >= 0
        assert sum(use) - use.largest_hole == allocator.pool_slots == model.slots
        assert allocator.shared_slots == model.shared()
        assert asdict(allocator.upkeep) == model.work
        for need in (1, 3, 24, max(1, model.slots)):
            assert allocator.external(need) == model.external(need)
        for sequence in live:
            assert allocator.owned(sequence) == model.owned(sequence.id)
            # One that comes back knows what it had written before that is in its slots again.
            back = sequence.written if sequence.id in self.landing else 0
            assert allocator.decodes.written_of(sequence) == model.written[sequence.id] + back
        decoding = self.decoding()
        assert allocator.decodes.count == len(decoding)
        assert allocator.decodes.written == sum(model.written[s.id] for s in decoding)
        if not self.landing:
            allocator.audit(live)
        if isinstance(model, NaiveBlocks):
            assert allocator.references == sum(model.references.values())
        if isinstance(model, NaiveRadix):
            # The same edges in the tree, with the same locks.
            audit(allocator.tree)
            edges = {}
            for node in allocator.tree.nodes():
                whole = [run for above in reversed(node.path()) for run in above.content.runs]
                edges[model.tree.pages(whole)] = node.locks
            assert edges == {end: model.tree.locks[end] for end in model.tree.ends}
        if isinstance(model, NaivePrefix):
            # The same blocks wait in the same order, belong to the same, and hold what the same others hold.
            pool = allocator.pool
            assert pool.queue() == model.pool.queue
            assert {s.id: allocator._held[s.id].tables for s in live} == {n: [t] for n, t in model.tables.items()}
            assert pool._counts == {block: count for block, count in model.pool.references.items() if count}
            copies = {}
            for key, block in model.pool.map:
                copies.setdefault(key, []).append(block)
            assert sorted(pool._holders.values()) == sorted(copies.values())
            assert pool.contents == len(copies)
            if pool.listener is not None:
                held = {number: len(blocks) for (_, number), blocks in pool._holders.items()}
                assert {number: count for number, count in pool.listener.copies.items() if count} == held
        if isinstance(model, NaiveRegions):
            # Extents do not overlap, and what is free is merged (to whole buddies) as far as it can be.
            edges = sorted((start, start + room) for start, room, _ in model.places.values())
            assert all(end <= start for (_, end), (start, _) in pairwise(edges))
            assert allocator._space.holes == model.holes()


class LeapBeside:
    def __init__(self, beside, leap):
        self.beside, self.leap = beside, leap

    def __getattr__(self, name):
        return getattr(self.leap, name)

    def apply(self, steps):
        beside = self.beside
        self.leap.apply(steps)
        assert all(beside.a_step(beside.model) for _ in range(steps))
        beside.compare()

"""Every allocator against a naive model of it: any order of admissions, steps, forks, returns, leaps and releases.

The models (`tests/memory/naive*.py`) keep dictionaries of blocks, pages or slots. What an allocator answers to each
call and what it says of itself must be what the model finds by looking.
"""

from copy import deepcopy
from dataclasses import asdict
from itertools import pairwise

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
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, PoolUse, Short
from tests.memory.naive_blocks import NaiveBlocks
from tests.memory.naive_pages import NaivePages
from tests.memory.naive_regions import NaiveRegions
from tests.memory.pairs import LONGEST, PAIRS


class AllocatorMachine(RuleBasedStateMachine):
    def __init__(self, make):
        super().__init__()
        self.make = make
        self.longest = getattr(make, "longest", LONGEST)

    @initialize(room=st.floats(1, 5))
    def fresh(self, room):
        self.allocator, self.model = self.make(int(room * self.longest), self.longest)
        self.running, self.retired, self.swapped, self.written, self.chunks = [], [], [], {}, {}
        self.ids = 0

    def new(self, tokens, declared=0):
        self.ids += 1
        return Sequence(self.ids, tokens, None, tokens=tokens, declared=declared, admission=self.ids)

    def decoding(self):
        return [s for s in self.running if s.decoding]

    def ask(self, asks, decodes=False):
        """The same call to both; True if both grant it."""
        model, short = deepcopy(self.model), None
        model.begin()
        everyone = [*asks]
        if decodes:
            everyone += [Ask(s, self.written[s.id] + 1) for s in self.decoding()]
            everyone.sort(key=lambda ask: ask.sequence.admission)
        for sequence, tokens, admit, gate, alone in everyone:
            short = model.grow(sequence.id, tokens, admit=admit, gate=gate, alone=alone, reach=sequence.reach)
            if short is not None:
                break
        got = self.allocator.acquire(asks, decodes=decodes)
        if short is None:
            slid = tuple((one.sequence.id, one.short[1:], one.outcome) for one in got.compacted)
            assert slid == tuple((name, numbers, "compact") for name, numbers in model.compacted)
            assert got[:2] == (model.copied, model.pages)
            self.model = model
            return True
        assert isinstance(got, Short)
        if len(everyone) == 1:
            assert got == Short("capacity" if short[0] > short[1] else "fragmentation", *short)
        return False

    def enter(self, sequence, written=0):
        self.running.append(sequence)
        self.written[sequence.id] = written
        self.model.enter(sequence.id, written)

    @rule(
        prompts=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(1, LONGEST)), min_size=1, max_size=3),
        gated=st.booleans(),
    )
    def admit(self, prompts, gated):
        """One new request, or several in one call: all of them or none."""
        asks = []
        for prompt, part, output in prompts:
            tokens = 1 + int(prompt * (self.longest - 2))
            declared = self.allocator.declare(tokens, min(output, self.longest - tokens))
            alone = not (self.running or self.retired or asks)
            chunk = 1 + int(part * (tokens - 1))
            asks.append(Ask(self.new(tokens, declared), chunk, True, tokens if gated else 0, alone))
        if self.ask(asks):
            for ask in asks:
                self.enter(ask.sequence)
                self.chunks[ask.sequence.id] = Chunk(ask.sequence, ask.tokens, 0)

    def next_chunks(self, part):
        """Those that compute a prompt and have no chunk in this step."""
        late = [s for s in self.running if not s.decoding and s.id not in self.chunks]
        return {
            s.id: Chunk(s, 1 + int(part * (s.tokens - self.written[s.id] - 1)), self.written[s.id])
            for s in late
            if s.tokens > self.written[s.id]
        }

    @rule(part=st.floats(0, 1))
    def extend(self, part):
        chunks = self.next_chunks(part)
        if chunks and self.ask([Ask(c.sequence, c.written + c.tokens) for c in chunks.values()]):
            self.chunks |= chunks

    @rule(data=st.data(), together=st.booleans(), part=st.floats(0, 1), back=st.booleans())
    def step(self, data, together, part, back):
        """Everyone decodes and the granted chunks are computed; somebody loses their slots if need be."""
        if together:
            chunks = self.next_chunks(part)
            if self.ask([Ask(c.sequence, c.written + c.tokens) for c in chunks.values()], decodes=True):
                self.chunks |= chunks
            else:
                while not self.ask([], decodes=True):
                    self.lose(data.draw(st.sampled_from(self.running)))
        else:
            for sequence in self.decoding():
                while sequence in self.running and not self.ask([Ask(sequence, self.written[sequence.id] + 1)]):
                    self.lose(data.draw(st.sampled_from(self.running)))
        while back and self.swapped and self.land(self.swapped[0]):
            del self.swapped[0]
        self.agrees_with_the_model()
        self.settle(data)

    @rule(data=st.data())
    def stalled_step(self, data):
        self.settle(data, stalled=True)

    def settle(self, data, stalled=False):
        free = self.model.free()
        self.model.settle()
        assert self.allocator.settle(list(self.chunks.values()), stalled=stalled) == (self.model.free() > free)
        if not stalled:
            self.write_on(1)
        for sequence, tokens, _ in self.chunks.values():
            self.model.write(sequence.id, tokens)
            self.written[sequence.id] += tokens
            if self.written[sequence.id] == sequence.tokens:
                self.sample(sequence, data.draw(st.integers(0, 2)) if self.model.shares else 0)
        self.chunks = {}
        self.end_the_longest()

    def write_on(self, steps):
        for sequence in self.decoding():
            self.model.write(sequence.id, steps)
            self.written[sequence.id] += steps

    def sample(self, sequence, more):
        """It decodes from now on, and `more` samples that fork off it do."""
        sequence.tokens += 1
        family = [sequence, *(self.new(sequence.prompt_tokens) for _ in range(more))]
        for child in family[1:]:
            self.fork(sequence, child)
        for member in family:
            self.allocator.begin_decode(member)

    def fork(self, parent, child):
        assert self.allocator.fork(parent, child) == self.model.fork(parent.id, child.id)
        self.running.append(child)
        self.written[child.id] = self.written[parent.id]

    @precondition(lambda self: self.model.shares and self.decoding())
    @rule(data=st.data())
    def branch(self, data):
        """A beam forks, into a new one or in place of one that is dropped."""
        parent, child = (data.draw(st.sampled_from(self.decoding())) for _ in range(2))
        if child is parent:
            child = self.new(parent.prompt_tokens)
        else:
            self.drop(child)
        self.fork(parent, child)

    def land(self, sequence):
        tokens = min(sequence.written + 1, sequence.tokens)
        if not self.ask([Ask(sequence, tokens, True, tokens, not (self.running or self.retired))]):
            return False
        self.ids += 1
        sequence.admission = self.ids
        self.allocator.land(sequence)
        self.enter(sequence, sequence.written)
        if sequence.written + 1 == sequence.tokens:
            self.allocator.begin_decode(sequence)
        return True

    def end_the_longest(self):
        for sequence in self.decoding():
            if self.written[sequence.id] == self.longest:
                self.drop(sequence)

    def drop(self, sequence):
        self.allocator.release(sequence)
        self.model.release(sequence.id)
        (self.running if sequence in self.running else self.retired).remove(sequence)
        self.chunks.pop(sequence.id, None)
        assert sequence.written == self.written.pop(sequence.id)

    def lose(self, sequence):
        """It is preempted, and keeps what it has in host memory."""
        self.drop(sequence)
        if sequence.written:
            self.swapped.append(sequence)

    @precondition(lambda self: self.running or self.retired)
    @rule(data=st.data())
    def finish(self, data):
        self.drop(data.draw(st.sampled_from([*self.running, *self.retired])))

    @precondition(lambda self: self.running)
    @rule()
    def preempt(self):
        self.lose(self.running[-1])

    @rule(data=st.data())
    def retire(self, data):
        able = [s for s in self.decoding() if self.model.alone(s.id)]
        if able:
            sequence = data.draw(st.sampled_from(able))
            self.allocator.retire(sequence)
            self.model.retire(sequence.id)
            self.running.remove(sequence)
            self.retired.append(sequence)

    @rule()
    def release_a_stranger(self):
        with pytest.raises(CheckError):
            self.allocator.release(Sequence(self.ids + 1, 1, None, tokens=1))

    @precondition(lambda self: self.running and len(self.decoding()) == len(self.running))
    @rule(share=st.floats(0, 1), far=st.floats(0, 1), a=st.integers(0, 10**12), b=st.integers(0, 10**9))
    def leap(self, share, far, a, b):
        limit = 1 + int(far * (self.longest - max(self.written.values()) - 1))
        leap = self.allocator.leap(limit)
        uses = self.uses_of_the_steps(limit)
        assert leap.steps == len(uses)
        steps = int(share * len(uses))
        if not steps:
            return
        levels = [unwritten for _, unwritten, *_ in uses]
        first = steps // 2
        assert (leap.use_at(first), leap.use_at(steps - 1)) == (uses[first], uses[steps - 1])
        assert leap.unwritten_sum(steps, a, b) == sum((a + b * j) * level for j, level in enumerate(levels[:steps]))
        assert leap.unwritten_peak(first, steps) == max(levels[first:steps])
        assert leap.bound >= max(levels)
        leap.apply(steps)
        for step in range(steps):
            assert not any(self.model.grow(s.id, self.written[s.id] + step + 1) for s in self.running)
            for sequence in self.running:
                self.model.write(sequence.id, 1)
        for sequence in self.running:
            self.written[sequence.id] += steps
        self.end_the_longest()

    def uses_of_the_steps(self, limit):
        """What the model says during each step up to the first that is short, or has a cost of its own."""
        model, uses = deepcopy(self.model), []
        for step in range(limit):
            owned = sum(model.owned(s.id) for s in self.running)
            model.begin()
            short = any(model.grow(s.id, self.written[s.id] + step + 1) for s in self.running)
            grown = sum(model.owned(s.id) for s in self.running) != owned
            if short or model.copied or (grown and not model.grows_in_leaps):
                break
            uses.append(PoolUse(*model.usage()))
            for sequence in self.running:
                model.write(sequence.id, 1)
        return uses

    @invariant()
    def agrees_with_the_model(self):
        allocator, model = self.allocator, self.model
        use = allocator.usage()
        assert use == PoolUse(*model.usage())
        assert min(use) >= 0
        assert sum(use) - use.largest_hole == allocator.pool_slots == model.slots
        assert allocator.shared_slots == model.shared()
        assert asdict(allocator.upkeep) == model.work
        for need in (1, 3, self.longest, max(1, model.slots)):
            assert allocator.external(need) == model.external(need)
        for sequence in (*self.running, *self.retired):
            assert allocator.owned(sequence) == model.owned(sequence.id)
            assert allocator.decodes.written_of(sequence) == self.written[sequence.id]
        assert allocator.decodes.count == len(self.decoding())
        assert allocator.decodes.written == sum(self.written[s.id] for s in self.decoding())
        allocator.audit([*self.running, *self.retired])
        if isinstance(model, NaiveBlocks):
            assert allocator.references == sum(model.references.values())
        if isinstance(model, NaiveRegions):
            # Extents do not overlap, and what is free is merged (to whole buddies) as far as it can be.
            edges = sorted((start, start + room) for start, room, _ in model.places.values())
            assert all(end <= start for (_, end), (start, _) in pairwise(edges))
            assert allocator._space.holes == model.holes()

    @invariant()
    def leaves_less_than_a_page_unwritten(self):
        """vAttention's bound: a page less one token, in every tensor of a request."""
        if isinstance(self.model, NaivePages):
            for sequence in (*self.running, *self.retired):
                if sequence.id not in self.chunks:
                    unwritten = self.allocator.owned(sequence) - self.written[sequence.id]
                    assert 0 <= unwritten <= self.allocator.page_tokens - 1


@pytest.mark.parametrize("pair", PAIRS)
def test_an_allocator_agrees_with_its_naive_model_whatever_is_done_to_it(pair):
    make = PAIRS[pair]
    run_state_machine_as_test(
        lambda: AllocatorMachine(make),
        settings=settings(
            max_examples=15 if getattr(make, "longest", LONGEST) > 1000 else 40,
            stateful_step_count=40,
            deadline=None,
            database=None,
            phases=(Phase.generate,),  # a failing run is short enough, and shrinking it takes minutes
            suppress_health_check=list(HealthCheck),
        ),
    )

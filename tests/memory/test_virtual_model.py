"""`virtual` against a naive dictionary: which pages each request has mapped, tensor by tensor and page by page."""

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

from kvsim.memory.virtual import VirtualAllocator
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, PoolUse, Short

TENSORS = 6
"""Three layers, K and V."""
REACH = 3
"""No request holds more than so many pages of tokens."""


class Memory:
    """Physical pages by number; each request's page tables are lists of them, one a tensor."""

    def __init__(self, rows, page_tokens):
        self.page_tokens = page_tokens
        self.free = list(range(rows * TENSORS))
        self.tables = {}

    def rows(self, tokens):
        pages = 0
        while pages * self.page_tokens < tokens:
            pages += 1
        return pages

    def missing(self, id_, tokens):
        return max(0, self.rows(tokens) - self.mapped(id_))

    def mapped(self, id_):
        lengths = {len(pages) for pages in self.tables.get(id_, [[]])}
        assert len(lengths) == 1  # every tensor of a request reaches as far as the others
        return lengths.pop()

    def map(self, id_, rows):
        for table in self.tables.setdefault(id_, [[] for _ in range(TENSORS)]):
            for _ in range(rows):
                table.append(self.free.pop())

    def unmap(self, id_):
        for table in self.tables.pop(id_):
            self.free += table

    def free_slots(self):
        return len(self.free) // TENSORS * self.page_tokens


class VirtualMachine(RuleBasedStateMachine):
    def __init__(self, page_tokens, mapped_ahead):
        super().__init__()
        self.page_tokens, self.ahead = page_tokens, mapped_ahead
        self.longest = max(4, REACH * page_tokens)

    @initialize(rows=st.integers(REACH, 4 * REACH))
    def fresh(self, rows):
        rows = max(rows, -(-self.longest // self.page_tokens))
        self.allocator = VirtualAllocator(
            rows * self.page_tokens, page_tokens=self.page_tokens, row_pages=TENSORS, mapped_ahead=self.ahead
        )
        self.memory = Memory(rows, self.page_tokens)
        self.running, self.written, self.chunks, self.ids = [], {}, {}, 0

    def ask(self, asks, decodes=False):
        """The same call to both; True if both grant it."""
        wanted = [(ask.sequence.id, ask.tokens) for ask in asks]
        if decodes:
            wanted += [(s.id, self.written[s.id] + 1) for s in self.decoding()]
        needs = [(id_, self.memory.missing(id_, tokens)) for id_, tokens in wanted]
        gates = [(ask.sequence.id, self.memory.rows(ask.gate)) for ask in asks if ask.admit]
        there = len(self.memory.free) // TENSORS
        got = self.allocator.acquire(asks, decodes=decodes)
        total = sum(rows for _, rows in needs)
        if total > there or any(rows > there - total + dict(needs)[id_] for id_, rows in gates):
            assert isinstance(got, Short)
            assert (got.cause, got.free_slots, got.largest_hole_slots) == ("capacity", *2 * [self.memory.free_slots()])
            return False
        assert got == Grant(mapped_pages=0 if self.ahead else total * TENSORS)
        for id_, rows in needs:
            self.memory.map(id_, rows)
        return True

    def decoding(self):
        return [s for s in self.running if s.decoding]

    @rule(prompt=st.floats(0, 1), part=st.floats(0, 1), gated=st.booleans())
    def admit(self, prompt, part, gated):
        tokens = 1 + int(prompt * (self.longest - 2))
        chunk = 1 + int(part * (tokens - 1))
        self.ids += 1
        sequence = Sequence(self.ids, tokens, None, tokens=tokens, admission=self.ids)
        if self.ask([Ask(sequence, chunk, True, tokens if gated else 0, not self.running)]):
            self.running.append(sequence)
            self.written[sequence.id] = 0
            self.chunks[sequence.id] = Chunk(sequence, chunk, 0)

    @rule(part=st.floats(0, 1))
    def extend(self, part):
        asks, chunks = [], {}
        for s in self.running:
            if not s.decoding and s.id not in self.chunks:
                chunk = 1 + int(part * (s.tokens - self.written[s.id] - 1))
                asks.append(Ask(s, self.written[s.id] + chunk))
                chunks[s.id] = Chunk(s, chunk, self.written[s.id])
        if asks and self.ask(asks):
            self.chunks |= chunks

    @rule(together=st.booleans())
    def step(self, together):
        if together:
            while not self.ask([], decodes=True):
                self.drop(self.running[-1])
        else:
            for s in self.decoding():
                while s in self.running and not self.ask([Ask(s, self.written[s.id] + 1)]):
                    self.drop(self.decoding()[-1])
        assert not self.allocator.settle(list(self.chunks.values()))
        for s in self.decoding():
            self.written[s.id] += 1
        for s, tokens, _ in self.chunks.values():
            self.written[s.id] += tokens
            if self.written[s.id] == s.tokens:
                s.tokens += 1
                self.allocator.begin_decode(s)
        self.chunks = {}
        self.end_the_longest()

    @precondition(lambda self: self.running and len(self.decoding()) == len(self.running))
    @rule(share=st.floats(0, 1), a=st.integers(0, 10**12), b=st.integers(0, 10**9))
    def leap(self, share, a, b):
        limit = self.longest - max(self.written.values())
        leap = self.allocator.leap(limit)
        mapped = {s.id: self.memory.mapped(s.id) for s in self.running}
        there = len(self.memory.free) // TENSORS
        levels, taken = [], []
        for step in range(limit):
            rows = {s.id: self.memory.rows(self.written[s.id] + step + 1) for s in self.running}
            more = sum(max(0, rows[id_] - mapped[id_]) for id_ in rows)
            if more > there or (more and not self.ahead):
                break
            levels.append(
                sum(max(rows[s.id], mapped[s.id]) * self.page_tokens - self.written[s.id] - step for s in self.running)
            )
            taken.append(more)
        assert leap.steps == len(levels)
        steps = int(share * len(levels))
        if not steps:
            return
        assert leap.use_at(steps - 1).unwritten == levels[steps - 1]
        assert leap.unwritten_sum(steps, a, b) == sum((a + b * j) * level for j, level in enumerate(levels[:steps]))
        assert leap.unwritten_peak(steps // 2, steps) == max(levels[steps // 2 : steps])
        assert leap.bound >= max(levels)
        leap.apply(steps)
        for s in self.running:
            self.written[s.id] += steps
            self.memory.map(s.id, self.memory.missing(s.id, self.written[s.id]))
        self.end_the_longest()

    def end_the_longest(self):
        for s in self.decoding():
            if self.written[s.id] == self.longest:
                self.drop(s)

    def drop(self, sequence):
        self.allocator.release(sequence)
        self.memory.unmap(sequence.id)
        self.running.remove(sequence)
        self.chunks.pop(sequence.id, None)
        del self.written[sequence.id]

    @precondition(lambda self: self.running)
    @rule(share=st.floats(0, 0.999))
    def leave(self, share):
        self.drop(self.running[int(share * len(self.running))])

    @invariant()
    def agrees_with_the_pages(self):
        used, free = sum(self.written.values()), self.memory.free_slots()
        assert self.allocator.usage() == PoolUse(used, self.allocator.pool_slots - free - used, 0, 0, 0, free, free)
        for s in self.running:
            owned = self.allocator.owned(s)
            assert owned == self.memory.mapped(s.id) * self.page_tokens
            if s.id not in self.chunks:
                # vAttention's bound on what a request leaves unwritten: a page less one token, in every tensor.
                assert 0 <= owned - self.written[s.id] <= self.page_tokens - 1
        self.allocator.audit(self.running)


@pytest.mark.parametrize("mapped_ahead", [False, True])
@pytest.mark.parametrize("page_tokens", [1, 3, 32, 256, 300, 2048])
def test_virtual_agrees_with_page_tables_whatever_is_done_to_it(page_tokens, mapped_ahead):
    run_state_machine_as_test(
        lambda: VirtualMachine(page_tokens, mapped_ahead),
        settings=settings(
            max_examples=15 if page_tokens > 256 else 40,
            stateful_step_count=30,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

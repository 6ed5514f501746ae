"""`radix` under any scheduler does to pool and tree what SGLang's own rows do, which equal the recorded engine's."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kvsim.content import ENDLESS, Content, Run, own_stream
from kvsim.memory.radix.allocator import RadixAllocator
from kvsim.memory.radix.eviction import POLICIES
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.tree import RadixTree
from kvsim.request import Sequence
from kvsim.scheduling.sglang.request import Request
from kvsim.scheduling.sglang.rows import Rows
from kvsim.step import Ask, Chunk, Grant

PROMPTS = st.tuples(st.integers(1, 20), st.integers(0, 20), st.integers(0, 20), st.booleans(), st.integers(0, 2))


class AllocatorAndRows(RuleBasedStateMachine):
    """The same requests in both: admitted in chunks, decoding, finished, retracted and admitted again."""

    @initialize(
        page_size=st.sampled_from([1, 2, 4]), eviction=st.sampled_from(list(POLICIES)), pages=st.integers(6, 40)
    )
    def fresh(self, page_size, eviction, pages):
        self.pool = RadixAllocator(pages * page_size, page_size=page_size, eviction=eviction)
        self.rows = Rows(RadixTree(SlotPool(pages * page_size, page_size=page_size), eviction=eviction))
        self.waiting, self.prefilling, self.decoding, self.chunks = [], [], [], []
        self.ids = 0

    def new(self, prompt, first, second, turned, priority):
        """It begins as one of two documents, or a part of it and then the other."""
        self.ids += 1
        first, second = sorted((min(first, prompt), min(second, prompt)))
        own = own_stream(self.ids)
        runs = [Run(turned, 0, first), Run(1 - turned, first, second - first), Run(own, second, prompt - second)]
        request = Request(
            name=str(self.ids),
            content=Content(runs),
            prompt_tokens=prompt,
            max_new=100,
            output=Run(own, prompt, 1),
            priority=priority,
        )
        content = Content([*runs, Run(own, prompt, ENDLESS)])
        sequence = Sequence(self.ids, prompt, None, tokens=prompt, content=content, priority=-priority)
        return sequence, request

    @rule(prompts=st.lists(PROMPTS, min_size=1, max_size=3), part=st.floats(0, 1))
    def arrive(self, prompts, part):
        self.waiting += [self.new(*prompt) for prompt in prompts]
        self.admit(part)

    @precondition(lambda self: self.waiting)
    @rule(part=st.sampled_from([0.3, 1.0]))
    def admit(self, part):
        """A batch of all that wait: all of them or none."""
        if self.chunks:
            self.results()
        asks = []
        for sequence, request in self.waiting:
            hit = self.pool.lookup(sequence)
            end = hit + 1 + int(part * (request.tokens - hit - 1))
            asks.append(Ask(sequence, end, admit=True))
        if not isinstance(self.pool.acquire(asks), Grant):
            self.waiting.pop()
            return
        for (sequence, request), ask in zip(self.waiting, asks, strict=True):
            self.rows.find(request, request.tokens - 1)
            assert request.prefix == sequence.written
            self.rows.tree.lock(request.found)
            request.locked = request.found
            self.compute(sequence, request, ask.tokens)
        self.rows.extend([request for _, request in self.waiting])
        self.prefilling += self.waiting
        self.waiting = []

    def compute(self, sequence, request, end):
        request.end, request.filled = end, request.tokens
        self.chunks.append(Chunk(sequence, end - request.prefix, request.prefix))

    @precondition(lambda self: self.prefilling and not self.chunks)
    @rule(part=st.sampled_from([0.4, 1.0]))
    def go_on(self, part):
        ends = [r.prefix + 1 + int(part * (r.tokens - r.prefix - 1)) for _, r in self.prefilling]
        asks = [Ask(sequence, end) for (sequence, _), end in zip(self.prefilling, ends, strict=True)]
        if isinstance(self.pool.acquire(asks), Grant):
            for (sequence, request), end in zip(self.prefilling, ends, strict=True):
                self.compute(sequence, request, end)
            self.rows.extend([request for _, request in self.prefilling])
        else:
            self.retract(self.prefilling.pop())

    @precondition(lambda self: self.chunks)
    @rule()
    def results(self):
        """The step is over."""
        chunks, self.chunks = self.chunks, []
        self.pool.settle(chunks, stalled=True)
        computed = {chunk.sequence for chunk in chunks}
        for sequence, request in [one for one in self.prefilling if one[0] in computed]:
            self.rows.stash(request)
            if request.end == request.tokens:
                self.prefilling.remove((sequence, request))
                self.decoding.append((sequence, request))
                request.emit()
                sequence.tokens += 1
                self.pool.begin_decode(sequence)

    @precondition(lambda self: self.decoding and not self.chunks)
    @rule(steps=st.integers(1, 6))
    def decode(self, steps):
        for _ in range(steps):
            if not isinstance(self.pool.acquire([], decodes=True), Grant):
                self.retract(self.decoding.pop())
                return
            self.rows.decode([request for _, request in self.decoding])
            self.pool.settle([])
            for _, request in self.decoding:
                request.emit()

    @precondition(lambda self: self.decoding and not self.chunks)
    @rule()
    def finish(self):
        sequence, request = self.decoding.pop(0)
        self.pool.release(sequence)
        self.rows.release(request, keep=True)

    @precondition(lambda self: self.decoding and not self.chunks)
    @rule()
    def lose(self):
        self.retract(self.decoding.pop(0))

    def retract(self, one):
        sequence, request = one
        self.pool.preempt(sequence)
        sequence.written = 0
        self.rows.retract(request)
        assert sequence.tokens == request.tokens
        if request.tokens < self.pool.pool_slots:
            self.waiting.append(one)

    @invariant()
    def pool_and_tree_agree(self):
        ours, theirs = self.pool, self.rows
        assert ours.pool.free == theirs.pool.free
        assert ours.upkeep.evictions * ours.page_size == theirs.evicted
        assert remembered(ours.tree) == remembered(theirs.tree)


def remembered(tree):
    """All that the tree knows of its nodes, in the order in which they were touched."""
    nodes = sorted(tree.nodes(), key=lambda node: node.stamp)
    return [
        ([n.content.runs for n in node.path()], node.locks, node.hits, node.priority, node.created) for node in nodes
    ]


TestAllocatorAndRows = AllocatorAndRows.TestCase
TestAllocatorAndRows.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)

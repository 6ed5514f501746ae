"""Every allocator with its naive model beside it: any order of admissions, steps, forks, returns, leaps and releases.

`tests/memory/beside.py` compares both after every verb, `tests/memory/naive*.py` are the models: dictionaries of
blocks, pages or slots. What an allocator answers and what it says of itself must be what the model finds by looking.
"""

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

from kvsim.content import ENDLESS, Content, Run
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant
from tests.effort import examples
from tests.memory.beside import Beside
from tests.memory.naive_pages import NaivePages
from tests.memory.pairs import AHEAD, LONGEST, PAIRS

SHARE = st.integers(0, 100).map(lambda percent: percent / 100)
PART = st.one_of(st.just(1.0), SHARE)
"""Of what is left, more often than not all of it."""

ALIKE = st.none() | st.tuples(st.integers(0, LONGEST), st.integers(0, LONGEST), st.integers(0, 1))
"""Content that it may share: two lengths and which of two documents comes first; None: nobody has told."""

PROMPTS = st.tuples(SHARE, PART, st.integers(1, LONGEST), ALIKE)


def content_of(number, first, second, document):
    """It begins as one of two documents, or a part of that and then the other, and goes on as nobody else."""
    first, second = sorted((first, second))
    runs = [Run(document, 0, first), Run(1 - document, first, second - first), Run(2 + number, second, ENDLESS)]
    return Content(runs)


class AllocatorMachine(RuleBasedStateMachine):
    def __init__(self, make):
        super().__init__()
        self.make = make
        self.longest = getattr(make, "longest", LONGEST)

    @initialize(room=st.integers(1, 5), prompts=st.lists(PROMPTS, max_size=3))
    def fresh(self, room, prompts):
        self.pool = Beside(*self.make(room * self.longest + room, self.longest))
        self.running, self.retired, self.swapped, self.again, self.chunks = [], [], [], [], {}
        self.asked = set()
        """Those that decode and have asked for this step's slot, one by one."""
        self.ids = 0
        for prompt in prompts:
            self.admit([prompt], gated=False)

    def new(self, tokens, output=0, alike=None):
        self.ids += 1
        declared = self.pool.declare(tokens, output) if output else 0
        content = content_of(self.ids, *alike) if alike else None
        return Sequence(self.ids, tokens, None, tokens=tokens, declared=declared, admission=self.ids, content=content)

    def written(self, sequence):
        return self.pool.model.written[sequence.id]

    def wanted(self, sequence, tokens):
        """Slots for so many tokens, and those that it must have before it decodes."""
        return tokens + (self.pool.model.steps_ahead if tokens == sequence.tokens else 0)

    def may_leave(self):
        early = self.pool.model.stores_early
        return [s for s in self.running if not early or (s.id not in self.chunks and s.id not in self.asked)]

    def granted(self, asks, decodes=False):
        return isinstance(self.pool.acquire(asks, decodes=decodes), Grant)

    @rule(prompts=st.lists(PROMPTS, min_size=1, max_size=3), gated=st.booleans())
    def admit(self, prompts, gated):
        """One new request, or several in one call: all of them or none."""
        new = []
        for prompt, part, output, alike in prompts:
            tokens = 1 + int(prompt * (self.longest - 2))
            new.append((self.new(tokens, min(output, self.longest - tokens), alike), part))
        self.let_in(new, gated)

    @precondition(lambda self: self.again)
    @rule(part=PART, gated=st.booleans())
    def admit_again(self, part, gated):
        """The first of those that lost what they had."""
        self.ids += 1
        self.again[0].admission = self.ids
        if self.let_in([(self.again[0], part)], gated):
            del self.again[0]

    def let_in(self, sequences, gated):
        asks = []
        for sequence, part in sequences:
            hit, tokens = self.pool.lookup(sequence), sequence.tokens
            chunk = hit + 1 + int(part * (tokens - hit - 1))
            gate, alone = tokens if gated else 0, not (self.pool.live or asks)
            asks.append(Ask(sequence, self.wanted(sequence, chunk), True, gate, alone))
        granted = self.granted(asks)
        for ask in asks if granted else ():
            hit = ask.sequence.written
            self.running.append(ask.sequence)
            self.chunks[ask.sequence.id] = Chunk(ask.sequence, min(ask.tokens, ask.sequence.tokens) - hit, hit)
        return granted

    def extend(self, part, decodes):
        """Those that compute a prompt and have no chunk in this step ask for one, all in one call; False if in vain."""
        chunks = {}
        for sequence in self.running:
            left = sequence.tokens - self.written(sequence)
            if not sequence.decoding and sequence.id not in self.chunks and left:
                chunks[sequence.id] = Chunk(sequence, 1 + int(part * (left - 1)), self.written(sequence))
        granted = self.granted(
            [Ask(c.sequence, self.wanted(c.sequence, c.written + c.tokens)) for c in chunks.values()], decodes
        )
        self.chunks |= chunks if granted else {}
        return granted

    @precondition(lambda self: self.running or self.swapped)
    @rule(data=st.data(), times=st.integers(1, 8), together=st.booleans(), part=PART, back=st.booleans())
    def steps(self, data, times, together, part, back):
        """Everyone decodes and granted chunks are computed; somebody loses their slots if need be."""
        for _ in range(times):
            if not together:
                self.one_by_one(data, part)
            elif not self.extend(part, decodes=True):
                while not self.granted([], decodes=True):
                    self.lose(data.draw(st.sampled_from(self.may_leave())))
            while back and self.swapped and self.land(self.swapped[0]):
                del self.swapped[0]
            self.settle(data)

    def one_by_one(self, data, part):
        self.extend(part, decodes=False)
        for sequence in self.pool.decoding():
            while sequence in self.running and not self.granted([Ask(sequence, self.written(sequence) + 1)]):
                self.lose(data.draw(st.sampled_from(self.may_leave())))
            self.asked.add(sequence.id)

    @precondition(lambda self: self.chunks)
    @rule(data=st.data())
    def stalled_step(self, data):
        self.settle(data, stalled=True)

    def settle(self, data, stalled=False):
        chunks, self.chunks, self.asked = self.chunks, {}, set()
        self.pool.settle([*chunks.values()], stalled=stalled)
        for chunk in chunks.values():
            if self.written(chunk.sequence) == chunk.sequence.tokens:
                self.sample(chunk.sequence, data.draw(st.integers(0, 2)) if self.pool.shares else 0)
        self.end_the_longest()

    def sample(self, sequence, more):
        """It decodes from now on, and `more` samples that fork off it do."""
        sequence.tokens += 1
        family = [sequence, *(self.new(sequence.prompt_tokens) for _ in range(more))]
        for child in family[1:]:
            self.pool.fork(sequence, child)
            self.running.append(child)
        for member in family:
            self.pool.begin_decode(member)

    @precondition(lambda self: self.pool.shares and self.pool.decoding())
    @rule(data=st.data())
    def branch(self, data):
        """A beam forks, into a new one or in place of one that is dropped."""
        beams = [s for s in self.running if s.decoding]
        parent, child = data.draw(st.sampled_from(beams)), data.draw(st.sampled_from(beams))
        if child is parent:
            child = self.new(parent.prompt_tokens)
        else:
            self.drop(child)
        self.pool.fork(parent, child)
        self.running.append(child)

    def land(self, sequence):
        tokens = sequence.written + 1
        if not self.granted([Ask(sequence, self.wanted(sequence, tokens), True, tokens, not self.pool.live)]):
            return False
        self.ids += 1
        sequence.admission = self.ids
        self.pool.land(sequence)
        self.running.append(sequence)
        if tokens == sequence.tokens:
            self.pool.begin_decode(sequence)
        else:
            self.chunks[sequence.id] = Chunk(sequence, 1, sequence.written)
        return True

    def end_the_longest(self):
        for sequence in self.pool.decoding():
            if self.written(sequence) == self.longest:
                self.drop(sequence)

    def drop(self, sequence, comes_again=False):
        (self.pool.preempt if comes_again else self.pool.release)(sequence)
        (self.running if sequence in self.running else self.retired).remove(sequence)
        self.chunks.pop(sequence.id, None)

    def lose(self, sequence, kept=True):
        """It is preempted, and keeps what it has in host memory, or computes it again."""
        self.drop(sequence, comes_again=True)
        if not kept or not sequence.written:
            sequence.written = 0
            self.again.append(sequence)
        else:
            self.swapped.append(sequence)

    @precondition(lambda self: self.may_leave())
    @rule(data=st.data(), how=st.sampled_from(["finish", "preempt", "recompute", "retire"]))
    def leave(self, data, how):
        sequence = data.draw(st.sampled_from(self.may_leave()))
        # Only static batching keeps those that have ended, and no cache goes with it.
        alone = sequence.decoding and self.pool.model.alone(sequence.id) and not self.pool.caches
        if how == "retire" and alone:
            self.pool.retire(sequence)
            self.running.remove(sequence)
            self.retired.append(sequence)
        elif how in ("preempt", "recompute"):
            self.lose(sequence, kept=how == "preempt")
        else:
            self.drop(sequence)

    @precondition(lambda self: self.retired)
    @rule()
    def release_the_retired(self):
        self.drop(self.retired[0])

    @precondition(lambda self: self.pool.decoding())
    @rule(share=PART, far=PART, waits=PROMPTS)
    def leap(self, share, far, waits):
        """Those that decode are left to themselves for a while, and somebody waits."""
        if self.pool.model.stores_early:
            self.settle(None, stalled=True)
        for sequence in [s for s in self.running if not s.decoding]:
            self.lose(sequence)
        limit = 1 + int(far * (self.longest - max(map(self.written, self.running)) - 1))
        leap = self.pool.leap(limit)
        prompt, _, _, alike = waits
        self.pool.hit_lasts(self.new(1 + int(prompt * (self.longest - 2)), alike=alike), leap.steps)
        leap.apply(int(share * leap.steps))
        self.end_the_longest()

    @invariant()
    def leaves_less_than_a_page_unwritten(self):
        """vAttention's bound: a page less one token, in every tensor of a request."""
        if isinstance(self.pool.model, NaivePages):
            for sequence in self.pool.live.values():
                # Whoever computes a prompt may have been granted a token that the next step writes.
                if sequence.decoding or sequence in self.retired:
                    unwritten = self.pool.owned(sequence) - self.written(sequence)
                    assert 0 <= unwritten <= self.pool.page_tokens - 1


@pytest.mark.parametrize("pair", PAIRS | AHEAD)
def test_an_allocator_agrees_with_its_naive_model_whatever_is_done_to_it(pair):
    make = (PAIRS | AHEAD)[pair]
    run_state_machine_as_test(
        lambda: AllocatorMachine(make),
        settings=settings(
            max_examples=examples(10 if getattr(make, "longest", LONGEST) > 1000 else 40),
            stateful_step_count=40,
            deadline=None,
            database=None,
            phases=(Phase.generate,),  # a failing run is short enough, and shrinking it takes minutes
            suppress_health_check=list(HealthCheck),
        ),
    )

"""With prefix caching on, too: leaping is stepping, everything is conserved, and nothing else changes."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.content import Content, Run, own_stream
from kvsim.memory.prefix import PrefixAllocator
from kvsim.memory.prefix.leap import PrefixLeap
from kvsim.memory.radix.eviction import POLICIES
from kvsim.request import Request
from kvsim.scheduling.batching.queueing import PREEMPTIONS
from kvsim.scheduling.batching.victims import VICTIMS
from tests.effort import examples
from tests.laws.agreement import WARMUPS, WINDOWS, keeps_every_law, leaps_as_it_steps
from tests.laws.cases import CACHES, everything, run_case
from tests.laws.strategies import one_in, scenarios

EXAMPLES = examples(60)
MET = (
    "hit",
    "found again",
    "evicted",
    "cached while idle",
    "leap cut",
    "leap that the pool ends",
    "leap over several blocks of one",
    "evicted within a leap",
    "leap that ends where the head's hit does",
)
"""What the cases must meet."""


@st.composite
def alike(draw, request):
    """`request` with a prompt that begins with one of two long documents, or a part of one and then the other's."""
    lengths = st.integers(0, request.prompt_tokens)
    first, second = sorted((draw(lengths), draw(lengths)))
    one, other = draw(st.permutations([0, 1]))
    rest = Run(own_stream(request.id), second, request.prompt_tokens - second)
    return replace(request, content=Content([Run(one, 0, first), Run(other, first, second - first), rest]))


@st.composite
def echoing(draw, request, other):
    """`request` with a prompt that goes on from the prompt of `other` with what that emits, as a conversation does."""
    said = Run(own_stream(other.id), other.prompt_tokens, draw(st.integers(1, other.output_tokens + 3)))
    asked = Run(own_stream(request.id), 0, draw(st.integers(0, 4)))
    heard = other.content or Content([Run(own_stream(other.id), 0, other.prompt_tokens)])
    content = Content([*heard.runs, said, asked])
    return replace(request, content=content, prompt_tokens=content.tokens)


@st.composite
def cases(draw, allocator="prefix", preemption="recompute"):
    """A case over an allocator that caches, with prompts that begin alike, samples, and outputs that come back."""
    case = draw(scenarios(allocators=("paged",)))
    requests = [draw(alike(request)) if draw(st.booleans()) else request for request in case["requests"]]
    for number in range(1, len(requests)):
        if draw(one_in(4, st.just(0))) is not None:
            requests[number] = draw(echoing(requests[number], requests[draw(st.integers(0, number - 1))]))
    if draw(st.booleans()):
        outputs = st.lists(st.integers(1, 30), max_size=3)
        requests = [replace(request, more_outputs=tuple(draw(outputs))) for request in requests]
    least, most = case["max_num_seqs"], case["max_num_batched_tokens"]
    return case | {
        "requests": requests,
        "allocator": allocator,
        "eviction": draw(st.sampled_from(list(POLICIES))),
        "preemption": preemption,
        # In a pool of blocks others would find what a victim has not computed; the tree takes in what is there.
        "victim": draw(st.sampled_from(list(VICTIMS))) if allocator == "radix" else "last",
        "kernel": draw(st.sampled_from(["ragged", "padded"])),
        "workspace_tokens": draw(one_in(4, st.integers(least, most))),
        "host_slots": draw(st.sampled_from([0, 40, 10_000])),
    }


@pytest.mark.parametrize("allocator", CACHES)
@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_leaping_is_stepping_and_everything_is_conserved(preemption, allocator):
    @settings(max_examples=EXAMPLES)
    @given(cases(allocator, preemption))
    def agree(case):
        keeps_every_law(case, leaps_as_it_steps(case))

    agree()


@pytest.mark.parametrize("allocator", CACHES)
def test_what_is_measured_in_a_window_does_not_depend_on_leaping(allocator):
    @settings(max_examples=EXAMPLES)
    @given(cases(allocator), WARMUPS, WINDOWS)
    def agree(case, warmup_ps, window):
        leaps_as_it_steps(case, warmup_ps=warmup_ps, window=window)

    agree()


def test_a_request_that_waits_for_memory_is_let_in_when_another_fills_a_block_that_it_can_share():
    """Four blocks of four: "0" holds two, so that "1", which needs four, must find two. It finds one until "0" fills
    its second, and if it is not let in by then a third is taken."""
    first = Request(0, 0, 5, 20)
    heard = Content([Run(own_stream(0), 0, 12), Run(own_stream(1), 0, 1)])
    case = {
        "requests": [first, Request(1, 1, 13, 2, content=heard)],
        "allocator": "prefix",
        "pool_slots": 16,
        "block_size": 4,
        "watermark": 0.0,
        "reserve_full_isl": True,
        "max_num_seqs": 4,
        "max_num_batched_tokens": 64,
        "max_model_len": 64,
        "long_prefill_token_threshold": 0,
        "chunked_prefill": True,
        "horizon_ps": None,
        "step_time": {"base_ps": 10, "token_ps": 0, "context_ps": 0, "copied_ps": 0},
    }
    case["requests"][0] = replace(first, content=Content([Run(own_stream(0), 0, 5)]))
    leaping, stepping = run_case(case, stepwise=False), run_case(case, stepwise=True)
    assert everything(leaping) == everything(stepping)
    (waited,) = [ended for ended in leaping.recording.requests.ended if ended.id == 1]
    assert (waited.first_scheduled_ps, waited.hit_tokens) == (30, 8)


@settings(max_examples=EXAMPLES)
@given(scenarios(allocators=("paged",)))
def test_with_caching_off_it_is_the_allocator_that_only_counts(case):
    ours = run_case(case | {"allocator": "prefix", "caching": False}, stepwise=False)
    theirs = run_case(case, stepwise=False)
    assert everything(ours) == everything(theirs)


def test_the_cases_meet_hits_evictions_long_leaps_and_blocks_that_their_owner_finds_again(monkeypatch):
    """The laws above would hold of runs in which nothing is ever found, or leapt over, as well."""
    met = Counter()

    class Leap(PrefixLeap):
        def __init__(self, allocator, limit):
            super().__init__(allocator, limit)
            met["leap that the pool ends"] += self.steps < limit

        def apply(self, steps):
            evicted = self._allocator.pool.evicted
            met["leap cut"] += steps < self.steps
            super().apply(steps)
            met["leap over several blocks of one"] += steps > self._phases.size
            met["evicted within a leap"] += self._allocator.pool.evicted > evicted

    def hit_lasts(self, sequence, limit):
        steps = PrefixAllocator.hit_lasts(self, sequence, limit)
        met["leap that ends where the head's hit does"] += 0 < steps < limit
        return steps

    class Pool(PrefixAllocator):
        pass

    Pool.hit_lasts = hit_lasts
    monkeypatch.setattr("kvsim.memory.prefix.allocator.PrefixLeap", Leap)
    monkeypatch.setattr("tests.laws.cases.PrefixAllocator", Pool)

    _run_all(met, "prefix")
    assert all(met[what] >= 5 for what in MET), met


def test_the_cases_over_a_tree_meet_hits_evictions_and_tokens_that_their_owner_finds_again():
    met = Counter()
    _run_all(met, "radix")
    assert all(met[what] >= 5 for what in ("hit", "found again", "evicted", "cached while idle")), met


def _run_all(met, allocator):
    @settings(max_examples=200)
    @given(cases(allocator))
    def count(case):
        log = run_case(case, stepwise=False)
        ended = log.recording.requests.ended
        met["hit"] += any(r.hit_tokens for r in ended)
        met["found again"] += any(r.rehit_tokens for r in ended)
        met["evicted"] += log.recording.upkeep.evictions > 0
        met["cached while idle"] += bool(log.recording.memory.rests)

    count()

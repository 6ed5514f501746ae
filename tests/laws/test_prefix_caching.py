"""With prefix caching on, too: leaping is stepping, everything is conserved, and nothing else changes."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.content import Content, Run, own_stream
from kvsim.scheduling.queueing import PREEMPTIONS
from tests.laws.cases import everything, run_case
from tests.laws.strategies import one_in, scenarios
from tests.laws.test_conservation import LAWS

EXAMPLES = 150


@st.composite
def alike(draw, request):
    """`request` with a prompt that begins with one of two long documents, or a part of one and then the other's."""
    lengths = st.integers(0, request.prompt_tokens)
    first, second = sorted((draw(lengths), draw(lengths)))
    one, other = draw(st.permutations([0, 1]))
    rest = Run(own_stream(request.id), second, request.prompt_tokens - second)
    return replace(request, content=Content([Run(one, 0, first), Run(other, first, second - first), rest]))


@st.composite
def cases(draw, preemption="recompute"):
    """A case over the allocator that shares, with prompts that begin alike, samples, and outputs that come back."""
    case = draw(scenarios(allocators=("paged",)))
    requests = [draw(alike(request)) if draw(st.booleans()) else request for request in case["requests"]]
    if draw(st.booleans()):
        outputs = st.lists(st.integers(1, 30), max_size=3)
        requests = [replace(request, more_outputs=tuple(draw(outputs))) for request in requests]
    least, most = case["max_num_seqs"], case["max_num_batched_tokens"]
    return case | {
        "requests": requests,
        "allocator": "prefix",
        "preemption": preemption,
        "kernel": draw(st.sampled_from(["ragged", "padded"])),
        "workspace_tokens": draw(one_in(4, st.integers(least, most))),
        "host_slots": draw(st.sampled_from([0, 40, 10_000])),
    }


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_leaping_is_stepping_and_everything_is_conserved(preemption):
    @settings(max_examples=EXAMPLES)
    @given(cases(preemption))
    def agree(case):
        leaping, stepping = run_case(case, stepwise=False), run_case(case, stepwise=True)
        assert everything(leaping) == everything(stepping)
        for law in LAWS:
            law(case, leaping)

    agree()


@settings(max_examples=EXAMPLES)
@given(cases(), st.integers(0, 60_000), st.sampled_from(["auto", "last_finish", "saturated"]))
def test_what_is_measured_in_a_window_does_not_depend_on_leaping(case, warmup_ps, window):
    runs = [run_case(case, stepwise=stepwise, warmup_ps=warmup_ps, window=window) for stepwise in (False, True)]
    assert everything(runs[0]) == everything(runs[1])


@settings(max_examples=EXAMPLES)
@given(scenarios(allocators=("paged",)))
def test_with_caching_off_it_is_the_allocator_that_only_counts(case):
    ours = run_case(case | {"allocator": "prefix", "caching": False}, stepwise=False)
    theirs = run_case(case, stepwise=False)
    assert everything(ours) == everything(theirs)


def test_the_cases_meet_hits_evictions_and_blocks_that_their_owner_finds_again():
    """The laws above would hold of runs in which nothing is ever found as well."""
    met = Counter()

    @settings(max_examples=200)
    @given(cases())
    def count(case):
        log = run_case(case, stepwise=False)
        ended = log.recording.requests.ended
        met["hit"] += any(r.hit_tokens for r in ended)
        met["found again"] += any(r.rehit_tokens for r in ended)
        met["evicted"] += log.recording.upkeep.evictions > 0
        met["cached while idle"] += bool(log.recording.memory.rests)

    count()
    assert all(met[what] >= 5 for what in ("hit", "found again", "evicted", "cached while idle")), met

"""With room for everything a radix tree computes each of its edges once: Theorem 3.1 of SGLang (NeurIPS'24).

In its setting one prompt at a time is computed, none is a prefix of another, and nothing is evicted.
"""

from itertools import permutations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kvsim.content import Content, Run, own_stream
from kvsim.engine.run import simulate
from kvsim.memory.radix.allocator import RadixAllocator
from kvsim.metrics.memory.levels import SERIES
from kvsim.request import Request
from tests.effort import examples
from tests.laws.cases import CaseTiming, scheduler_of
from tests.laws.test_conservation import by_row
from tests.laws.test_prefix_caching import alike
from tests.laws.test_pressure_ladder import case_of

STEP_PS = 100_000
"""Longer than any step."""

DOCUMENT = Content([Run(0, 0, 40)])

PROMPTS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 12)), min_size=1, max_size=10)


@st.composite
def apart(draw):
    """Requests that come one at a time, while others decode; every other one begins as others do."""
    requests = []
    for number, (prompt, output) in enumerate(draw(PROMPTS)):
        request = Request(number, number * 2 * STEP_PS, prompt, output)
        requests.append(draw(alike(request)) if draw(st.booleans()) else request)
    return requests


def tokens_of(request):
    if request.content is None:
        return tuple((own_stream(request.id), number) for number in range(request.prompt_tokens))
    return tuple((run.stream, run.offset + number) for run in request.content.runs for number in range(run.tokens))


def served(requests, page_size=1):
    """(prompt tokens computed, output tokens computed, the allocator) of a run with room for everything."""
    allocator = RadixAllocator(1 << 16, page_size=page_size)
    case = case_of("radix", {"requests": requests})
    timing = CaseTiming({"base_ps": 20_000, "token_ps": 100, "context_ps": 2, "copied_ps": 0})
    log = simulate(iter(requests), scheduler_of(case, allocator), timing, max_model_len=320, check=True)
    rows = [dict(zip(SERIES, values, strict=True)) for values in by_row(log)]
    assert all(row["duration_ps"] < STEP_PS * row["steps"] for row in rows)
    decoded = sum(row["decode_tokens"] * row["steps"] for row in rows)
    return sum(row["prefill_tokens"] for row in rows), decoded, allocator


@settings(max_examples=examples(100), deadline=None)
@given(apart())
def test_every_edge_of_the_tree_is_computed_once(requests):
    prompts = [tokens_of(request) for request in requests]
    assume(not any(long[: len(short)] == short for short, long in permutations(prompts, 2)))
    edges = {prompt[:end] for prompt in prompts for end in range(1, len(prompt) + 1)}
    computed, decoded, allocator = served(requests)
    assert computed == len(edges)
    # And all that was computed is still there.
    assert sum(node.tokens for node in allocator.tree.nodes()) == computed + decoded == allocator.usage().cached


@settings(max_examples=examples(100), deadline=None)
@given(apart(), st.integers(1, 6))
def test_in_pages_what_is_computed_is_what_no_earlier_prompt_had_in_whole_pages(requests, page_size):
    seen, expected = set(), 0
    for request in requests:
        prompt = tokens_of(request)
        found = [end for end in range(page_size, len(prompt), page_size) if prompt[:end] in seen]
        expected += len(prompt) - max(found, default=0)
        seen |= {prompt[:end] for end in range(page_size, len(prompt) + 1, page_size)}
    assert served(requests, page_size)[0] == expected


def test_a_prompt_that_all_share_is_computed_once_but_for_its_last_token():
    shared = [Request(n, n * 2 * STEP_PS, 40, 3, content=DOCUMENT) for n in range(5)]
    assert served(shared)[0] == 40 + 4


def test_equal_prompts_that_come_at_once_are_all_computed():
    shared = [Request(n, 0, 40, 3, content=DOCUMENT) for n in range(3)]
    computed, _, allocator = served(shared)
    assert computed == 3 * 40
    # The step has room for 128 tokens. When it is over the second and the third copy come free, and one is kept.
    assert sum(node.tokens for node in allocator.tree.nodes() if node.children) == 40

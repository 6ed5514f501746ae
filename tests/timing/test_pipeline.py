"""Pipeline stages: a round takes what its largest micro-batch takes through all stages, and the sends between them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.engine.run import simulate
from kvsim.memory.paged import PagedAllocator
from kvsim.request import Request, Sequence
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.step import Chunk
from kvsim.timing.fitted import FittedRange, Span
from kvsim.timing.interface import LinearTiming
from kvsim.timing.pipeline import PipelineTiming
from tests.batches import step_of
from tests.laws.cases import everything

WHOLE = LinearTiming(step_ps=1000, per_sequence_ps=10, per_context_ps=8, per_prefill_ps=5, per_copied_ps=3)


def stages(count=2, send_ps=7, send_token_ps=1):
    return PipelineTiming(WHOLE, stages=count, send_ps=send_ps, send_token_ps=send_token_ps)


def chunk(tokens, written=0):
    return Chunk(Sequence(0, tokens + written, None), tokens, written)


def test_each_micro_batch_decodes_its_part_of_the_rows_and_of_their_context():
    """Four rows over 400 tokens on two stages: two rows over 200 tokens, and one send of two tokens."""
    assert stages().step_ps(step_of(4, 400)) == 1000 + 2 * 10 + 200 * 8 + 7 + 2


def test_a_sequence_alone_passes_all_stages_and_gains_nothing():
    assert stages(4).step_ps(step_of(1, 100)) == WHOLE.step_ps(step_of(1, 100)) + 3 * (7 + 1)


def test_prompts_are_dealt_over_the_micro_batches_longest_first():
    two = stages().step_ps(step_of(chunks=[chunk(100), chunk(60)]))
    one = stages().step_ps(step_of(chunks=[chunk(100)]))
    three = stages().step_ps(step_of(chunks=[chunk(100), chunk(60), chunk(50)]))
    assert two == one
    assert three == one + 10 + 50 * (5 + 1)


def test_what_is_copied_first_is_copied_beside_the_round():
    assert stages().step_ps(step_of(4, 400, copied_slots=9)) == stages().step_ps(step_of(4, 400)) + 27


def test_the_range_of_a_round_is_that_of_all_its_micro_batches():
    whole = LinearTiming(step_ps=1)
    whole.fitted = FittedRange({"sequences": Span("decode", 1, 64), "context": Span("decode", 1, 1000)})
    found = PipelineTiming(whole, stages=4, send_ps=0, send_token_ps=0).fitted
    assert (found.spans["sequences"].high, found.spans["context"].high) == (256, 1000)


@given(rows=st.integers(1, 300), context=st.integers(1, 100_000), count=st.integers(2, 8))
def test_the_line_of_a_decode_step_is_the_step(rows, context, count):
    base, slope, until = stages(count).decode(rows, context)
    assert stages(count).step_ps(step_of(rows, context)) == base + slope * context
    assert until is None


@settings(max_examples=30)
@given(
    lengths=st.lists(
        st.tuples(st.integers(1, 90), st.integers(1, 120), st.integers(0, 20_000)), min_size=1, max_size=8
    ),
    count=st.integers(2, 4),
)
def test_leaps_and_single_steps_are_the_same_on_stages(lengths, count):
    requests, now = [], 0
    for number, (prompt, output, later) in enumerate(lengths):
        now += later
        requests.append(Request(number, now, prompt, output))

    def run(stepwise):
        allocator = PagedAllocator(40 * 16, block_size=16)
        scheduler = ContinuousScheduler(allocator, max_num_seqs=8, max_num_batched_tokens=64)
        return everything(
            simulate(iter(requests), scheduler, stages(count), max_model_len=300, stepwise=stepwise, check=True)
        )

    assert run(False) == run(True)


@pytest.mark.parametrize("count", [2, 4])
def test_stages_never_take_longer_than_one_but_for_the_sends(count):
    free = PipelineTiming(WHOLE, stages=count, send_ps=0, send_token_ps=0)
    for rows in (1, 3, 8, 100):
        assert free.step_ps(step_of(rows, 50 * rows)) <= WHOLE.step_ps(step_of(rows, 50 * rows))

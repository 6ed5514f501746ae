"""`LinearTiming`: a step time that is given outright."""

import pytest

from kvsim.request import Sequence
from kvsim.step import Chunk
from kvsim.timing.interface import LinearTiming
from tests.batches import step_of


def chunk(tokens: int, written: int = 0) -> Chunk:
    return Chunk(Sequence(0, tokens + written, None), tokens, written)


def test_with_a_time_per_step_alone_every_step_takes_the_same():
    timing = LinearTiming(step_ps=500)
    assert timing.decode(1) == timing.decode(99) == (500, 0, None)
    assert timing.step_ps(step_of(0, 0, [chunk(1000)], 0)) == 500
    assert timing.step_ps(step_of(99, 12_345, [chunk(7), chunk(8)], 6)) == 500


def test_every_part_of_a_batch_adds_its_own_time():
    timing = LinearTiming(
        step_ps=1_000_000, per_sequence_ps=10_000, per_context_ps=100, per_prefill_ps=7, per_copied_ps=3
    )
    # 4 decoding and 2 prefilling sequences, 50 context tokens, 30 prefill tokens, 9 slots copied.
    expected = 1_000_000 + 6 * 10_000 + 50 * 100 + 30 * 7 + 9 * 3
    assert timing.step_ps(step_of(4, 50, [chunk(10), chunk(20, written=40)], 9)) == expected


@pytest.mark.parametrize("decodes", [1, 2, 250])
@pytest.mark.parametrize("context", [1, 777])
def test_a_step_that_only_decodes_is_a_base_and_a_slope(decodes, context):
    timing = LinearTiming(step_ps=5, per_sequence_ps=3, per_context_ps=2)
    base, slope, _ = timing.decode(decodes)
    assert timing.step_ps(step_of(decodes, context, [], 0)) == base + slope * context


@pytest.mark.parametrize("step_ps", [0, -1])
def test_a_step_takes_at_least_a_picosecond(step_ps):
    with pytest.raises(ValueError, match=f"step_ps is {step_ps}"):
        LinearTiming(step_ps=step_ps)


def test_its_provenance_is_the_scenario():
    assert LinearTiming(step_ps=1).provenance == "given in the scenario"


def test_a_page_that_is_mapped_takes_its_own_time():
    timing = LinearTiming(step_ps=100, per_mapped_ps=7)
    assert timing.step_ps(step_of(1, 10, [], 0, 64)) == 100 + 64 * 7
    assert timing.step_ps(step_of(1, 10, [], 0)) == timing.decode(1)[0] == 100

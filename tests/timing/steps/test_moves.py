"""What a step moves is charged as this GPU measured it, piece by piece, else as the data sheet says."""

import pytest

from kvsim.timing.moves import Moves
from kvsim.timing.steps.moves import CHUNK_BYTES, measured_moves
from tests.batches import step_of

BASE = Moves(copied_ps=10, mapped_ps=20, swapped_ps=30)
SIZES = {"kv_bytes": 131_072, "tensors": 64, "block_size": 16, "page_bytes": CHUNK_BYTES}
COPY = {"hbm:copy": {"fixed_us": 3.0, "rate_gb_s": 4000.0}}
MAP = {"map:vmm_map": {"fixed_us": 5.0, "chunk_us": 40.0}}


def swap(method, way, block_us, rate):
    return {f"swap_blocks:{method}_{way}": {"fixed_us": 9.0, "block_us": block_us, "rate_gb_s": rate}}


def test_nothing_measured_changes_nothing():
    assert measured_moves(BASE, {}, **SIZES) == (BASE, [])


def test_a_copied_slot_is_read_and_written_at_the_rate_of_a_copy():
    moves, known = measured_moves(BASE, COPY, **SIZES)
    assert moves.copied_ps == round(2 * 131_072 / 4e12 * 1e12)
    assert (moves.mapped_ps, moves.swapped_ps) == (20, 30)
    assert known == ["copies"]


def test_a_page_takes_what_a_chunk_of_its_size_took_and_other_pages_were_not_measured():
    assert measured_moves(BASE, MAP, **SIZES)[0].mapped_ps == 40_000_000
    assert measured_moves(BASE, MAP, **{**SIZES, "page_bytes": 65_536})[0].mapped_ps == 20
    assert measured_moves(BASE, MAP, **{**SIZES, "page_bytes": None})[0].mapped_ps == 20


def test_a_swapped_slot_pays_its_share_of_the_copies_of_its_block():
    ways = swap("loop", "out", 2.0, 50.0) | swap("loop", "in", 4.0, 50.0)
    moves, known = measured_moves(BASE, ways, **SIZES)
    assert moves.swapped_ps == pytest.approx((3e-6 * 64 / 16 + 131_072 / 50e9) * 1e12, abs=1)
    assert known == ["swaps"]
    assert measured_moves(BASE, ways, **{**SIZES, "block_size": None})[0].swapped_ps == round(131_072 / 50e9 * 1e12)


def test_batched_copies_are_taken_where_both_were_measured():
    ways = swap("loop", "out", 2.0, 50.0) | swap("batch", "out", 0.5, 50.0)
    assert measured_moves(BASE, ways, **SIZES)[0].swapped_ps == pytest.approx(
        (0.5e-6 * 4 + 131_072 / 50e9) * 1e12, abs=1
    )


def test_a_step_pays_for_all_that_it_moves():
    plan = step_of(1, 100, copied_slots=3)
    plan.gathered_slots, plan.mapped_pages, plan.swapped_slots = 4, 5, 6
    assert BASE.of(plan) == 10 * 7 + 20 * 5 + 30 * 6

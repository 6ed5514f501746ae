"""`calibrated`: whole picoseconds that leaps can add up, and what must hold for every batch."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.request import PS_PER_S, Sequence
from kvsim.step import Chunk
from kvsim.timing.calibrated import CalibratedTiming
from kvsim.timing.roofline import RooflineTiming
from kvsim.timing.steps.engine import overheads
from tests.batches import step_of

NAMES = ["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite", "gemma-3-4b"]


@cache
def timing(name="llama-3.1-8b", card="H100", engine="vllm", version="0.33", ranks=1, weights="bf16"):
    footprint = Footprint(model(name), tensor_parallel=ranks, weights_dtype=weights)
    chip = gpu(card)
    return CalibratedTiming(footprint, chip, RooflineTiming(footprint, chip), engine=engine, version=version)


def chunk(tokens, written=0):
    return Chunk(Sequence(0, tokens + written, None), tokens, written)


@pytest.mark.parametrize("name", NAMES)
@given(rows=st.integers(1, 2000), context=st.integers(0, 4_000_000))
def test_a_decode_step_is_its_base_and_its_slope_to_the_picosecond(name, rows, context):
    base, slope, _ = timing(name).decode(rows)
    assert timing(name).step_ps(step_of(rows, context)) == base + slope * context
    assert isinstance(base, int)
    assert isinstance(slope, int)


@given(rows=st.integers(1, 1000), more=st.integers(1, 1000))
def test_more_rows_never_take_less(rows, more):
    assert timing().step_ps(step_of(rows + more, 1000 * (rows + more))) >= timing().step_ps(step_of(rows, 1000 * rows))


@given(tokens=st.integers(1, 4096), written=st.integers(0, 20_000), rows=st.integers(0, 128))
def test_a_chunk_beside_decodes_adds_to_their_step(tokens, written, rows):
    alone = timing().step_ps(step_of(rows, 500 * rows)) if rows else 0
    assert timing().step_ps(step_of(rows, 500 * rows, [chunk(tokens, written)])) > alone


def test_a_chunk_behind_a_long_prefix_takes_longer():
    near, far = (timing().step_ps(step_of(chunks=[chunk(2048, written)])) for written in (0, 65536))
    assert far > 1.5 * near


def test_copies_and_mapped_pages_are_charged():
    plain = timing().step_ps(step_of(8, 8000))
    assert timing().step_ps(step_of(8, 8000, copied_slots=1000)) > plain
    assert timing().step_ps(step_of(8, 8000, mapped_pages=10)) > plain


def test_a_step_that_decodes_reads_the_weights_at_least():
    read_s = 2 * 7.5e9 / 3.35e12
    assert timing().decode(1)[0] > read_s * PS_PER_S


def test_one_rank_of_four_takes_less_than_one_alone():
    assert timing("llama-3.1-8b", ranks=4).decode(64)[0] < timing("llama-3.1-8b").decode(64)[0]


def test_eight_bit_weights_are_read_in_less_time():
    assert timing(weights="fp8").decode(8)[0] < 0.75 * timing().decode(8)[0]


def test_it_says_where_its_numbers_come_from():
    assert timing().provenance == "fitted to published measurements; overheads of vllm"
    assert timing(card="H200").provenance.startswith("datasheet and the median of other GPUs' efficiencies")


def test_an_old_engine_costs_more_between_steps():
    assert overheads("vllm", "0.2")[0] == "vllm-2023"
    assert overheads("sglang", "0.5.9")[0] == "sglang"
    assert overheads("orca", "")[0] == "vllm"
    assert timing(version="0.2").decode(64)[0] > timing(version="0.33").decode(64)[0]


def test_kv_of_thirty_two_bits_is_refused():
    footprint, chip = Footprint(model("llama-3.1-8b"), kv_dtype="fp32"), gpu("H100")
    with pytest.raises(ValueError, match="no kernel on 32-bit KV was measured"):
        CalibratedTiming(footprint, chip, RooflineTiming(footprint, chip), engine="vllm", version="0.33")

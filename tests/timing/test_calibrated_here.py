"""`calibrated` on a GPU that measured itself: its own kernel's bends, block tables and moves, exact for leaps."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.request import PS_PER_S, Sequence
from kvsim.step import Chunk
from kvsim.timing.calibrated import MEASURED_KNOTS, CalibratedTiming
from kvsim.timing.families import device, family
from kvsim.timing.fitting.calibration import ON_THIS_GPU, Calibration, Entry
from kvsim.timing.roofline import RooflineTiming
from tests.batches import step_of

GPU = "H200-SXM"
BLOCKS = {f"block_{size}_factor": 1 + 1.0 / size for size in (1, 8, 16, 32, 64, 128)}
VALUES = {
    "gemm:bf16": {"fixed_us": 4.0, "bandwidth_gb_s": 4000.0, "peak_tflop_s": 700.0, "blend_power": 3.0},
    "paged_attention:bf16": {"fixed_us": 5.0, "bandwidth_gb_s": 3500.0, "walk_gb_s": 24.0, "combine_us": 2.0, **BLOCKS},
    "causal_attention:bf16": {"fixed_us": 8.0, "peak_tflop_s": 400.0, "ramp_tokens": 100.0},
    "hbm:copy": {"fixed_us": 3.0, "rate_gb_s": 3900.0},
    "map:vmm_map": {"fixed_us": 5.0, "chunk_us": 30.0},
    "swap_blocks:batch_out": {"fixed_us": 9.0, "block_us": 1.0, "rate_gb_s": 50.0},
}


def entry(name):
    values = VALUES[name]
    return Entry(GPU, name, values, dict.fromkeys(values, 0.01), 99, {}, "r.jsonl", "ab" * 32, 0.01, 0.02)


CALIBRATION = Calibration(
    {(GPU, name): entry(name) for name in VALUES},
    ON_THIS_GPU,
    about={"env": {"sm_count": 132}, "input_sha256": "ab" * 32},
)


@cache
def timing(name="llama-3.1-8b", block_size=16, page_bytes=2 << 20, **dtypes):
    footprint, card = Footprint(model(name), **dtypes), gpu(GPU)
    return CalibratedTiming(
        footprint, card, RooflineTiming(footprint, card), engine="vllm", version="0.33", calibration=CALIBRATION,
        block_size=block_size, page_bytes=page_bytes,
    )  # fmt: skip


def attention_ps(rows, context):
    """Of all layers of Llama-3.1-8B, by the family itself."""
    sizes = {"sequences": rows, "context": context, "heads": 32, "kv_heads": 8, "head_dim": 128, "block": 16}
    columns = {name: np.array([float(size)]) for name, size in sizes.items()}
    one = family("paged_attention:bf16")
    return 32 * PS_PER_S * float(one.seconds(VALUES[one.name], columns, device(GPU))[0])


@given(rows=st.integers(1, 600), mean=st.integers(0, 300_000), extra=st.integers(0, 500))
def test_a_decode_step_is_its_line_around_its_context_to_the_picosecond(rows, mean, extra):
    context = rows * mean + min(extra, rows - 1)
    base, slope, until = timing().decode(rows, context)
    assert timing().step_ps(step_of(rows, context)) == base + slope * context
    assert until is None or context < until
    assert slope >= 0


@given(rows=st.integers(1, 600), mean=st.integers(0, 300_000))
def test_a_line_holds_up_to_where_it_says_and_no_further(rows, mean):
    line = timing().decode(rows, rows * mean)
    if line.until_context is not None:
        assert timing().decode(rows, line.until_context - 1) == line
        assert timing().decode(rows, line.until_context).until_context != line.until_context


@pytest.mark.parametrize("rows", [1, 4, 64])
def test_contexts_cost_what_the_measured_kernel_takes_for_them(rows):
    step = [timing().step_ps(step_of(rows, rows * context)) for context in MEASURED_KNOTS]
    kernel = [attention_ps(rows, context) for context in MEASURED_KNOTS]
    long = len(MEASURED_KNOTS) - 1
    scale = (step[long] - step[long - 1]) / (kernel[long] - kernel[long - 1])
    for at in (5, 6, 7):  # where the kernel's time grows with the context for every number of rows
        assert step[long] - step[at] == pytest.approx(scale * (kernel[long] - kernel[at]), rel=1e-3)


def test_one_long_context_takes_what_was_measured_and_not_what_short_ones_would_say():
    near, far = (timing().step_ps(step_of(1, context)) for context in (8192, 65536))
    bytes_more = 32 * 4096 * (65536 - 8192)
    assert far - near > 0.8 * PS_PER_S * bytes_more / 3.5e12


def test_a_chunk_beside_long_contexts_pays_for_both():
    chunk = Chunk(Sequence(0, 512, None), 512, 0)
    short, long = (timing().step_ps(step_of(4, 4 * context, [chunk])) for context in (1000, 60_000))
    alone = [timing().step_ps(step_of(4, 4 * context)) for context in (1000, 60_000)]
    assert long - short == pytest.approx(alone[1] - alone[0], abs=2)  # each is rounded by itself


def test_smaller_blocks_take_longer_and_kv_in_one_piece_least():
    times = [timing(block_size=size).step_ps(step_of(64, 64 * 4000)) for size in (1, 8, 16, 128, None)]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == len(times)


def test_moves_are_those_that_this_gpu_measured():
    plain = timing().step_ps(step_of(8, 8000))
    kv_bytes = 131_072
    copied = timing().step_ps(step_of(8, 8000, copied_slots=1000)) - plain
    assert copied == 1000 * round(2 * kv_bytes / 3.9e12 * PS_PER_S)
    mapped = step_of(8, 8000)
    mapped.mapped_pages = 10
    assert timing().step_ps(mapped) - plain == 10 * 30_000_000
    swapped = step_of(8, 8000)
    swapped.swapped_slots = 16
    calls_s, bytes_s = 64 * 1e-6, 16 * kv_bytes / 50e9  # a call for each tensor of the block
    assert timing().step_ps(swapped) - plain == pytest.approx((calls_s + bytes_s) * PS_PER_S, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "dtypes", "missing"),
    [
        ("llama-3.1-8b", {"kv_dtype": "fp8"}, "decode attention"),
        ("llama-3.1-8b", {"weights_dtype": "int4"}, "linear layers"),
        ("deepseek-v2-lite", {}, "decode attention"),
    ],
)
def test_what_this_gpu_did_not_measure_is_not_said_to_be_its_own(name, dtypes, missing):
    said = timing(name, **dtypes).provenance
    assert said.startswith("calibrated on this GPU (results abababababab): ")
    assert missing not in said.partition("; all else")[0]

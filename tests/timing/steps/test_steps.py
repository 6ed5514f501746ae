"""A step from its kernels: shapes that a hand can count, times that add up."""

import numpy as np
import pytest

from kvsim.catalog.models import model
from kvsim.catalog.weights import count
from kvsim.timing.families import device
from kvsim.timing.fitting.calibration import Calibration
from kvsim.timing.steps.kernels import Kernels
from kvsim.timing.steps.shapes import Layout, Shapes


def one(value):
    return np.array([float(value)])


def number(column):
    return column.item()


def kernels(name, layout=None, dtype="bf16", gpu="H100"):
    chip = device(gpu)
    return Kernels(Shapes(model(name), layout or Layout(), dtype), chip, Calibration().parameters(chip.name))


@pytest.mark.parametrize(
    "name", ["llama-3.1-8b", "llama-2-70b", "opt-13b", "qwen3-32b", "deepseek-v3", "gpt-oss-120b", "mixtral-8x7b"]
)
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_matrices_of_all_ranks_are_the_weights_that_a_token_passes(name, ranks):
    shape = model(name)
    layout = Layout(tensor_parallel=ranks, expert_tensor=ranks)
    found = sum(matrix.n * matrix.k * matrix.times for matrix in Shapes(shape, layout).matrices) * ranks
    weights = count(shape)
    routed = shape.experts_active * weights.expert if shape.moe_layers else 0
    # Latent attention's down projections and the router are whole on every rank.
    assert found == pytest.approx(weights.linear - routed, rel=0.001 if ranks == 1 else 0.12)


def test_tensor_parallel_ranks_share_the_work_and_pay_for_talking():
    alone, four = (
        kernels("llama-3.1-70b", Layout(tensor_parallel=ranks)).decode(one(16), one(1024)) for ranks in (1, 4)
    )
    assert number(four.linear) == pytest.approx(number(alone.linear) / 4, rel=0.25)
    assert number(alone.collectives) == 0
    assert number(four.collectives) > 0
    assert number(four.total) < number(alone.total)


def test_a_decode_step_is_never_faster_than_reading_its_weights_and_kv():
    shape = model("llama-3.1-8b")
    read = 2 * count(shape).linear + 64 * 4096 * 131072
    found = number(kernels("llama-3.1-8b").decode(one(64), one(4096)).total)
    assert found > read / 3.35e12


def test_attention_in_a_window_stops_growing_behind_it():
    gemma = kernels("gemma-3-27b")
    near, far = (number(gemma.decode(one(8), one(context)).attention) for context in (4096, 8192))
    full = kernels("llama-2-70b")
    full_near, full_far = (number(full.decode(one(8), one(context)).attention) for context in (4096, 8192))
    assert far / near < full_far / full_near


def test_data_parallel_groups_have_a_part_of_the_batch_each():
    whole = kernels("deepseek-v3", Layout(tensor_parallel=8, expert_parallel=8), "fp8").decode(one(256), one(4096))
    apart = kernels("deepseek-v3", Layout(data_parallel=8, expert_parallel=8), "fp8").decode(one(256), one(4096))
    assert number(apart.attention) < number(whole.attention)  # a latent is held whole by every tensor-parallel rank
    assert number(apart.linear) > number(whole.linear)


def test_four_bit_moe_checkpoints_quantise_their_experts_alone():
    assert Shapes(model("deepseek-v3"), Layout(), "fp4").dense_dtype == "bf16"
    assert Shapes(model("llama-3.1-70b"), Layout(), "fp4").dense_dtype == "fp4"

"""Captured batch sizes by release and card, and what padding and launching cost a step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.timing.calibrated import CalibratedTiming
from kvsim.timing.roofline import RooflineTiming, roofline_parameters
from kvsim.timing.steps.graphs import EAGER, graphs
from tests.batches import step_of

FOOTPRINT = Footprint(model("llama-3.1-8b"))


def captured(engine="vllm", version="0.33", card="H100", seqs=256):
    return graphs(engine, version, gpu(card), seqs)


def roofline(of=None, footprint=FOOTPRINT):
    return RooflineTiming(footprint, gpu("H100"), graphs=of)


def calibrated(of=None, footprint=FOOTPRINT):
    chip = gpu("H100")
    base = RooflineTiming(footprint, chip)
    return CalibratedTiming(footprint, chip, base, engine="vllm", version="0.33", graphs=of)


@pytest.mark.parametrize(("rows", "padded"), [(1, 1), (3, 4), (5, 8), (9, 16), (249, 256), (257, 272), (500, 512)])
def test_vllm_pads_to_the_next_size_it_captured(rows, padded):
    assert captured().padded(rows) == padded


def test_vllm_captures_up_to_twice_its_sequences_and_no_further_than_512():
    assert captured(seqs=64).sizes[-1] == 128
    assert captured(seqs=64).padded(129) is None
    assert captured(seqs=1024).sizes[-1] == 512


def test_before_its_graphs_came_vllm_captured_none():
    assert captured(version="0.2") is None
    assert captured(version="0.4").sizes[-1] == 256


@pytest.mark.parametrize(("card", "most"), [("T4", 8), ("RTX 4090", 48), ("L40S", 32), ("H100", 256), ("B200", 512)])
def test_sglang_captures_what_the_memory_of_the_card_allows(card, most):
    assert captured("sglang", "0.5.23", card).sizes[-1] == most


def test_sglang_has_a_size_of_twelve():
    assert captured("sglang", "0.5.23").padded(9) == 12


def test_an_engine_whose_graphs_nobody_looked_up_is_taken_as_it_is():
    assert captured("orca", "OSDI'22") is None


@pytest.mark.parametrize("timing", [roofline, calibrated])
def test_a_padded_batch_takes_the_layers_of_the_captured_size(timing):
    plain, padding = timing(), timing(captured())
    assert padding.decode(250).base_ps >= plain.decode(250).base_ps
    assert padding.decode(250).base_ps <= padding.decode(256).base_ps
    assert padding.decode(256) == plain.decode(256)
    assert padding.decode(250).slope_ps == plain.decode(250).slope_ps


@pytest.mark.parametrize("timing", [roofline, calibrated])
def test_without_a_graph_each_layer_is_launched(timing):
    launched = timing(EAGER).decode(8).base_ps - timing().decode(8).base_ps
    assert 150e6 * 32 < launched < 250e6 * 32  # microseconds a layer, in picoseconds
    beyond = timing(captured(seqs=64)).decode(200).base_ps - timing().decode(200).base_ps
    assert beyond == pytest.approx(launched, rel=1e-6)


@pytest.mark.parametrize("timing", [roofline, calibrated])
@given(rows=st.integers(1, 700), context=st.integers(1, 10**6))
def test_a_planned_step_takes_what_its_line_says(timing, rows, context):
    base, slope, _ = timing(captured()).decode(rows)
    assert timing(captured()).step_ps(step_of(rows, context)) == base + slope * context


def test_all_reduces_that_are_launched_one_by_one_take_longer():
    pair = Footprint(model("llama-3.1-8b"), tensor_parallel=2)
    alone = calibrated(EAGER).decode(8).base_ps - calibrated().decode(8).base_ps
    assert calibrated(EAGER, pair).decode(8).base_ps - calibrated(None, pair).decode(8).base_ps > alone


def test_the_roofline_launches_by_a_parameter_of_its_own():
    free = RooflineTiming(FOOTPRINT, gpu("H100"), roofline_parameters({"eager_layer_s": 0}), graphs=EAGER)
    assert free.decode(8) == roofline().decode(8)

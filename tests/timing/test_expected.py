"""The error that an answer states: that of its own class, of the next one where nobody measured it, or none."""

import json
from importlib.resources import files

import pytest

from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.timing.expected import expected_error, unknown_error

DENSE, MOE = "llama-3.1-8b", "qwen3-30b-a3b"


def expect(timing="calibrated", name=DENSE, card="H100", engine="vllm", version="0.33"):
    return expected_error(timing, model(name), gpu(card), engine, version)


def shipped():
    return json.loads(files("kvsim.timing").joinpath("data/expected_errors.json").read_text("utf-8"))


def class_of(**wanted):
    (one,) = [one for one in shipped()["classes"] if all(one[key] == value for key, value in wanted.items())]
    return one


@pytest.mark.parametrize(("name", "kind"), [(DENSE, "dense"), (MOE, "moe")])
def test_a_gpu_that_was_served_on_has_its_own_error_by_kind_of_model(name, kind):
    own = class_of(timing="calibrated", unseen="model", gpu="B200-SXM", engine="vllm", kind=kind)
    found = expect(name=name, card="B200")
    assert (found["tpot_median"], found["tpot_p90"], found["runs"]) == (
        own["tpot"]["median"], own["tpot"]["p90"], own["tpot"]["n"],
    )  # fmt: skip
    assert (found["ttft_median"], found["ttft_p90"]) == (own["ttft"]["median"], own["ttft"]["p90"])
    assert "on B200-SXM under vllm" in found["basis"]


def test_a_gpu_that_nobody_served_on_has_the_error_of_gpus_left_out_of_every_fit():
    unseen = class_of(timing="calibrated", unseen="gpu", engine="vllm", kind="dense")
    found = expect(card="L40S")
    assert found["tpot_median"] == unseen["tpot"]["median"]
    assert "a GPU of which no served run was fitted" in found["basis"]


def test_an_engine_that_nobody_measured_has_the_error_of_releases_left_out():
    unseen = class_of(timing="calibrated", unseen="engine", kind="dense")
    found = expect(engine="orca", version="")
    assert found["tpot_median"] == unseen["tpot"]["median"]
    assert "an engine of which no served run was fitted" in found["basis"]


def test_an_old_vllm_has_the_error_of_its_own_generation():
    own = class_of(timing="calibrated", unseen="model", gpu="A100-SXM-80GB", engine="vllm-2023")
    assert expect(card="A100-SXM-80GB", version="0.2")["tpot_median"] == own["tpot"]["median"]


def test_the_roofline_states_its_own_error():
    own = class_of(timing="roofline", gpu="H100-SXM", engine="vllm", kind="dense")
    found = expect("roofline")
    assert (found["tpot_median"], found["ttft_median"]) == (own["tpot"]["median"], own["ttft"]["median"])
    assert "nothing fitted" in found["basis"]
    assert found["ttft_median"] > expect()["ttft_median"]


@pytest.mark.parametrize("asked", [{"card": "MI300X"}, {"card": "L40S", "engine": "orca"}])
def test_where_no_class_fits_nothing_is_stated_and_the_answer_says_so(asked):
    """Another maker's card under an engine measured on NVIDIA's alone; neither the engine nor the card measured."""
    found = expect(**asked)
    assert found["tpot_median"] is None
    assert found["ttft_p90"] is None
    assert found["runs"] == 0
    assert found["basis"].startswith("not known: ")


def test_what_is_not_known_for_another_reason_says_which():
    assert unknown_error("the scenario gives parameters of its own")["basis"].endswith("parameters of its own")


def test_the_shipped_table_says_where_it_comes_from():
    table = shipped()
    assert table["written_by"] == "kvsim validate --expected"
    assert len(table["provenance"]["inputs_sha256"]["e2e_serving.csv"]) == 64
    assert {one["timing"] for one in table["classes"]} == {"calibrated", "roofline"}

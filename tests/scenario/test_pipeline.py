"""`pipeline_parallel` in a scenario: each stage holds a part of the layers, so that far more KV fits."""

import json

import pytest

from kvsim.cli.main import main

SCENARIO = """
model: llama-3.1-8b
gpu: RTX 4090
engine: {profile: vllm@0.33-sync, max_model_len: 4096, max_num_seqs: 64}
workload: {requests: 16, rate: 20/s, prompt_tokens: 300, output_tokens: 100}
"""


@pytest.fixture
def run(tmp_path, capsys):
    path = tmp_path / "stages.yaml"
    path.write_text(SCENARIO)

    def found(*sets, code=0, options=()):
        told = [word for one in sets for word in ("--set", one)]
        assert main(["run", str(path), "--json", *told, *options]) == code
        out = capsys.readouterr()
        return json.loads(out.out) if code == 0 else out.err

    return found


def test_two_stages_hold_half_of_the_weights_and_of_each_tokens_kv(run):
    one, two = run(), run("pipeline_parallel=2")
    halved = two["metrics"]["device_bytes"]["weights"] / one["metrics"]["device_bytes"]["weights"]
    assert halved == pytest.approx(0.5, abs=0.05)
    assert two["metrics"]["pool_tokens"] > 4 * one["metrics"]["pool_tokens"]
    assert two["metrics"]["device_bytes"]["left"] >= 0


def test_a_pool_of_memory_is_that_of_each_stage(run):
    one, two = run("pool.memory=4GiB"), run("pool.memory=4GiB", "pipeline_parallel=2")
    assert two["metrics"]["pool_tokens"] == 2 * one["metrics"]["pool_tokens"]


@pytest.mark.parametrize("engine", ["vllm@0.33-sync", "vllm@0.33"])
def test_leaping_and_stepping_are_the_same_on_stages(run, engine):
    sets = ("pipeline_parallel=2", f"engine.profile={engine}", "timing=calibrated", "placement.host_share=10%")
    assert run(*sets) == run(*sets, options=("--stepwise", "--check"))


def test_a_pasted_command_says_it(run):
    said = run(options=("--engine-args", "vllm serve meta-llama/Llama-3.1-8B --pipeline-parallel-size 2"))
    assert said["metrics"]["pool_tokens"] == run("pipeline_parallel=2")["metrics"]["pool_tokens"]


def test_an_engine_that_has_no_stages_is_refused(run):
    said = run("pipeline_parallel=2", "engine.profile=sglang@0.5.23", code=2)
    assert "pipeline_parallel" in said
    assert "vllm@0.33" in said


def test_the_error_to_expect_on_stages_is_not_known(run):
    assert run("pipeline_parallel=2")["expected_error"]["tpot_median"] is None


def test_more_stages_than_layers_are_refused(run):
    said = run("pipeline_parallel=33", "pool.blocks=100", code=2)
    assert "pipeline_parallel" in said
    assert "32 layers" in said

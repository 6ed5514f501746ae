"""`engine.enforce_eager`: slower decode steps, and the memory of the graphs goes to the pool."""

import json

import pytest

from kvsim.cli.main import main

SCENARIO = """
model: llama-3.1-8b
gpu: H100
engine: {profile: vllm@0.33-sync, max_model_len: 4096, max_num_seqs: 64}
workload: {requests: 12, rate: 20/s, prompt_tokens: 100, output_tokens: 60}
"""


@pytest.fixture
def run(tmp_path, capsys):
    path = tmp_path / "eager.yaml"
    path.write_text(SCENARIO)

    def found(*sets, options=()):
        told = [word for one in sets for word in ("--set", one)]
        assert main(["run", str(path), "--json", *told, *options]) == 0
        return json.loads(capsys.readouterr().out)["metrics"]

    return found


@pytest.mark.parametrize("timing", ["roofline", "calibrated"])
def test_launching_each_kernel_costs_time_and_saves_the_memory_of_graphs(run, timing):
    captured, eager = run(f"timing={timing}"), run(f"timing={timing}", "engine.enforce_eager=true")
    assert eager["tpot_s"]["p50"] > 1.5 * captured["tpot_s"]["p50"]
    assert eager["pool_tokens"] > captured["pool_tokens"]


def test_an_engine_without_graphs_has_none_to_leave_out(run):
    profile = "engine.profile=vllm@0.2"
    assert run(profile)["tpot_s"] == run(profile, "engine.enforce_eager=true")["tpot_s"]


def test_a_pasted_command_says_it(run):
    eager = run("engine.enforce_eager=true")
    said = run(options=("--engine-args", "vllm serve meta-llama/Llama-3.1-8B --enforce-eager"))
    assert said["tpot_s"] == eager["tpot_s"]


@pytest.mark.parametrize("rows", [3, 50])
def test_padded_batches_leap_as_they_step(run, rows):
    sets = (f"workload.requests={rows}", "workload.rate=1000/s", "timing=calibrated")
    assert run(*sets) == run(*sets, options=("--stepwise", "--check"))

"""One answer for a pool: what `kvsim capacity` plans is what `kvsim run` has where no pool is given."""

import json
from typing import Any

import pytest

from kvsim import Scenario, scenario
from kvsim.cli.main import main
from kvsim.scenario.build import build

TRAFFIC = {"rate": "4/s", "requests": 5, "prompt_tokens": 500, "output_tokens": 100}

CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({"model": "llama-3.1-8b", "gpu": "RTX 4090"}, ["--engine", "vllm@0.33"]),
    (
        {"model": "llama-3.1-8b", "gpu": "RTX 4090", "engine": {"max_model_len": 8192, "max_num_seqs": 64}},
        ["--engine", "vllm@0.33", "--max-model-len", "8192", "--max-num-seqs", "64"],
    ),
    (
        {"model": {"name": "qwen3-4b", "weights_dtype": "fp8", "kv_dtype": "fp8"}, "gpu": "L40S"},
        ["--engine", "vllm@0.33", "--quantization", "fp8", "--kv-cache-dtype", "fp8"],
    ),
    (
        {"model": {"name": "llama-3.1-8b", "weights_dtype": "int4"}, "gpu": "T4"},
        ["--engine", "vllm@0.33", "--quantization", "w4a16"],
    ),
    # A profile has the limits of a small card, the release those of the card that it runs on.
    (
        {
            "model": "llama-3.1-70b",
            "gpu": "H100",
            "tensor_parallel": 4,
            "engine": {"max_num_seqs": 1024, "max_num_batched_tokens": 8192},
        },
        ["--engine", "vllm@0.33", "--tensor-parallel-size", "4"],
    ),
    (
        {"model": "qwen3-30b-a3b", "gpu": "H100"},
        ["--engine", "vllm@0.33", "--max-num-seqs", "256", "--max-num-batched-tokens", "2048"],
    ),
    (
        {"model": "opt-13b", "gpu": "A100-SXM-40GB", "engine": "vllm@0.2"},
        ["--engine", "vllm@0.2", "--max-num-batched-tokens", "2560"],
    ),
    (
        {
            "model": "llama-3.1-8b",
            "gpu": "RTX 4090",
            "allocator": {"name": "paged", "block_size": 32},
            "capacity": {
                "gpu_memory_utilization": 0.95,
                "activation": "1.25GiB",
                "non_torch": "0.5GiB",
                "cuda_graphs": "0.75GiB",
            },
        },
        ["--engine", "vllm@0.33", "--block-size", "32", "--gpu-memory-utilization", "0.95",
         "--activation-gib", "1.25", "--non-torch-gib", "0.5", "--cuda-graph-gib", "0.75"],
    ),
]  # fmt: skip


def planned(capsys: pytest.CaptureFixture[str], *asked: str) -> dict[str, Any]:
    """What the planner says, whether a request of the longest length fits or not."""
    assert main(["capacity", *asked, "--json"]) in (0, 3)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def run_slots(said: dict[str, Any]) -> int:
    return build(Scenario.from_dict(said | {"workload": TRAFFIC}), 0).scheduler.allocator.pool_slots


@pytest.mark.parametrize(("said", "flags"), CASES)
def test_a_run_has_the_blocks_that_capacity_plans_for_the_same_flags(said, flags, capsys):
    name = said["model"] if isinstance(said["model"], str) else said["model"]["name"]
    plan = planned(capsys, "--model", name, "--gpu", said["gpu"], *flags)
    assert run_slots(said) == plan["kv_blocks"] * plan["block_size"] > 0


@pytest.mark.parametrize("said", [said for said, _ in CASES])
def test_a_run_has_the_blocks_that_capacity_plans_for_the_scenario(said, capsys, tmp_path):
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(said | {"workload": TRAFFIC}))
    plan = planned(capsys, str(file))
    slots = build(scenario.load(file), 0).scheduler.allocator.pool_slots
    assert slots == plan["kv_blocks"] * plan["block_size"] > 0


@pytest.mark.parametrize("name", ["gemma-3-12b", "gpt-oss-20b", "deepseek-v2-lite"])
def test_where_layers_differ_the_memory_is_the_same_and_a_run_gives_every_layer_every_token(name, capsys, tmp_path):
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps({"model": name, "gpu": "H100", "workload": TRAFFIC}))
    plan = planned(capsys, str(file))
    simulation = build(scenario.load(file), 0)
    taken = simulation.scheduler.allocator.pool_slots * simulation.bytes_per_slot
    a_block, printed_digits = 16 * simulation.bytes_per_slot, 2**30 // 1000
    assert taken == pytest.approx(plan["kv_memory_gib"] * 2**30, abs=a_block + printed_digits)


def test_what_does_not_fit_ends_a_run_as_it_ends_a_plan(capsys, tmp_path):
    said = {"model": "llama-3.1-70b", "gpu": "RTX 4090", "workload": TRAFFIC}
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(said))
    assert main(["capacity", str(file)]) == main(["run", str(file)]) == 3
    message = capsys.readouterr().err
    for part in ("weights 131.45 GiB", "overheads", "tensor_parallel: 8 would fit"):
        assert part in message


def test_what_no_engine_splits_is_wrong_input_in_both(capsys, tmp_path):
    # 50,272 rows, padded to 50,304, are no multiple of 5, though the 40 heads are.
    said = {"model": "opt-13b", "gpu": "RTX 4090", "tensor_parallel": 5, "workload": TRAFFIC}
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(said))
    assert main(["capacity", str(file)]) == main(["run", str(file)]) == 2
    assert "does not divide the vocabulary of opt-13b" in capsys.readouterr().err

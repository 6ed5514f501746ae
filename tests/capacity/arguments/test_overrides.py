"""Commands as keys of a scenario."""

import csv
from pathlib import Path

import pytest

import kvsim.capacity.arguments
from kvsim import Scenario
from kvsim.capacity.arguments import flags_for_run, parse_command, scenario_overrides
from kvsim.capacity.arguments.values import READERS
from kvsim.catalog.weights import DTYPE_BITS

DATA = Path(kvsim.capacity.arguments.__file__).parent / "data"

WITHOUT_READER = {"switch", "off", "list", "maybe"}


def rows(engine):
    with (DATA / f"{engine}.csv").open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def scenario(overrides):
    """A scenario that says what the overrides say, and nothing else beside the needed."""
    said = {"model": {"name": "llama-3.1-8b"}, "gpu": "H100", "workload": {"rate": "1/s", "requests": 1}}
    said["workload"] |= {"prompt_tokens": 10, "output_tokens": 10}
    for key, value in overrides.items():
        *path, last = key.split(".")
        inside = said
        for part in path:
            inside = inside.setdefault(part, {})
        inside[last] = value
    return Scenario.from_dict(said)


VLLM = (
    "vllm serve meta-llama/Llama-3.1-8B -tp 2 --max-model-len 8192 --max-num-seqs 64 --max-num-batched-tokens 2048 "
    "--gpu-memory-utilization 0.9 --dtype bfloat16 --kv-cache-dtype fp8_e4m3 --block-size 32 "
    "--enable-chunked-prefill --long-prefill-token-threshold 512 --preemption-mode recompute"
)


def test_a_command_becomes_keys_that_a_scenario_has():
    overrides = scenario_overrides(parse_command(VLLM))
    assert overrides == {
        "model.name": "meta-llama/Llama-3.1-8B",
        "tensor_parallel": 2,
        "engine.max_model_len": 8192,
        "engine.max_num_seqs": 64,
        "engine.max_num_batched_tokens": 2048,
        "capacity.gpu_memory_utilization": 0.9,
        "model.weights_dtype": "bf16",
        "model.kv_dtype": "fp8",
        "allocator.block_size": 32,
        "engine.chunked_prefill": True,
        "engine.long_prefill_token_threshold": 512,
        "engine.preemption": "recompute",
    }
    scenario(overrides)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--kv-cache-memory-bytes 1G", {"pool.memory": "1GiB"}),
        ("--num-gpu-blocks-override 512 --kv-cache-memory-bytes 1G", {"pool.blocks": 512}),
        ("--quantization fp8 --dtype bfloat16", {"model.weights_dtype": "fp8"}),
        ("--quantization gptq --dtype float16", {}),  # 4 bits or 8: the flag does not say
        ("--dtype auto --kv-cache-dtype auto --preemption-mode swap", {}),
        ("--dtype float32", {}),  # a scenario has no such weights
    ],
)
def test_a_value_becomes_what_a_scenario_can_say_or_nothing(flags, expected):
    overrides = scenario_overrides(parse_command(f"vllm serve llama-3.1-8b {flags}"))
    assert overrides == {"model.name": "llama-3.1-8b"} | expected
    scenario(overrides)


def test_sglangs_names_become_the_same_keys():
    text = (
        "sglang serve --model llama-3.1-8b --context-length 2048 --max-running-requests 32 --page-size 16 "
        "--max-total-tokens 40000 --chunked-prefill-size -1"
    )
    overrides = scenario_overrides(parse_command(text))
    assert overrides == {
        "model.name": "llama-3.1-8b",
        "engine.max_model_len": 2048,
        "engine.max_num_seqs": 32,
        "allocator.block_size": 16,
        "pool.tokens": 40_000,
        "engine.chunked_prefill": False,
    }
    scenario(overrides)


def test_for_a_run_a_flag_is_used_only_where_a_scenario_can_say_it():
    command = parse_command("vllm serve m -tp 2 --cpu-offload-gb 4 --quantization gptq --port 1 --unheard-of")
    assert [(flag.name, flag.status) for flag in flags_for_run(command)] == [
        ("MODEL", "used"),
        ("-tp", "used"),
        ("--cpu-offload-gb", "not modelled"),
        ("--quantization", "not modelled"),
        ("--port", "ignored"),
        ("--unheard-of", "not modelled"),
    ]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_every_flag_of_the_table_says_what_is_done_and_why(engine):
    for row in rows(engine):
        assert row["status"] in ("used", "ignored", "not modelled"), row
        assert row["why"], row
        assert row["source"], row
        assert row["kind"] in READERS or row["kind"] in WITHOUT_READER, row
        assert row["key"] or row["status"] != "used", row
        assert row["key"] or not row["scenario"], row


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_no_two_flags_of_a_table_share_a_name(engine):
    names = [name for row in rows(engine) for name in (row["flag"], *row["aliases"].split())]
    assert len(names) == len(set(names))


def test_number_formats_are_the_catalogues():
    from kvsim.capacity.arguments.overrides import _formats

    formats = _formats()
    for table in ("dtype", "quantization", "kv_cache_dtype"):
        assert set(formats[table].values()) <= DTYPE_BITS.keys()

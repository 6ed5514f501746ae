"""Releases: which rules hold in a version as users and logs write it."""

import pytest

from kvsim.capacity.overheads.releases import engine_release, numbers, release
from kvsim.catalog.gpus import gpu
from kvsim.errors import InputError

GIB = 2**30


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        ("vllm@0.2", "vllm-first"),
        ("vllm@0.6.3", "vllm-first"),
        ("vllm@0.6.4", "vllm"),
        ("vllm@0.19", "vllm"),
        ("vllm@v0.20.1", "vllm"),
        ("vllm@0.21", "vllm-graphs"),
        ("vllm@0.33-sync", "vllm-graphs"),
        ("vllm", "vllm-graphs"),
        ("sglang@0.5.23", "sglang"),
        ("TensorRT-LLM@1.0", "trtllm"),
        ("llama.cpp", "llama.cpp"),
    ],
)
def test_a_version_has_the_policy_of_its_era(written, policy):
    assert release(written).rules["policy"] == policy


@pytest.mark.parametrize(
    ("engine", "version", "number"),
    [
        ("vLLM", "0.6.4+ (main, Dec 2024)", (0, 6, 4)),
        ("vLLM", "0.9.x", (0, 9)),
        ("vLLM (kvcached)", "2026-08", (0, 24)),
        ("Aphrodite", "2025-04", (0, 8)),
        ("vLLM", "0.19.0", (0, 19)),
        ("SGLang", "0.5.5 era", (0, 5, 5)),
    ],
)
def test_what_logs_write_is_understood_a_month_as_the_release_of_that_month(engine, version, number):
    assert engine_release(engine, version).number == number


def test_versions_compare_by_number_and_a_last_zero_says_nothing():
    assert numbers("0.9") < numbers("0.10") == numbers("0.10.0")


def test_the_largest_cards_take_larger_steps_in_late_releases():
    one = gpu("B200")
    steps = [
        release(name).limit("max_num_batched_tokens", one, one.memory_bytes) for name in ("vllm@0.32", "vllm@0.33")
    ]
    assert steps == [8192, 16384]


@pytest.mark.parametrize(
    ("card", "sequences", "tokens"), [("H100", 1024, 8192), ("A100-80GB", 256, 2048), ("RTX 4090", 256, 2048)]
)
def test_large_cards_but_the_a100_have_larger_defaults(card, sequences, tokens):
    found = release("vllm@0.19")
    one = gpu(card)
    assert found.limit("max_num_seqs", one, one.memory_bytes) == sequences
    assert found.limit("max_num_batched_tokens", one, one.memory_bytes) == tokens


@pytest.mark.parametrize(
    ("written", "message"),
    [("vlm@0.19", "unknown engine 'vlm': the closest is vllm"), ("vllm@new", "'new' is no version; write for example")],
)
def test_what_is_no_release_is_refused(written, message):
    with pytest.raises(InputError, match=message):
        release(written)

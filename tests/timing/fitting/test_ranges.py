"""A run that may leave what its GPU has measured says where; one that stays inside says nothing."""

import pytest

from kvsim.timing.fitting.calibration import Calibration, Entry
from kvsim.timing.fitting.ranges import Asked, beyond

GPU = "H200-SXM"
INSIDE = {"sequences": 64, "tokens": 2048, "context": 8192, "group": 4.0, "block": 16}


def entry(name, values, ranges):
    return Entry(GPU, name, values, dict.fromkeys(values, 0.0), 99, ranges, "r.jsonl", "0" * 64, 0.01, 0.02)


CALIBRATION = Calibration(
    {
        (GPU, "gemm:bf16"): entry("gemm:bf16", {"peak_tflop_s": 700.0}, {"m": (1, 8192)}),
        (GPU, "paged_attention:bf16"): entry(
            "paged_attention:bf16",
            {"block_8_factor": 1.1, "block_128_factor": 1.0, "group_1_factor": 1.0, "group_8_factor": 1.2},
            {"sequences": (1, 256), "context_max": (256, 65536)},
        ),
    }
)


def test_a_run_inside_of_what_was_measured_says_nothing():
    assert list(beyond(CALIBRATION, GPU, Asked(**INSIDE))) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tokens": 16384}, "linear layers were measured up to 8,192 tokens a step; this run may come to 16,384"),
        ({"sequences": 512}, "decodes were measured up to 256 sequences a step; this run may come to 512"),
        ({"context": 131072}, "decodes were measured up to 65,536 tokens of context; this run may come to 131,072"),
        ({"group": 16.0}, "measured with 1 to 8 query heads a KV head; this run has 16"),
        ({"block": 1}, "measured with 8 to 128 slots a block; this run has 1"),
    ],
)
def test_each_size_beyond_it_is_one_sentence(changed, said):
    [sentence] = beyond(CALIBRATION, GPU, Asked(**INSIDE | changed))
    assert said in sentence


def test_kv_in_one_piece_and_another_gpu_have_nothing_to_say():
    assert list(beyond(CALIBRATION, GPU, Asked(**INSIDE | {"block": None}))) == []
    assert list(beyond(CALIBRATION, "A100-SXM-80GB", Asked(**INSIDE | {"tokens": 10**6}))) == []

"""What fits and what is wasted by rounding alone: published slots, and measured lengths of real traces."""

import csv
import gzip
import os
from pathlib import Path

import pytest

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import model
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.reserve import ReserveAllocator

pytestmark = pytest.mark.oracle

GIB = 2**30
LARGE = 1 << 30


@pytest.mark.parametrize(("name", "gib", "thousands"), [("opt-13b", 12, 15.7), ("opt-175b", 264, 60.1)])
def test_the_kv_slots_of_pagedattention_table_1(name, gib, thousands):
    """12 GB on one A100-40GB and 264 GB on eight A100-80GB; "GB" there is GiB."""
    slots = gib * GIB // Footprint(model(name)).kv_bytes_per_token
    assert round(slots / 1000, 1) == thousands


def test_the_kv_slots_of_opt_66b_lie_within_what_the_rounded_memory_column_can_mean():
    """Table 1 prints 21 GB and 9.7K slots; 21 is rounded from somewhere between 20.5 and 21.5."""
    low, high = (int(gib * GIB) // Footprint(model("opt-66b")).kv_bytes_per_token for gib in (20.5, 21.5))
    assert low <= 9_700 <= high


def totals(*path: str, columns: tuple[str, str]) -> list[int]:
    """Prompt + output of every request of a shared trace."""
    data = os.environ.get("KVSIM_DATA")
    if not data:
        pytest.skip("KVSIM_DATA names no folder of traces")
    with gzip.open(Path(data, "traces", *path), "rt", encoding="utf-8", newline="") as file:
        return [sum(int(row[column]) for column in columns) for row in csv.DictReader(file)]


def azure_code() -> list[int]:
    return totals("azure_llm_2023", "AzureLLMInferenceTrace_code.csv.gz", columns=("ContextTokens", "GeneratedTokens"))


def sharegpt_8k() -> list[int]:
    return totals(
        "lengths_vidur_etalon",
        "sharegpt_8k_filtered_stats_llama2_tokenizer.csv.gz",
        columns=("num_prefill_tokens", "num_decode_tokens"),
    )


@pytest.mark.parametrize(("lengths", "percent"), [(azure_code, 26), (sharegpt_8k, 34)])
def test_reserving_the_observed_maximum_uses_a_fraction_of_what_it_holds(lengths, percent):
    held = lengths()
    pool = ReserveAllocator(LARGE, max_model_len=max(held))
    assert round(100 * sum(held) / sum(pool.capacity(n) for n in held)) == percent


@pytest.mark.parametrize("lengths", [azure_code, sharegpt_8k])
def test_power_of_two_regions_use_about_two_thirds(lengths):
    held = lengths()
    pool = ContiguousAllocator(LARGE, growth="double")
    assert 64 <= round(100 * sum(held) / sum(pool.capacity(n) for n in held)) <= 72


@pytest.mark.parametrize("lengths", [azure_code, sharegpt_8k])
def test_blocks_of_16_use_more_than_99_percent(lengths):
    held = lengths()
    pool = PagedAllocator(LARGE, block_size=16)
    assert 100 * sum(held) / sum(pool.capacity(n) for n in held) > 99

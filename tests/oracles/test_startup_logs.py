"""Real start-ups: printed digits read as intervals hold what the printed tokens take.

The truth is `measured/capacity_logs.csv` of the shared data: numbers copied from public logs (a link in every
row). Its lines are written out here in the engines' formats and read back.
"""

import csv
import os
from pathlib import Path

import pytest

from kvsim.capacity.logs import read_log

pytestmark = pytest.mark.oracle

GIB = 2**30


def rows():
    data = os.environ.get("KVSIM_DATA")
    if not data:
        return []
    with Path(data, "measured", "capacity_logs.csv").open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def vllm_lines(row):
    """What a V1 engine prints: memory rounded to two decimals, whose trailing zero is dropped."""
    kv = round(float(row["kv_memory_gib_per_gpu"]), 2)
    yield f"INFO [gpu_worker.py:1] Available KV cache memory: {kv} GiB"
    yield f"INFO [kv_cache_utils.py:1] GPU KV cache size: {int(row['kv_tokens']):,} tokens"


def sglang_lines(row):
    half = row["kv_memory_gib_per_gpu"]
    yield f"[TP0] KV Cache is allocated. #tokens: {row['kv_tokens']}, K size: {half} GB, V size: {half} GB"


WRITERS = {"vLLM": vllm_lines, "SGLang": sglang_lines}
ROWS = [
    row
    for row in rows()
    if row["engine"] in WRITERS
    and row["consistent"] == "yes"
    and row["kv_memory_gib_per_gpu"]
    and row["kv_tokens"]
    and row["kv_bytes_per_token_per_gpu"].isdigit()
]


@pytest.mark.skipif(not os.environ.get("KVSIM_DATA"), reason="KVSIM_DATA names no folder of measured start-ups")
def test_there_are_rows_to_compare():
    assert len(ROWS) >= 15


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_the_printed_tokens_take_a_memory_that_the_printed_digits_can_mean(row):
    """No tolerance but the log's own: the last digit, and less than one block of rest below a whole number."""
    log = read_log("\n".join([*WRITERS[row["engine"]](row), ""]))
    kv, tokens = log.numbers["kv_memory_gib"], int(log.numbers["kv_tokens"].value)
    taken = tokens * int(row["kv_bytes_per_token_per_gpu"])
    rest = int(row["block_size"]) * int(row["kv_bytes_per_token_per_gpu"])
    assert taken <= kv.high * GIB
    assert taken + rest > kv.low * GIB

"""Families that a GPU's own microbenchmarks decide: what each parameter means, and what lies between sizes measured."""

import numpy as np
import pytest

from kvsim.timing.families import device, family
from kvsim.timing.families.interface import starts
from kvsim.timing.families.measured import PagedAttention
from kvsim.timing.families.measured.attention import factor

H200 = device("H200")
KINDS = [
    "gemm:bf16", "kv_read:bf16", "paged_attention:bf16", "causal_attention:bf16", "hbm:read", "copy:h2d_pinned",
    "swap_blocks:batch_out", "alloc:malloc", "map:vmm_map", "launch:graph", "grow:alloc_copy_free", "step:graph",
]  # fmt: skip
SIZES = {"m": 64, "n": 4096, "k": 4096, "sequences": 16, "context": 2048, "heads": 32, "kv_heads": 8, "head_dim": 128,
         "tokens": 512, "cached": 0, "bytes": 1e6, "blocks": 10, "chunks": 4, "kernels": 10, "layers": 8,
         "given": 1e-3}  # fmt: skip


def rows(name, **changed):
    return {column: np.array([float((SIZES | changed)[column])]) for column in family(name).columns}


@pytest.mark.parametrize("name", KINDS)
def test_every_parameter_of_a_family_moves_its_time(name):
    one = family(name)
    values = starts(one) | {"blend_power": 2.0}
    before = one.seconds(values, rows(name) | sizes_of_factors(name), H200)
    moved = 0
    for parameter in one.parameters:
        after = one.seconds(
            {**values, parameter.name: 1.5 * values[parameter.name]}, rows(name) | sizes_of_factors(name), H200
        )
        moved += float(np.abs(after - before).max()) > 0
    # A walk that is shorter than the reading shows nowhere, nor do factors of other sizes.
    assert moved >= len(one.parameters) - sum("factor" in p.name or p.name == "walk_gb_s" for p in one.parameters)


def sizes_of_factors(name):
    return {"block": np.array([16.0])} if "attention" in name or "read" in name else {}


def test_kv_in_blocks_takes_the_factor_of_their_size():
    one = family("paged_attention:bf16")
    values = starts(one) | {"block_16_factor": 1.5, "fixed_us": 0.0, "combine_us": 0.0}
    whole = one.seconds(values, rows(one.name), H200)
    paged = one.seconds(values, rows(one.name) | {"block": np.array([16.0])}, H200)
    assert paged / whole == pytest.approx(1.5)


def test_sizes_between_those_measured_lie_between_them_and_others_take_the_nearest():
    values = {"block_16_factor": 1.2, "block_64_factor": 1.1, "fixed_us": 7.0}
    found = factor("block", np.array([0.0, 1.0, 16.0, 32.0, 64.0, 256.0]), values)
    assert found == pytest.approx([1.0, 1.2, 1.2, 1.15, 1.1, 1.1])


def test_the_smallest_group_is_what_the_others_are_compared_with():
    one = PagedAttention((16,), (4, 8), reference=4)
    assert "group_4_factor" not in [parameter.name for parameter in one.parameters]
    values = starts(one) | {"group_8_factor": 2.0, "fixed_us": 0.0, "combine_us": 0.0}
    small, large = (one.seconds(values, rows(one.name, heads=heads), H200) for heads in (32, 64))
    assert large / small == pytest.approx(2.0)


def test_one_sequence_is_read_by_as_many_blocks_of_threads_as_its_context_gives():
    one = family("paged_attention:bf16")
    values = starts(one) | {"bandwidth_gb_s": 1e5, "walk_gb_s": 1.0, "fixed_us": 0.0, "combine_us": 0.0}
    # 132 units, 3 blocks of threads each, 8 KV heads: 50 parts of a long context, but none shorter than 256 tokens.
    short, long = (one.seconds(values, rows(one.name, sequences=1, context=tokens), H200) for tokens in (512, 65536))
    assert short / (512 / 2) == pytest.approx(long / (65536 / 50))


def test_an_uneven_batch_is_as_slow_as_its_longest_context_where_few_run():
    one = family("paged_attention:bf16")
    values = starts(one) | {"bandwidth_gb_s": 1e5, "walk_gb_s": 1.0}
    even = one.seconds(values, rows(one.name), H200)
    uneven = one.seconds(values, rows(one.name) | {"context_max": np.array([8192.0])}, H200)
    assert uneven > even


def test_a_chunk_attends_to_what_is_before_it():
    one = family("causal_attention:bf16")
    values = starts(one) | {"fixed_us": 0.0, "ramp_tokens": 0.0}
    alone, behind = (one.seconds(values, rows(one.name, cached=cached), H200) for cached in (0, 512))
    assert behind / alone == pytest.approx((512 * 512 + 512 * 513 / 2) / (512 * 513 / 2))


def test_an_unknown_family_is_none():
    with pytest.raises(KeyError):
        family("teleport:bf16")

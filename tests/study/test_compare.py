"""`compare`: several variants on the same traffic."""

from typing import Any

import pytest

from kvsim import Scenario, compare, run

DATA: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "RTX 4090",
    "pool": {"tokens": 6144},
    "engine": {"max_model_len": 2048},
    "workload": {
        "rate": "6/s",
        "requests": 40,
        "prompt_tokens": {"distribution": "uniform", "min": 10, "max": 900},
        "output_tokens": {"distribution": "uniform", "min": 1, "max": 300},
    },
    "variants": {
        "blocks": {"allocator": "paged"},
        "regions": {"allocator": "contiguous"},
        "limit": {"allocator": "reserve"},
    },
}


@pytest.fixture(scope="module")
def variants() -> list[tuple[str, Scenario]]:
    complete = {**DATA, "name": "three"}
    return Scenario.from_dict(complete).variants()


def test_there_is_a_result_for_each_variant_in_order_and_by_name(variants):
    assert [result.name for result in compare(variants)] == ["blocks", "regions", "limit"]


def test_all_variants_serve_the_same_requests(variants):
    tables = [result.tables["requests"] for result in compare(variants, seed=5)]
    for column in ("id", "arrival_s", "prompt_tokens", "output_tokens"):
        assert tables[0][column] == tables[1][column] == tables[2][column], column
    assert len({tuple(table["end_s"]) for table in tables}) == 3


def test_a_variant_compared_is_the_variant_run_alone(variants):
    for result, (_, one) in zip(compare(variants, seed=5), variants, strict=True):
        assert result.summary == run(one, seed=5).summary


def test_stepwise_and_check_reach_every_variant(variants):
    leaping, stepping = compare(variants), compare(variants, stepwise=True, check=True)
    assert [result.summary for result in leaping] == [result.summary for result in stepping]
    for one, two in zip(leaping, stepping, strict=True):
        assert len(one.tables["steps"]["steps"]) < len(two.tables["steps"]["steps"])


def test_progress_rises_over_all_variants_and_says_which_one(variants):
    seen: list[tuple[float, str]] = []
    compare(variants, progress=lambda share, name: seen.append((share, name)))
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    for index, name in enumerate(("blocks", "regions", "limit")):
        parts = [share for share, which in seen if which == name]
        assert index / 3 < parts[0]
        assert parts[-1] == pytest.approx((index + 1) / 3)


def test_nothing_compared_is_nothing():
    assert compare([]) == []

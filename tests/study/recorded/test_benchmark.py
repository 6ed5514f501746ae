"""The simulated side as `vllm bench serve` writes results."""

import json

import numpy as np
import pytest

from kvsim.study.recorded.benchmark import bench_serve, bench_serve_text
from kvsim.study.recorded.compare import compare
from kvsim.study.recorded.readers import read_measured
from kvsim.study.recorded.simulated import simulated

# vllm/benchmarks/serve.py, `result` and what `main` adds to it (read in November 2026).
KEYS = {
    "backend", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate", "burstiness", "max_concurrency",
    "duration", "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput",
    "request_goodput", "output_throughput", "total_token_throughput", "input_lens", "output_lens", "ttfts", "itls",
    "start_times", "generated_texts", "errors", "max_output_tokens_per_s", "max_concurrent_requests", "rtfx",
    *(f"{statistic}_{name}_ms" for name in ("ttft", "tpot", "e2el") for statistic in ("mean", "median", "std", "p99")),
    *(f"{statistic}_itl_ms" for statistic in ("mean", "median", "p99")),
}  # fmt: skip


def test_the_keys_are_the_benchmarks_own(result):
    found = bench_serve(result)
    assert set(found) >= KEYS
    lists = [found[name] for name in ("input_lens", "output_lens", "ttfts", "itls", "start_times", "errors")]
    assert {len(one) for one in lists} == {found["num_prompts"]} == {60}


def test_totals_are_those_of_the_run(result):
    found, table = bench_serve(result), result.requests
    assert found["completed"] == 60
    assert found["total_output_tokens"] == table.generated_tokens.sum()
    assert found["duration"] == pytest.approx(table.end_s.max() - table.arrival_s.min())
    assert found["output_throughput"] * found["duration"] == pytest.approx(found["total_output_tokens"])
    # The run's own summary measures the arrivals alone, the benchmark everything.
    several = table[table.generated_tokens > 1]
    assert found["mean_tpot_ms"] == pytest.approx(1e3 * several.tpot_s.mean())
    assert 1 <= found["max_concurrent_requests"] <= 60


def test_each_request_keeps_its_tpot_and_its_end(result):
    found, table = bench_serve(result), result.requests
    ends = np.array(found["ttfts"]) + [sum(gaps) for gaps in found["itls"]]
    assert ends == pytest.approx(table.e2e_s.to_numpy(), abs=1e-6)
    assert [len(gaps) for gaps in found["itls"]] == list(table.generated_tokens - 1)


def test_what_is_written_is_read_back_as_the_same_run(result, tmp_path):
    path = tmp_path / "bench.json"
    path.write_text(bench_serve_text(result))
    found = compare(read_measured([path]), simulated(result))
    assert all(value < 1e-6 for value in found.pairs.values())
    assert found.row("output_tokens_per_s").error == pytest.approx(0, abs=1e-9)


def test_equal_runs_leave_equal_files(result):
    assert bench_serve_text(result) == bench_serve_text(result)
    assert json.loads(bench_serve_text(result)).get("date") is None

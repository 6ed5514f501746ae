"""The time to first token is the queue, the loading and the prefill, of every request."""

import pytest

from kvsim.reporting.ttft import LOAD_NOTE, SWAP_NOTE, ttft_line, ttft_split
from kvsim.scenario import Scenario
from kvsim.study import run
from tests.fake_results import fake_result

SCENARIO = {
    "model": "llama-3.1-8b", "gpu": "RTX 4090", "pool": {"blocks": 120},
    "engine": {"max_num_seqs": 16, "max_model_len": 2048, "max_num_batched_tokens": 256},
    "workload": {"rate": "10/s", "requests": 60, "prompt_tokens": 400, "output_tokens": 300},
}  # fmt: skip


@pytest.fixture(scope="module")
def result():
    return run(Scenario.from_dict(SCENARIO))


def test_queue_load_and_prefill_are_the_ttft_of_every_request_to_the_picosecond(result):
    requests = result.requests
    assert result.metrics["preemptions"] > 0
    picoseconds = {
        name: [round(value * 1e12) for value in requests[name]] for name in ("queue_s", "prefill_s", "ttft_s")
    }
    load = 0
    assert [q + load + p for q, p in zip(picoseconds["queue_s"], picoseconds["prefill_s"], strict=True)] == (
        picoseconds["ttft_s"]
    )
    assert min(picoseconds["queue_s"]) >= 0
    assert min(picoseconds["prefill_s"]) > 0


def test_the_means_add_up_and_percentiles_are_of_each_part(result):
    split = ttft_split(result)
    parts = (split.queue, split.load, split.prefill)
    assert sum(part.mean_s for part in parts) == pytest.approx(split.ttft.mean_s, rel=1e-12)
    assert split.queue.mean_s == pytest.approx(result.requests.queue_s.mean())
    assert split.prefill.p99_s == pytest.approx(result.requests.prefill_s.quantile(0.99))
    assert (split.load.mean_s, split.load.p99_s) == (0, 0)


def test_what_loading_is_taken_for_is_said():
    plain, swapping = fake_result(), fake_result()
    swapping.scenario_resolved["engine.preemption"] = {"value": "swap", "source": "--set"}
    assert ttft_split(plain).note == LOAD_NOTE
    assert ttft_split(swapping).note == SWAP_NOTE
    [line] = ttft_line(plain)
    assert line.startswith(
        "TTFT: mean 0.70 s = queue 0.50 + load 0 + prefill 0.20; p99 2.45 s, of the parts queue 1.75"
    )


def test_a_run_in_which_nobody_got_a_token_has_no_split():
    result = fake_result()
    result.metrics["ttft_s"] = None
    assert ttft_split(result) is None
    assert ttft_line(result) == []

"""From what a server had resolved to the scenario that replays it."""

import json

import pytest

from kvsim.errors import InputError
from kvsim.study.recorded.replay import recorded
from kvsim.study.recorded.session import compare_run
from tests.study.recorded.conftest import META, REQUESTS, write_run


def resolved(tmp_path, change=(), **options):
    meta = json.loads(json.dumps(META))
    for path, value in change:
        *parts, last = path.split(".")
        place = meta
        for part in parts:
            place = place[part]
        place[last] = value
    found = recorded(*write_run(tmp_path, meta), **options)
    return {key: one["value"] for key, one in found.scenario.resolved().items()}, found.notes


def test_the_scenario_has_the_servers_flags_and_its_pool_without_the_null_block(tmp_path):
    values, notes = resolved(tmp_path)
    assert values["gpu"] == "NVIDIA GeForce RTX 4090"
    assert values["pool.blocks"] == 200
    assert [values[f"engine.{key}"] for key in ("max_num_seqs", "max_num_batched_tokens", "max_model_len")] == [
        16, 2048, 4096,
    ]  # fmt: skip
    assert (values["allocator.block_size"], values["allocator.prefix_caching"]) == (16, True)
    assert values["timing.name"] == "calibrated"
    assert any("seed" in note for note in notes)


def test_a_release_before_may_2026_puts_freed_blocks_last_and_plans_ahead_since_0_14(tmp_path):
    values, notes = resolved(tmp_path)
    assert (values["allocator.free_queue"], values["engine.async_scheduling"]) == ("tail", True)
    assert any("as vLLM 0.19.0 has them" in note for note in notes)
    values, _ = resolved(tmp_path, [("vllm_version", "0.11.2")])
    assert values["engine.async_scheduling"] is False
    values, notes = resolved(tmp_path, [("vllm_version", "0.33.1")])
    assert (values["allocator.free_queue"], values["engine.async_scheduling"]) == ("split", True)
    assert not any("Rules of" in note for note in notes)


def test_what_the_server_was_told_beats_what_its_release_does(tmp_path):
    values, _ = resolved(
        tmp_path,
        [("engine_kwargs.async_scheduling", False), ("engine_kwargs.enable_chunked_prefill", False),
         ("engine_kwargs.max_num_batched_tokens", 4096),
         ("engine_kwargs.quantization", "fp8"), ("engine_kwargs.gpu_memory_utilization", 0.8),
         ("kv_cache.gpu_memory_utilization", None)],
    )  # fmt: skip
    assert (values["engine.async_scheduling"], values["engine.chunked_prefill"]) == (False, False)
    assert (values["model.weights_dtype"], values["capacity.gpu_memory_utilization"]) == ("fp8", 0.8)


def test_without_a_recorded_pool_it_is_planned_with_the_releases_own_share_of_the_card(tmp_path):
    values, notes = resolved(tmp_path, [("kv_cache", None)])
    assert values["capacity.gpu_memory_utilization"] == 0.9
    assert "pool.blocks" not in values or values["pool.blocks"] is None
    assert any("planned one" in note for note in notes)


def test_the_card_can_be_named_and_settings_changed(tmp_path):
    values, _ = resolved(
        tmp_path, [("hardware", None)], gpu="RTX PRO 6000", overrides=["engine.max_num_seqs=8", "pool.blocks=99"]
    )
    assert (values["gpu"], values["engine.max_num_seqs"], values["pool.blocks"]) == ("RTX PRO 6000", 8, 99)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ([("model", "")], "has no model"),
        ([("vllm_version", None)], "has no vllm_version"),
        ([("engine_kwargs", [1])], "engine_kwargs is [1]; it is an object"),
        ([("engine_kwargs.data_parallel_size", 2)], "kvsim simulates one replica"),
        ([("engine_kwargs.max_num_seqs", "many")], "max_num_seqs is 'many'; it is a whole number"),
        ([("engine_kwargs.quantization", "bitsandbytes")], "quantization is 'bitsandbytes'; it is one of fp8"),
        ([("engine_kwargs.dtype", "float64")], "dtype is 'float64'; it is one of bfloat16"),
        ([("kv_cache.num_gpu_blocks", 0)], "num_gpu_blocks is 0; it is a whole number"),
        ([("hardware", None)], "say which card it was with --gpu NAME"),
        ([("hardware.device_name", "TPU v9")], "TPU v9"),
        ([("vllm_version", "newest")], "is no version"),
    ],
)
def test_a_description_that_cannot_be_is_refused_with_file_and_key(tmp_path, change, said):
    with pytest.raises(InputError) as refused:
        resolved(tmp_path, change)
    assert said in str(refused.value)


def test_files_that_describe_no_run_are_refused(tmp_path):
    _, requests = write_run(tmp_path)
    for text, said in (
        ("{", "is not JSON"),
        ("[1]", "holds a list"),
        ("null", "holds null; it is an object"),
        ("{}", "has no model"),
    ):
        (tmp_path / "m.json").write_text(text)
        with pytest.raises(InputError, match=said):
            recorded(tmp_path / "m.json", requests)
    with pytest.raises(InputError, match="cannot be read"):
        recorded(tmp_path / "absent.json", requests)


def test_the_whole_comparison_has_the_recorded_requests_one_by_one(tmp_path):
    found = compare_run(*(lambda meta, requests: (meta, [requests]))(*write_run(tmp_path)))
    assert found.result.metrics["finished"] == REQUESTS
    assert len(found.comparison.simulated.requests) == REQUESTS
    assert set(found.comparison.pairs) == {"ttft_s", "tpot_s", "e2e_s"}
    assert found.as_json()["rows"]["tpot_s.mean"]["measured"] == pytest.approx(0.02)


def test_a_time_series_beside_the_requests_comes_along(tmp_path):
    meta, requests = write_run(tmp_path)
    (tmp_path / "small_timeseries.csv").write_text("t,running,waiting,kv_cache_pct\n1,5,0,10\n2,9,0,20\n")
    found = compare_run(meta, [requests])
    assert found.comparison.row("running").measured == 7
    assert len(found.comparison.simulated.series.time_s) == 2


def test_a_log_alone_lists_no_requests_to_replay(tmp_path):
    meta, _ = write_run(tmp_path)
    log = tmp_path / "server.log"
    log.write_text(
        "INFO 03-19 10:00:00 [loggers.py:259] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation "
        "throughput: 1.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%\n"
    )
    with pytest.raises(InputError, match="lists no requests"):
        compare_run(meta, [log])

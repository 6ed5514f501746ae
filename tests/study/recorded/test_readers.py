"""Readers of what servers and benchmarks leave: what they find, and what they refuse."""

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.errors import InputError
from kvsim.study.recorded.readers import read_measured

COUNTS = st.integers(0, 5_000)
TENTHS = st.integers(0, 1000).map(lambda tenths: tenths / 10)


def clock(seconds):
    seconds = int(seconds) % 86_400
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def vllm_line(at_s, running, waiting, usage, *, rate=500.0, hits=41.0, engine="Engine 000: ", also=""):
    return (
        f"(APIServer pid=1) INFO 03-19 {clock(at_s)} [loggers.py:259] {engine}Avg prompt throughput: 12.5 tokens/s, "
        f"Avg generation throughput: {rate} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs{also}, "
        f"GPU KV cache usage: {usage}%, Prefix cache hit rate: {hits}%"
    )


def sglang_line(at_s, running, queue, usage, rank=" TP0"):
    return (
        f"[2026-03-02 {clock(at_s)}{rank}] Decode batch, #running-req: {running}, #token: 8123, token usage: {usage}, "
        f"cuda graph: True, gen throughput (token/s): 95.33, #queue-req: {queue}"
    )


def scrape(running, waiting, usage, *, preemptions=0, tokens=0, millis="", ttft=(0.0, 0), labels='engine="0"'):
    behind = f" {millis}" if millis else ""
    total, count = ttft
    return "\n".join(
        [
            "# HELP vllm:num_requests_running Number of requests in model execution batches.",
            "# TYPE vllm:num_requests_running gauge",
            f'vllm:num_requests_running{{{labels},model_name="m"}} {running}.0{behind}',
            f'vllm:num_requests_waiting{{{labels},model_name="m"}} {waiting}.0{behind}',
            f'vllm:num_requests_waiting_by_reason{{{labels},model_name="m",reason="capacity"}} {waiting}.0{behind}',
            f'vllm:kv_cache_usage_perc{{{labels},model_name="m"}} {usage}{behind}',
            f'vllm:num_preemptions_total{{{labels},model_name="m"}} {preemptions}{behind}',
            f'vllm:generation_tokens_total{{{labels},model_name="m"}} {tokens}{behind}',
            f'vllm:time_to_first_token_seconds_bucket{{{labels},le="0.1",model_name="m"}} 3{behind}',
            f'vllm:time_to_first_token_seconds_sum{{{labels},model_name="m"}} {total}{behind}',
            f'vllm:time_to_first_token_seconds_count{{{labels},model_name="m"}} {count}{behind}',
        ]
    )


def read(tmp_path, text, name="server.log"):
    path = tmp_path / name
    path.write_text(text)
    return read_measured([path])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("measured")


@given(rows=st.lists(st.tuples(st.integers(1, 999), COUNTS, TENTHS), min_size=1, max_size=12))
def test_lines_of_vllm_are_read_whatever_stands_between_them(folder, rows):
    lines = []
    for at, (running, waiting, usage) in enumerate(rows):
        lines += [vllm_line(36_000 + 10 * at, running, waiting, usage), 'INFO: "POST /v1/completions HTTP/1.1" 200 OK']
    series = read(folder, "\n".join(lines)).series
    assert list(series.time_s) == [10.0 * at for at in range(1, len(rows) + 1)]
    assert list(series.get("running")) == [running for running, _, _ in rows]
    assert list(series.get("waiting")) == [waiting for _, waiting, _ in rows]
    assert series.get("kv_share") == pytest.approx([usage / 100 for _, _, usage in rows])


def test_the_run_of_a_log_begins_where_something_runs_and_goes_past_midnight(tmp_path):
    idle = vllm_line(86_370, 0, 0, 0.0, rate=0.0)
    lines = [idle, vllm_line(86_380, 3, 0, 1.5), vllm_line(86_390, 4, 0, 2.0), vllm_line(0, 5, 1, 2.5)]
    found = read(tmp_path, "\n".join(lines))
    assert list(found.series.time_s) == [10.0, 20.0, 30.0]
    assert "begin 10 s before" in found.notes[0]


def test_preemptions_of_a_log_are_added_up_and_the_last_hit_rate_counts(tmp_path):
    lines = [
        vllm_line(10, 3, 0, 1.5, also=", Preemptions: 4"),
        vllm_line(20, 4, 0, 2.0, also=", Preemptions: 3", hits=52),
    ]
    found = read(tmp_path, "\n".join(lines))
    assert (found.preemptions, found.hit_rate) == (7, pytest.approx(0.52))
    assert read(tmp_path, vllm_line(10, 3, 0, 1.5)).preemptions is None


def test_older_lines_of_vllm_call_the_waiting_pending(tmp_path):
    line = (
        "INFO 01-27 19:04:07 metrics.py:467] Avg prompt throughput: 0.9 tokens/s, Avg generation throughput: 0.1 "
        "tokens/s, Running: 1 reqs, Swapped: 0 reqs, Pending: 2 reqs, GPU KV cache usage: 3.1%, CPU KV cache usage: 0%"
    )
    series = read(tmp_path, line).series
    assert (series.get("waiting")[0], series.get("kv_share")[0]) == (2, pytest.approx(0.031))


@given(rows=st.lists(st.tuples(COUNTS, COUNTS, st.integers(0, 100)), min_size=1, max_size=12))
def test_lines_of_sglang_are_read_from_the_first_rank_alone(folder, rows):
    lines = []
    for at, (running, queue, percent) in enumerate(rows):
        lines.append(sglang_line(60 + at, running, queue, percent / 100))
        lines.append(sglang_line(60 + at, 9_999, 9_999, 0.5, rank=" TP1"))
    series = read(folder, "\n".join(lines)).series
    assert list(series.get("running")) == [running for running, _, _ in rows]
    assert list(series.get("waiting")) == [queue for _, queue, _ in rows]
    assert series.get("kv_share") == pytest.approx([percent / 100 for _, _, percent in rows])


def test_prompts_of_sglang_run_too_and_tell_the_hit_rate(tmp_path):
    lines = [
        "[2026-03-02 14:44:10 TP0] Prefill batch, #new-seq: 2, #new-token: 300, #cached-token: 100, token usage: 0.41, "
        "#running-req: 9, #queue-req: 4, #pending-token: 7",
        "[2026-03-02 14:44:11 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_tokens_gained: 9",
        sglang_line(52_000, 9, 5, 0.43),
    ]
    found = read(tmp_path, "\n".join(lines))
    assert list(found.series.get("running")) == [11, 9]
    assert (found.hit_rate, found.preemptions) == (0.25, 2)


@given(rows=st.lists(st.tuples(COUNTS, COUNTS, st.integers(0, 100)), min_size=1, max_size=8), timed=st.booleans())
def test_scrapes_in_a_row_are_a_time_series(folder, rows, timed):
    texts = [
        scrape(running, waiting, percent / 100, millis=str(1_700_000_000_000 + 5_000 * at) if timed else "")
        for at, (running, waiting, percent) in enumerate(rows)
    ]
    series = read(folder, "\n".join(texts)).series
    step = 5.0 if timed else 15.0
    assert list(series.time_s) == [pytest.approx(step * at + (0.0 if timed else 15.0)) for at in range(len(rows))]
    assert list(series.get("running")) == [running for running, _, _ in rows]
    assert list(series.get("waiting")) == [waiting for _, waiting, _ in rows]


def test_open_metrics_with_all_of_a_metric_together_are_the_scrapes_of_their_times(tmp_path):
    (tmp_path / "metrics.txt").write_text(
        "# TYPE vllm:num_requests_running gauge\n"
        'vllm:num_requests_running{engine="0"} 3.0 10.0\n'
        'vllm:num_requests_running{engine="0"} 5.0 20.0\n'
        "# TYPE vllm:generation_tokens counter\n"
        'vllm:generation_tokens_total{engine="0"} 100.0 10.0\n'
        'vllm:generation_tokens_total{engine="0"} 250.0 20.0\n'
        "# EOF\n"
    )
    series = read_measured([tmp_path / "metrics.txt"]).series
    assert series.time_s.tolist() == [0, 10]
    assert series.get("running").tolist() == [3, 5]
    assert series.get("output_tokens_per_s")[1] == 15


def test_counters_are_what_grew_between_the_first_scrape_and_the_last(tmp_path):
    first = scrape(3, 1, 0.5, preemptions=10, tokens=1_000, ttft=(5.0, 10))
    last = scrape(4, 0, 0.6, preemptions=13, tokens=4_000, ttft=(11.0, 22))
    found = read(tmp_path, first + "\n" + last)
    assert found.preemptions == 3
    assert found.statistics("ttft_s") == {"mean": pytest.approx(0.5)}
    assert found.series.get("output_tokens_per_s")[1] == pytest.approx(200.0)
    alone = read(tmp_path, last)
    assert (alone.preemptions, alone.statistics("ttft_s")["mean"]) == (13, pytest.approx(0.5))


def test_open_metrics_tells_seconds_where_prometheus_tells_milliseconds(tmp_path):
    seconds = scrape(3, 1, 0.5, millis="1700000000.25") + "\n" + scrape(3, 1, 0.5, millis="1700000010.75")
    assert list(read(tmp_path, seconds).series.time_s) == [0.0, pytest.approx(10.5)]


def test_a_counter_that_fell_was_reset_by_a_restart(tmp_path):
    found = read(tmp_path, scrape(3, 1, 0.5, preemptions=10) + "\n" + scrape(1, 0, 0.1, preemptions=2))
    assert found.preemptions == 2


def test_ranks_of_one_sglang_replica_are_read_once(tmp_path):
    lines = [
        f'sglang:{name}{{model_name="m",tp_rank="{rank}"}} {value}'
        for rank in (0, 1)
        for name, value in (("num_running_reqs", 7), ("num_queue_reqs", 2), ("token_usage", 0.42))
    ]
    series = read(tmp_path, "\n".join(lines)).series
    assert [series.get(name)[0] for name in ("running", "waiting", "kv_share")] == [7, 2, 0.42]


RESULT = {
    "completed": 2,
    "duration": 4.0,
    "output_throughput": 1.5,
    "mean_ttft_ms": 150.0,
    "median_ttft_ms": 150.0,
    "p99_ttft_ms": 199.0,
    "input_lens": [100, 200, 50],
    "output_lens": [3, 2, 0],
    "ttfts": [0.1, 0.2, 0.0],
    "itls": [[0.05, 0.07], [0.1], []],
    "start_times": [11.5, 10.0, 12.0],
}


def test_lists_of_a_benchmark_are_requests_in_the_order_of_their_start_and_failed_ones_are_none(tmp_path):
    requests = read(tmp_path, json.dumps(RESULT), "bench.json").requests
    assert list(requests.prompt_tokens) == [200, 100]
    assert list(requests.arrival_s) == [0.0, 1.5]
    assert list(requests.e2e_s) == pytest.approx([0.3, 0.22])
    assert list(requests.tpot_s) == pytest.approx([0.1, 0.06])


def test_totals_alone_tell_statistics_in_seconds(tmp_path):
    totals = {key: value for key, value in RESULT.items() if not isinstance(value, list)}
    found = read(tmp_path, json.dumps(totals), "bench.json")
    assert found.requests is None
    assert found.statistics("ttft_s") == pytest.approx({"mean": 0.15, "p50": 0.15, "p99": 0.199})
    assert found.output_tokens_per_s == 1.5


TABLE = "request,in_len,out_len,arrival_s,first_token_s,last_token_s\n"


@given(order=st.permutations(list(range(5))))
def test_the_order_of_the_rows_of_a_table_of_requests_does_not_matter(folder, order):
    lines = [f"{at},{100 + at},{2 + at},{0.5 * at},{1 + at},{3 + 2 * at}" for at in range(5)]
    requests = read(folder, TABLE + "\n".join(lines[at] for at in order), "x_requests.csv").requests
    assert list(requests.prompt_tokens) == [100, 101, 102, 103, 104]
    assert list(requests.ttft_s) == [1 + 0.5 * at for at in range(5)]


def test_kv_use_that_is_zero_all_the_time_was_not_logged(tmp_path):
    found = read(tmp_path, "t,running,waiting,kv_cache_pct\n1,5,0,0\n2,6,0,0\n", "x_timeseries.csv")
    assert found.series.get("kv_share") is None
    assert "not logged" in found.notes[0]


def test_several_files_tell_one_run(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE + "0,10,2,0,1,2\n")
    (tmp_path / "b.log").write_text(vllm_line(10, 3, 0, 1.5))
    found = read_measured([tmp_path / "a.csv", tmp_path / "b.log"])
    assert len(found.requests) == 1
    assert len(found.series.time_s) == 1


BAD = [
    ("", "is empty"),
    ("   \n", "is empty"),
    ("hello\nworld\n", "is of no known form"),
    ("\x00\x01", "binary"),
    ('{"engine_kwargs": {}}', "describes a run"),
    ("[1, 2]", "JSON of another kind"),
    ('{"completed": 1, "ttfts": ', "is not JSON"),
    (json.dumps(RESULT | {"ttfts": [100.0, 200.0, 0.0]}), "one of them has another unit"),
    (json.dumps(RESULT | {"itls": [[0.05]]}), "itls is no list as long as input_lens"),
    (json.dumps(RESULT | {"output_lens": [0, 0, 0]}), "no request got any output"),
    (json.dumps(RESULT | {"ttfts": [-1, 0.2, 0]}), "ttfts[0] is -1"),
    (json.dumps({"completed": 1, "p77_ttft_ms": 3}), "tells no latency"),
    ("in_len,out_len,arrival_s\n1,2,3\n", "has no column first_token_s"),
    (TABLE, "has a head and no row"),
    (TABLE + "0,10,2,0,1\n", "row 2: has 5 cells and the head 6"),
    (TABLE + "0,10,2,0,1,2\n1,10,x,0,1,2\n", "row 3: out_len is 'x'"),
    (TABLE + "0,10,2,5,1,2\n", "all of one clock"),
    (TABLE + "0,0,2,0,1,2\n", "at least one of each"),
    ("t,running\n1,2\n", "has no column waiting"),
    ("t,running,waiting,kv_cache_pct\n1,5,0,130\n", "row 2: kv_cache_pct is 130; it is at most 100"),
    ("t,running,waiting\n2,5,0\n1,5,0\n", "t is 1 after 2"),
    (vllm_line(10, 3, 0, 130.0), "line 1: kv_share is 130.0; it is at most 100"),
    (vllm_line(10, "many", 0, 1.0), "line 1: running is 'many'"),
    (vllm_line(10, 3, 0, 1.5).replace(", Waiting: 0 reqs", ""), "does not tell waiting"),
    (vllm_line(10, 3, 0, 1.5).replace(clock(10), "noon"), "has no time"),
    (vllm_line(10, 3, 0, 1.5) + "\n" + vllm_line(10, 3, 0, 1.5, engine="Engine 001: "), "engines 000, 001"),
    (sglang_line(10, 3, 0, 43), "line 1: token usage is 43; it is at most 1"),
    (sglang_line(10, 3, 0, 0.4).replace("#running-req: 3, ", ""), "tells no #running-req"),
    (sglang_line(10, 3, 0, 0.4, " DP0 TP0") + "\n" + sglang_line(10, 3, 0, 0.4, " DP1 TP0"), "ranks DP 0, 1"),
    (scrape(3, 1, 42), "it is at most 1"),
    (scrape(3, 1, 0.5).replace("3.0", "three", 1), "vllm:num_requests_running is 'three'"),
    (scrape(3, 1, 0.5) + "\n" + scrape(3, 1, 0.5, millis="5"), "some scrapes have times and some have none"),
    (scrape(3, 1, 0.5, millis="9000") + "\n" + scrape(3, 1, 0.5, millis="5000"), "not in the order"),
    (scrape(3, 1, 0.5) + "\n" + scrape(3, 1, 0.5, labels='engine="1"'), "engines 0, 1"),
    ("vllm:request_success_total 3\n", "holds none of vllm:num_requests_running"),
    ("vllm:oops{ 3\n", "line 1: is no sample"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), BAD, ids=[said[:40] for _, said in BAD])
def test_what_cannot_be_is_refused_with_its_file_and_place(tmp_path, text, said):
    with pytest.raises(InputError) as refused:
        read(tmp_path, text, "measured.txt")
    assert said in str(refused.value)
    assert str(tmp_path / "measured.txt") in str(refused.value)
    assert "\n" not in str(refused.value)


def test_two_files_that_tell_the_same_are_one_too_many(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(TABLE + "0,10,2,0,1,2\n")
    with pytest.raises(InputError, match=r"b\.csv: tells requests, as a\.csv does"):
        read_measured([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_measured([tmp_path / "absent.log"])
    with pytest.raises(InputError, match="is a folder"):
        read_measured([tmp_path])


@given(text=st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_any_text_is_read_or_refused(folder, text):
    for start in ("", "Avg generation throughput: ", "Decode batch", "vllm:", "t,running,waiting\n", "{", TABLE):
        with suppress(InputError):
            found = read(folder, start + text, "any.txt")
            assert found.series or found.requests or found.latencies or found.preemptions is not None


def test_percentiles_are_those_of_the_requests(tmp_path):
    lines = [f"{at},10,2,0,{at},{at + 1}" for at in range(1, 101)]
    told = read(tmp_path, TABLE + "\n".join(lines), "x.csv").statistics("ttft_s")
    assert told["mean"] == pytest.approx(50.5)
    assert told["p99"] == pytest.approx(np.percentile(np.arange(1, 101), 99))

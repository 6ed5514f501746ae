"""Prometheus text that the official client reads, whose values are those of the tables."""

import math

import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics_families
from prometheus_client.parser import text_string_to_metric_families

from kvsim.errors import InputError
from kvsim.reporting.exports import EXPORTS, Options, read_source
from kvsim.reporting.exports.families import names
from kvsim.step import CLASSES
from kvsim.study.recorded.compare import compare
from kvsim.study.recorded.readers import read_measured
from kvsim.study.recorded.simulated import simulated
from tests.fake_results import fake_result

EVERY_S = 2.5


def exported(folder, **options):
    [(_, lines)] = EXPORTS["prometheus"].files(read_source(folder), Options(**options))
    return "".join(lines)


@pytest.fixture(scope="module")
def at_the_end(folder):
    """Values by name and labels (model and engine apart) at the end of the run, and kinds by name."""
    families = list(text_string_to_metric_families(exported(folder)))
    values = {}
    for family in families:
        for sample in family.samples:
            labels = dict(sample.labels)
            assert (labels.pop("model_name"), labels.pop("engine")) == ("llama-3.1-8b", "0")
            key = (sample.name, *sorted(labels.items()))
            assert key not in values
            values[key] = sample.value
    return values, {family.name: family.type for family in families}


@pytest.fixture(scope="module")
def series(folder):
    return exported(folder, every_s=EVERY_S)


def of(values, name, **labels):
    return values[name, *sorted(labels.items())]


def test_every_metric_is_known_and_of_its_kind(at_the_end):
    _, kinds = at_the_end
    assert kinds == {name: kind for name, kind in names().items() if name in kinds}
    assert set(names()) - set(kinds) <= {"kvsim:waste_ratio", "kvsim:fragmentation_ratio", "kvsim:unusable_ratio"}


def test_counters_are_the_sums_of_the_tables(at_the_end, result):
    values, _ = at_the_end
    requests, served = result.requests, result.requests.dropna(subset="first_token_s")
    assert of(values, "vllm:num_preemptions_total") == len(result.preemptions) == result.metrics["preemptions"] > 0
    assert of(values, "vllm:prompt_tokens_total") == served.prompt_tokens.sum()
    assert of(values, "vllm:generation_tokens_total") == pytest.approx(requests.generated_tokens.sum(), rel=1e-12)
    assert of(values, "vllm:prefix_cache_queries_total") == requests[requests.end != "rejected"].prompt_tokens.sum()
    assert of(values, "vllm:prefix_cache_hits_total") == requests.hit_tokens.sum() > 0
    by_source = {
        source: of(values, "vllm:prompt_tokens_by_source_total", source=source)
        for source in ("local_compute", "local_cache_hit")
    }
    assert by_source["local_cache_hit"] == of(values, "vllm:prompt_tokens_cached_total") == served.hit_tokens.sum()
    assert sum(by_source.values()) == of(values, "vllm:prompt_tokens_total")
    reasons = result.requests.finish_reason.value_counts()
    assert of(values, "vllm:request_success_total", finished_reason="stop") == reasons["eos"] > 0
    assert of(values, "vllm:request_success_total", finished_reason="length") == reasons["max_tokens"] > 0
    assert of(values, "vllm:request_success_total", finished_reason="abort") == 0
    assert of(values, "kvsim:requests_ended_total", end="rejected") == result.metrics["rejected"] == 8
    assert of(values, "kvsim:requests_arrived_total") == 60
    for (cause, outcome), rows in result.events.groupby(["cause", "outcome"]):
        assert of(values, "kvsim:blocked_allocations_total", cause=cause, outcome=outcome) == len(rows)
    assert of(values, "kvsim:lost_tokens_total") == result.metrics["lost_tokens"]


@pytest.mark.parametrize(
    ("metric", "column"),
    [
        ("vllm:time_to_first_token_seconds", lambda r: r.ttft_s.dropna()),
        ("vllm:request_time_per_output_token_seconds", lambda r: r.tpot_s.dropna()),
        ("vllm:e2e_request_latency_seconds", lambda r: r.e2e_s[r.end == "finished"]),
        ("vllm:request_queue_time_seconds", lambda r: r.queue_s[r.end == "finished"]),
        ("vllm:request_prefill_time_seconds", lambda r: r.prefill_s[r.end == "finished"]),
        ("vllm:request_decode_time_seconds", lambda r: (r.e2e_s - r.ttft_s)[r.end == "finished"]),
        ("vllm:request_inference_time_seconds", lambda r: (r.e2e_s - r.queue_s)[r.end == "finished"]),
        ("vllm:request_prompt_tokens", lambda r: r.prompt_tokens[r.end == "finished"]),
        ("vllm:request_generation_tokens", lambda r: r.generated_tokens[r.end == "finished"]),
        ("vllm:request_prefill_kv_computed_tokens", lambda r: (r.prompt_tokens - r.hit_tokens)[r.end == "finished"]),
        ("vllm:request_params_max_tokens", lambda r: r.max_tokens[r.end == "finished"].dropna()),
        ("vllm:request_params_n", lambda r: r.samples[r.end == "finished"]),
    ],
)
def test_a_histogram_counts_what_the_table_has_at_most_at_each_edge(at_the_end, result, metric, column):
    values, _ = at_the_end
    wanted = np.asarray(column(result.requests), dtype=float)
    assert len(wanted) > 10
    edges = {float(dict(key[1:])["le"]): count for key, count in values.items() if key[0] == f"{metric}_bucket"}
    assert list(edges) == sorted(edges)
    assert list(edges)[-1] == math.inf
    for edge, count in edges.items():
        assert count == (wanted <= edge).sum()
    assert of(values, f"{metric}_count") == edges[math.inf] == len(wanted)
    assert of(values, f"{metric}_sum") == pytest.approx(wanted.sum(), rel=1e-12)


def test_the_edges_of_vllm_are_kept(at_the_end):
    values, _ = at_the_end
    edges = [float(dict(key[1:])["le"]) for key in values if key[0] == "vllm:e2e_request_latency_seconds_bucket"]
    assert edges[:4] == [0.3, 0.5, 0.8, 1.0]
    lengths = [float(dict(key[1:])["le"]) for key in values if key[0] == "vllm:request_prompt_tokens_bucket"]
    assert lengths == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, math.inf]


def test_every_gap_between_tokens_and_every_step_is_counted(at_the_end, result):
    values, _ = at_the_end
    name = "vllm:inter_token_latency_seconds"
    finished = result.requests[result.requests.end == "finished"]
    assert of(values, f"{name}_count") == (finished.generated_tokens - 1).sum()
    assert of(values, f"{name}_sum") == pytest.approx((finished.e2e_s - finished.ttft_s).sum(), rel=1e-9)
    counts = [count for key, count in values.items() if key[0] == f"{name}_bucket"]
    assert counts == sorted(counts)
    steps = "vllm:iteration_tokens_total"
    assert of(values, f"{steps}_count") == result.steps.steps.sum() == result.metrics["steps"]
    tokens = result.steps.prefill_tokens + result.steps.decode_tokens
    assert of(values, f"{steps}_sum") == tokens.sum()


def test_shares_and_quantiles_are_those_of_the_summary(at_the_end, result):
    values, _ = at_the_end
    shares = {name: of(values, "kvsim:pool_share", **{"class": name}) for name in CLASSES}
    assert shares == result.metrics["mean_share"]
    assert of(values, "kvsim:inter_token_latency_quantile_seconds", quantile="0.99") == result.metrics["itl_s"]["p99"]
    assert of(values, "kvsim:goodput_requests_per_second") == result.metrics["goodput_per_s"]


def looks(series):
    """The text of every look by its time: the client reads one look at a time (of points of a histogram that stand
    together, as the standard wants them, it keeps the first only)."""
    *lines, end = series.splitlines()
    assert end == "# EOF"
    times = sorted({float(line.rsplit(" ", 1)[1]) for line in lines if line[0] != "#"})
    found = {}
    for time_s in times:
        mine = [line for line in lines if line[0] == "#" or float(line.rsplit(" ", 1)[1]) == time_s]
        found[time_s] = "\n".join([*mine, "# EOF", ""])
    return found


def test_looks_at_a_run_are_open_metrics_whose_counters_only_grow(series, result):
    found = looks(series)
    assert list(found)[:3] == pytest.approx([0, EVERY_S, 2 * EVERY_S])
    assert list(found)[-1] == result.metrics["simulated_s"]
    before = {}
    for time_s, text in found.items():
        for family in open_metrics_families(text):
            points = {}
            for sample in family.samples:
                assert float(sample.timestamp) == pytest.approx(time_s, abs=1e-9)
                key = (sample.name, *sorted(sample.labels.items()))
                points[key] = sample.value
                if family.type in ("counter", "histogram"):
                    assert sample.value >= before.get(key, 0)
                    before[key] = sample.value
            buckets = [value for (name, *_), value in points.items() if name.endswith("_bucket")]
            assert buckets == sorted(buckets)


def test_all_points_of_a_metric_stand_together_in_the_order_of_time(series):
    assert list(open_metrics_families("".join(line for line in series.splitlines(keepends=True) if "_bucket" not in line
                                              and "_sum" not in line and "_count" not in line)))  # fmt: skip
    families = [line.split()[2] for line in series.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    last = ("", -1.0)
    for line in series.splitlines():
        if line[0] == "#":
            continue
        name, time_s = line.split("{")[0], float(line.rsplit(" ", 1)[1])
        labels = line.split('le="')[0].split("}")[0].split(" ")[0]
        if (name, labels) == last[:2]:
            assert time_s >= last[2]
        last = (name, labels, time_s)


def test_the_last_look_says_what_the_end_of_the_run_says(series, at_the_end):
    values, _ = at_the_end
    *_, text = looks(series).values()
    for family in open_metrics_families(text):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name not in ("model_name", "engine")}
            assert sample.value == of(values, sample.name, **labels)


def test_compare_run_reads_it_back_as_the_same_run(tmp_path, series, result):
    (tmp_path / "metrics.txt").write_text(series)
    measured = read_measured([tmp_path / "metrics.txt"])
    ours = simulated(result, measured.series.time_s)
    found = compare(measured, ours)
    told = {row.key for row in found.rows}
    assert told >= {"ttft_s.mean", "tpot_s.mean", "e2e_s.mean", "running", "waiting", "kv_share",
                    "output_tokens_per_s", "hit_rate", "preemptions"}  # fmt: skip
    for row in found.rows:
        assert row.measured > 0
        assert row.error == pytest.approx(0, abs=1e-9)
        assert row.distance is None or row.distance == pytest.approx(0, abs=1e-6)


def test_too_many_looks_and_a_comparison_are_refused(folder, comparison):
    with pytest.raises(InputError, match=r"--every 1e-06s: are [\d,]+ looks at a run"):
        exported(folder, every_s=1e-6)
    with pytest.raises(InputError, match="--to prometheus takes one run: name its sub-folder"):
        exported(comparison)


def test_a_fleet_has_no_tables_to_export(tmp_path):
    fleet = fake_result()
    source = read_source.__globals__["Source"]("runs/fleet", "fleet", [fleet])
    fleet.tables = {"replicas": {}}
    with pytest.raises(InputError, match="runs/fleet: has no table requests, as a fleet is recorded replica by"):
        list(EXPORTS["prometheus"].files(source, Options()))

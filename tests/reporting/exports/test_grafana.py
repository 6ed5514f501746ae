"""The dashboard shows what the Prometheus export writes, and nothing else."""

import json
import re
from itertools import combinations

import pytest

from kvsim.reporting.exports import EXPORTS, Options, read_source
from kvsim.reporting.exports.families import names


@pytest.fixture(scope="module")
def board(folder):
    [(name, lines)] = EXPORTS["grafana"].files(read_source(folder), Options())
    assert name == "dashboard.json"
    return json.loads("".join(lines))


@pytest.fixture(scope="module")
def panels(board):
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def written(folder):
    """Names of samples in the exports: at the end, and over time."""
    found = set()
    for options in (Options(), Options(every_s=1.0)):
        [(_, lines)] = EXPORTS["prometheus"].files(read_source(folder), options)
        found |= set(re.findall(r"^([a-z][\w:]*)\{", "".join(lines), re.MULTILINE))
    return found


def expressions(panels):
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_every_expression_is_of_metrics_that_the_export_writes(panels, folder):
    there = written(folder) | {"kvsim:fragmentation_ratio", "kvsim:unusable_ratio"}  # of allocators that have holes
    used = set()
    for expression in expressions(panels):
        metrics = re.findall(r"(?:vllm|kvsim):\w+", expression)
        assert metrics
        used |= set(metrics)
    assert used <= there


def test_every_metric_of_kvsims_own_over_time_and_every_gauge_has_a_panel(panels):
    shown = " ".join(expressions(panels))
    at_the_end_alone = {"kvsim:pool_share", "kvsim:inter_token_latency_quantile_seconds",
                        "kvsim:goodput_requests_per_second"}  # fmt: skip
    for name, kind in names().items():
        if name.startswith("kvsim:") or kind == "gauge":
            assert name in shown or name in at_the_end_alone | {"vllm:cache_config_info"}


def test_the_rows_of_vllms_metrics_need_no_metric_of_kvsims(board):
    row = ""
    for panel in board["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
        elif "vLLM" in row:
            assert all("kvsim:" not in target["expr"] for target in panel["targets"])


def test_counters_are_shown_as_rates_and_buckets_as_quantiles(panels):
    for expression in expressions(panels):
        for metric, suffix in re.findall(r"((?:vllm|kvsim):\w+?)(_total|_bucket|_sum|_count)?\{", expression):
            assert (suffix == "") == (names().get(metric) == "gauge") or metric == "vllm:iteration_tokens"
        assert ("_bucket" in expression) == ("histogram_quantile" in expression)
        assert bool(re.search(r"_(total|bucket|sum|count)\{", expression)) == ("rate(" in expression)
        assert expression.count("(") == expression.count(")")
        assert expression.count("{") == expression.count("}")
        assert 'model_name=~"$model_name"' in expression


def test_it_is_a_dashboard_that_grafana_imports(board, panels):
    assert board["schemaVersion"] >= 36
    assert board["title"] == "kvsim: small <b>&"
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    assert {variable["name"] for variable in board["templating"]["list"]} == {"datasource", "model_name"}
    for panel in panels:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["fieldConfig"]["defaults"]["unit"] in {"short", "s", "percentunit", "reqps", "cps"}
        assert [target["refId"] for target in panel["targets"]] == list("ABCD")[: len(panel["targets"])]
        assert panel["title"]


def test_no_panel_lies_over_another_or_beyond_the_grid(board):
    places = [panel["gridPos"] for panel in board["panels"]]
    for place in places:
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above


def test_it_opens_on_the_time_of_the_run(board, result):
    assert board["time"]["from"] == "1970-01-01T00:00:00.000Z"
    assert board["time"]["to"].startswith("1970-01-01T00:00:")
    assert float(board["time"]["to"][17:23]) == pytest.approx(result.metrics["simulated_s"] % 60, abs=1e-3)

"""The table of a comparison says what the metrics say, and its JSON keeps the contract."""

import json

import pytest

from kvsim.metrics.result import to_json
from kvsim.reporting.comparison import comparison_summary, comparison_table, waste_share
from kvsim.step import CLASSES
from tests.fake_results import POOL_TOKENS, fake_metrics, fake_result


def rows(*results):
    return {row.label.strip(): row for group in comparison_table(results) for row in group.rows}


def shares(**given):
    return {"mean_share": dict.fromkeys(CLASSES, 0.0) | given}


def test_waste_is_what_is_not_free_and_not_used():
    metrics = shares(used=0.3, reserved=0.1, internal=0.1, external=0.1, free=0.4)
    assert waste_share(metrics) == pytest.approx(0.5)


def test_waste_of_a_pool_in_full_use_is_zero():
    assert waste_share(shares(used=0.7, free=0.3)) == pytest.approx(0.0)


def test_waste_of_an_empty_pool_does_not_exist():
    assert waste_share(shares(free=1.0)) is None


def test_waste_without_a_pool_does_not_exist():
    assert waste_share({"mean_share": None}) is None


def test_each_result_has_its_column_in_order():
    table = rows(fake_result("naive", waste=0.5), fake_result("paged", waste=0.0))
    assert table["waste"].values[1][0] == pytest.approx(0.0, abs=1e-9)
    assert table["waste"].values[0][0] > 45
    assert table["pool"].values == ((POOL_TOKENS,), (POOL_TOKENS,))


def test_the_table_holds_everything_that_the_demo_promises():
    labels = set(rows(fake_result()))
    assert labels >= {
        "pool",
        "used",
        "waste",
        "running",
        "waiting, mean",
        "finished",
        "rejected",
        "aborted",
        "preemptions",
    }
    assert labels >= {
        "lost",
        "computed again",
        "capacity",
        "fragmentation",
        "rejected: can never fit",
    }
    assert labels >= {"TTFT", "of it queue", "of it prefill", "TPOT", "ITL", "output tokens", "requests", "goodput"}


def test_classes_and_causes_that_never_occur_are_left_out():
    labels = set(rows(fake_result()))
    assert not labels & {"dead", "moving", "cached", "activation", "cancelled", "unfinished"}


def test_a_class_that_one_of_the_results_has_is_shown_for_all():
    other = fake_result("other")
    other.metrics["peak_share"]["cached"] = 0.2
    assert len(rows(fake_result(), other)["cached"].values) == 2


def test_latencies_are_median_and_99th_percentile_in_their_unit():
    table = rows(fake_result())
    spread = fake_metrics()["tpot_s"]
    assert table["TPOT"].values[0] == (spread["p50"] * 1000, spread["p99"] * 1000)
    assert table["TPOT"].unit == "ms"
    assert table["TTFT"].text(0) == "0.56 / 2.45"


def test_a_run_in_which_nothing_finished_shows_dashes():
    result = fake_result()
    for key in ("queue_s", "prefill_s", "ttft_s", "tpot_s"):
        result.metrics[key] = None
    assert rows(result)["TTFT"].text(0) == "- / -"


def test_a_run_without_a_pool_shows_dashes():
    result = fake_result("no-cache")
    result.metrics |= {"pool_tokens": None, "pool_blocks": None, "mean_share": None, "peak_share": None}
    table = rows(result, fake_result())
    assert table["used"].text(0) == "- / -"
    assert table["waste"].text(0) == "-"
    assert table["pool"].text(0) == "-"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0361, "0.04"), (9.876, "9.88"), (98.76, "98.8"), (1234.5, "1,234"), (12345, "12,345")],
)
def test_people_read_three_digits_and_whole_counts(number, text):
    result = fake_result()
    result.metrics["goodput_per_s"] = number
    assert rows(result)["goodput"].text(0) == text


def test_classes_of_service_have_a_row_each_for_the_share_that_met_its_goals():
    one, other = fake_result(), fake_result("other")
    one.metrics["slo_classes"] = {"gold": {"met_share": 0.987}, "a" * 30: {"met_share": None}}
    table = rows(one, other)
    assert [table["gold"].text(index) for index in (0, 1)] == ["98.7", "-"]
    assert table["a" * 23 + "…"].text(0) == "-"
    assert "gold" not in rows(other)


def test_without_a_goal_goodput_says_so_and_without_time_it_is_a_dash():
    none, empty = fake_result(), fake_result("empty")
    none.metrics["goodput_per_s"] = None
    empty.metrics |= {"goodput_per_s": None, "requests_per_s": None}
    assert [rows(none, empty)["goodput"].text(index) for index in (0, 1)] == ["no slo set", "-"]


def test_the_json_of_a_comparison_keeps_the_contract():
    summary = comparison_summary("azure", [fake_result("a"), fake_result("b")])
    assert list(summary) == ["schema", "scenario", "version", "variants"]
    for variant in summary["variants"]:
        assert list(variant) == ["name", "provenance", "expected_error", "not_modelled", "notes", "metrics", "pools"]
    assert [variant["name"] for variant in summary["variants"]] == ["a", "b"]
    assert json.loads(to_json(summary)) == summary


def test_no_results_make_no_comparison():
    with pytest.raises(ValueError, match="results"):
        comparison_table([])
    with pytest.raises(ValueError, match="results"):
        comparison_summary("azure", [])


def test_what_a_paper_prints_stands_beside_what_was_simulated():
    one, other = fake_result(), fake_result()
    one.metrics["mean_running"] = 6.5
    one.metrics["mean_share"]["used"] = 0.25
    one.published = {"mean_running": 7.0, "mean_share": {"used": 0.204}}
    published = comparison_table([one, other])[0]
    assert published.heading == "Simulated / published"
    assert [row.label for row in published.rows] == ["mean running", "mean share used"]
    assert [row.text(0) for row in published.rows] == ["6.50 / 7.00", "25.0 / 20.4"]
    assert published.rows[0].text(1).endswith("/ -")
    summary = comparison_summary("paper", [one, other])
    assert summary["variants"][0]["published"] == one.published
    assert "published" not in summary["variants"][1]


def test_without_published_figures_there_is_no_such_group():
    assert all("published" not in group.heading for group in comparison_table([fake_result()]))

"""The planner against 43 start-ups of real engines: given what they logged, and from model, GPU and flags alone."""

import csv
import json
import os
from functools import cache
from pathlib import Path

import pytest

from kvsim.capacity.checking.compare import default_record
from kvsim.capacity.checking.rows import read_rows
from kvsim.capacity.checking.scores import check_table
from kvsim.capacity.deployment import Deployment, Given
from kvsim.capacity.overheads.releases import release
from kvsim.capacity.planner import plan
from kvsim.capacity.span import Span
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.metrics.result import to_json

pytestmark = pytest.mark.oracle

FEW = Path(__file__).parent / "data" / "capacity" / "starts.csv"


def measured(name: str) -> Path:
    folder = os.environ.get("KVSIM_DATA")
    if not folder:
        pytest.skip("KVSIM_DATA names no folder of logged start-ups")
    return Path(folder, "measured", name)


@cache
def scored(path: Path):
    return check_table(read_rows(path))


@pytest.fixture(params=["few", "all"])
def table(request):
    return scored(FEW if request.param == "few" else measured("capacity_logs.csv"))


def test_given_what_a_log_prints_its_blocks_tokens_and_concurrency_lie_in_the_interval(table):
    summary = table["given"]["summary"]
    assert summary["consistent_rows"] >= 4
    assert summary["outside_interval"] == []


def test_given_what_a_log_prints_the_point_is_off_by_a_tenth_of_a_percent_at_most_in_the_median(table):
    summary = table["given"]["summary"]
    for number in ("kv_tokens", "kv_blocks", "max_concurrency", "kv_memory_from_overheads"):
        assert summary[number]["median"] <= 0.001


def test_given_what_a_log_prints_every_start_ends_as_it_did(table):
    assert table["given"]["summary"]["refusals_wrong"] == []


def test_a_start_that_died_after_its_pool_was_there_says_what_was_left_and_what_was_asked_for(table):
    died = [one for one in table["given"]["rows"] if one["logged"]["reason_class"] == "oom_after_kv"]
    assert died
    for one in died:
        # Asked for 786 MiB, the float32 logits of 1,024 sequences.
        assert one["predicted"]["verdict"] == "at_risk"
        assert "asks for 0.77 GiB at a time" in one["predicted"]["reason"]


def test_from_flags_alone_the_overhead_is_within_the_goal():
    summary = scored(measured("capacity_logs.csv"))["default"]["summary"]
    assert summary["rows"] == 29
    assert summary["overhead_gib"]["median"] <= 0.3
    assert summary["overhead_gib"]["p90"] <= 1.0


def test_from_flags_alone_the_pool_is_within_the_goal_tight_cards_apart():
    summary = scored(measured("capacity_logs.csv"))["default"]["summary"]
    assert summary["kv_tokens"]["median"] <= 0.02
    assert summary["kv_tokens"]["p90"] <= 0.08
    assert summary["kv_tokens_tight"]["n"] == 4


def test_the_stated_interval_covers_what_happened_and_says_something():
    summary = scored(measured("capacity_logs.csv"))["default"]["summary"]
    assert summary["interval_coverage"] >= 0.8
    assert summary["interval_median_width"] <= 0.1


def test_it_beats_one_constant_for_each_release():
    summary = scored(measured("capacity_logs.csv"))["default"]["summary"]
    for score in ("overhead_gib", "kv_tokens"):
        for quantile in ("median", "p90"):
            assert summary[score][quantile] < summary["baseline"][score][quantile]


def test_loaded_weights_quantised_ones_included():
    weights = scored(measured("capacity_logs.csv"))["default"]["summary"]["weights"]
    assert weights["n"] >= 20
    assert weights["median"] <= 0.02
    assert weights["p90"] <= 0.05


def test_from_flags_alone_no_start_that_ran_is_refused():
    rows = scored(measured("capacity_logs.csv"))["default"]["rows"]
    ran = [one for one in rows if one["predicted"] and one["logged"]["outcome"] == "ok"]
    assert [one["id"] for one in ran if one["predicted"]["verdict"] == "refused"] == []


def test_from_flags_alone_every_start_ends_as_it_did():
    assert scored(measured("capacity_logs.csv"))["default"]["summary"]["refusals_wrong"] == []


def test_leaving_a_models_own_logs_out_changes_what_is_planned_for_it():
    rows = {row.id: row for row in read_rows(FEW)}
    record = default_record(rows["C008"])
    # Its own 1.79 GiB of non-torch memory are not used; other cards of that core logged 0.04 to 0.26.
    assert record["predicted"]["non_torch_gib"] == pytest.approx(0.08, abs=0.01)


@pytest.mark.parametrize(("card_gib", "most"), [(79.15, 0.0003), (79.25, 0.007)])
def test_distserves_table_of_opt_on_a100(card_gib, most):
    """48 cells of (model, TP, PP). The goal is 2 %; 79.15 and 79.25 GiB are the two A100s of 80 GB."""
    with measured("distserve_max_kv_tokens_a100_80g.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == 48
    for cell in cells:
        made = plan(
            Deployment(
                model=model(cell["model"]),
                engine=release("distserve"),
                total=Span.exactly(card_gib * 2**30),
                tensor_parallel=int(cell["tp"]),
                pipeline_parallel=int(cell["pp"]),
            )
        )
        assert made.tokens.best == pytest.approx(int(cell["max_num_tokens"]), rel=most), cell


def rtx_4090(given: Given) -> Deployment:
    card = gpu("RTX 4090")
    return Deployment(
        model=model("llama-3.1-8b"),
        engine=release("vllm@0.19"),
        gpu=card,
        total=Span.exactly(card.memory_bytes),
        utilization=0.9,
        max_model_len=32768,
        max_num_seqs=256,
        max_num_batched_tokens=2048,
        given=given,
    )


BLOCKS_4090 = 2588
"""Logged by vLLM 0.19.0 with Llama-3.1-8B on a card of 25,250,627,584 B (LLMServingSim bench meta.json @5daddb2)."""


def test_the_logged_4090_is_what_the_test_says():
    meta = json.loads(measured("vllm_run_rtx4090_llama-3.1-8b_meta.json").read_text("utf-8"))
    assert meta["kv_cache"]["num_gpu_blocks"] == BLOCKS_4090
    assert meta["hardware"]["device_total_memory_bytes"] == gpu("RTX 4090").memory_bytes


def test_the_4090_by_default_is_within_ten_percent_and_the_interval():
    # Without what this very start logged.
    made = plan(rtx_4090(Given()), without="llama-3.1-8b")
    assert made.blocks.best == pytest.approx(BLOCKS_4090, rel=0.1)
    assert made.blocks.low <= BLOCKS_4090 <= made.blocks.high


def test_the_4090_given_its_kv_memory_is_within_one_block_of_its_digits():
    # 2,588 blocks of 2 MiB are 5.0547 GiB, which a log prints as 5.05.
    made = plan(rtx_4090(Given(kv_memory=Span.printed_gib("5.05"))))
    assert made.blocks.low - 1 <= BLOCKS_4090 <= made.blocks.high + 1


@pytest.mark.parametrize("row", ["C051", "C029"])
def test_a_row_that_names_no_known_weights_is_not_scored_on_them(row):
    rows = {one["id"]: one for one in scored(measured("capacity_logs.csv"))["default"]["rows"]}
    assert not (rows[row]["predicted"] or {}).get("weights_gib")


def test_the_committed_report_is_what_the_table_gives():
    committed = json.loads((Path(__file__).parents[2] / "reports" / "capacity" / "check.json").read_text("utf-8"))
    assert json.loads(to_json(scored(measured("capacity_logs.csv")))) == committed

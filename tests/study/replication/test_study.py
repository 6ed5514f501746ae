"""A study: the same streams for all variants, any executor, and honest where there is no interval."""

from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from kvsim import compare
from kvsim.metrics.result import to_json
from kvsim.reporting.comparison import comparison_summary
from kvsim.study import compare_with_intervals
from kvsim.study.replication.asked import Asked
from kvsim.study.replication.catalogue import better, numbers, percentile_of
from kvsim.study.replication.runs.replicate import Serial
from kvsim.study.replication.sessions import grouping
from kvsim.study.replication.study import PRECISE
from kvsim.study.seeds import replication_seed
from kvsim.study.statistics.sequential import LEAST
from tests.study.replication.cases import traced, variants


@pytest.fixture(scope="module")
def replicated():
    return compare_with_intervals(variants(), Asked(replications=4))


def test_one_replication_is_what_compare_gives(replicated):
    alone, nothing = compare_with_intervals(variants(), Asked())
    assert nothing is None
    plain = compare(variants())
    assert [result.summary for result in alone] == [result.summary for result in plain]
    assert [result.summary for result in replicated[0]] == [result.summary for result in plain]


def test_every_number_of_a_run_is_estimated_over_all_replications(replicated):
    results, study = replicated
    for result, variant in zip(results, study.variants, strict=True):
        assert set(variant.estimates) >= set(numbers(result.metrics))
        for key, value in numbers(result.metrics).items():
            estimate = variant.estimates[key]
            assert estimate.values[0] == value
            assert len(estimate.values) == estimate.interval.samples == 4, key
            if percentile_of(key) is None:
                assert estimate.interval.estimate == pytest.approx(np.mean(estimate.values))


def test_percentiles_of_requests_are_those_of_all_runs_together(replicated):
    _, study = replicated
    variant = study.variants[0]
    every = np.concatenate([run.latencies["ttft_s"] for run in variant.runs])
    assert variant.estimates["ttft_s.p99"].interval.estimate == np.percentile(every, 99)
    for run in variant.runs:
        assert np.percentile(run.latencies["ttft_s"], 99) == pytest.approx(run.metrics["ttft_s"]["p99"])
        assert np.mean(run.latencies["e2e_s"]) == pytest.approx(run.metrics["e2e_s"]["mean"])


def test_variants_share_their_seeds_and_their_requests(replicated):
    _, study = replicated
    ours, theirs = study.variants
    assert [run.seed for run in ours.runs] == [run.seed for run in theirs.runs] == study.seeds
    assert len(set(study.seeds)) == 4
    assert study.seeds[0] == 0
    for one, other in zip(ours.runs, theirs.runs, strict=True):
        assert one.metrics["window_s"] == other.metrics["window_s"]


def test_differences_are_paired_and_common_streams_pay_off(replicated):
    _, study = replicated
    baseline, other = study.variants
    assert baseline.name == study.baseline
    assert all(estimate.difference is None for estimate in baseline.estimates.values())
    apart = other.estimates["waste_share"].difference
    values = [estimate.estimates["waste_share"].values for estimate in (other, baseline)]
    assert apart.interval.estimate == pytest.approx(np.mean(np.subtract(*values)))
    assert apart.verdict == "worse"
    assert other.estimates["e2e_s.mean"].difference.variance_ratio < 0.1


def test_any_executor_gives_the_same_study(replicated):
    with ProcessPoolExecutor(2) as pool:
        results, study = compare_with_intervals(variants(), Asked(replications=4), executor=pool)
    texts = [to_json(comparison_summary("small", *found)) for found in (replicated, (results, study))]
    assert texts[0] == texts[1]


def test_the_baseline_can_be_another_variant():
    _, study = compare_with_intervals(variants(), Asked(replications=2, baseline="large blocks"))
    assert study.variant("large blocks").estimates["waste_share"].difference is None
    assert study.variant("blocks").estimates["waste_share"].difference.verdict in ("better", "not distinguishable")


def test_replications_go_on_until_intervals_are_short_enough():
    counted = Counter()

    class Counting(Serial):
        def map(self, function, pieces):
            counted["pieces"] += len(pieces)
            return super().map(function, pieces)

    _, study = compare_with_intervals(variants(), Asked(until_ci=0.03, most=60), executor=Counting())
    assert LEAST < study.samples < 60
    assert counted["pieces"] == 2 * (study.samples - 1)
    for variant in study.variants:
        assert all(variant.estimates[key].interval.relative <= 0.03 for key in PRECISE)
    assert any("somewhat less often than they say" in note for note in study.notes)


def test_replications_that_were_not_enough_are_told_and_saturated_ones_never_count():
    _, study = compare_with_intervals(variants(), Asked(until_ci=0.001, most=3))
    assert study.samples == 3
    assert study.notes[0].startswith("Intervals still reach ")
    _, full = compare_with_intervals(variants(variants={"slow": {"engine": {"max_num_seqs": 1}}}), Asked(until_ci=0.01))
    assert full.samples == LEAST
    assert full.notes[0].startswith("No interval could be narrowed down")


def test_progress_rises_to_the_end():
    seen = []
    compare_with_intervals(variants(), Asked(replications=3), progress=lambda share, name: seen.append((share, name)))
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert {name for _, name in seen} == {"blocks", "large blocks"}


def test_a_saturated_variant_is_told_as_such_and_has_no_interval():
    crowded = variants(variants={"fast": {"allocator": "paged"}, "slow": {"engine": {"max_num_seqs": 1}}})
    _, study = compare_with_intervals(crowded, Asked(replications=3))
    fast, slow = study.variants
    assert not fast.saturated
    assert slow.saturated
    assert all(estimate.interval.low is None for estimate in slow.estimates.values())
    assert {estimate.difference.verdict for estimate in slow.estimates.values() if estimate.difference} == {"saturated"}
    assert fast.estimates["ttft_s.mean"].interval.low is not None
    assert any(note.startswith("slow is saturated: its queue grows by") for note in study.notes)


def test_a_run_that_is_short_against_its_queue_is_not_trusted():
    workload = {"rate": "3/s", "requests": 250, "prompt_tokens": 400, "output_tokens": 100}
    busy = variants(workload=workload, variants={"busy": {"engine": {"max_num_seqs": 16}}})
    _, study = compare_with_intervals(busy, Asked(replications=5))
    assert not study.variants[0].queue.forgets
    [note] = [note for note in study.notes if "busy are not to be trusted: the run is short" in note]
    assert f"{study.variants[0].queue.times_as_long:.1f} times as many requests." in note


def test_too_few_requests_for_a_percentile_are_told(replicated):
    _, study = replicated
    assert study.variants[0].estimates["ttft_s.p99"].needed > 60
    assert study.variants[0].estimates["ttft_s.p50"].needed is None
    assert any("99th percentiles of blocks and large blocks rest on too few requests" in note for note in study.notes)


def test_one_long_run_is_cut_into_batches_of_arrivals():
    workload = {**variants()[0][1].to_dict()["workload"], "requests": 400}
    results, study = compare_with_intervals(variants(workload=workload), Asked(batches=10))
    assert study.method == "batches"
    first = study.variants[0]
    assert len(first.runs) == 10
    assert sum(run.arrivals for run in first.runs) == 400
    every = np.concatenate([run.latencies["ttft_s"] for run in first.runs])
    assert np.mean(every) == pytest.approx(results[0].metrics["ttft_s"]["mean"])
    assert first.estimates["ttft_s.mean"].interval.samples == 10
    assert study.variants[1].estimates["e2e_s.mean"].difference.interval.samples == 10
    assert first.correlation < 0.2


def test_a_trace_is_one_realisation_and_its_sessions_are_drawn():
    results, study = compare_with_intervals(traced("lmcache-web-agents"), Asked(replications=10))
    assert study.method == "sessions"
    estimate = study.variants[0].estimates["e2e_s.mean"]
    assert estimate.interval.estimate == results[0].metrics["e2e_s"]["mean"]
    assert estimate.interval.low < estimate.interval.estimate < estimate.interval.high
    assert study.variants[0].estimates["mean_running"].interval.low is None
    assert study.variants[1].estimates["mean_running"].difference.verdict == "not compared"
    assert study.variants[1].estimates["e2e_s.mean"].difference.interval.low is not None
    assert "is one realisation" in study.notes[0]
    assert f"{study.samples} sessions" in study.notes[0]


def test_a_trace_without_sessions_is_drawn_in_blocks():
    _, study = compare_with_intervals(traced("azure-conv-2023"), Asked(replications=10))
    assert study.samples == 50
    assert "blocks of neighbouring requests" in study.notes[0]


@pytest.mark.parametrize("reshape", [{"share": 0.5}, {"start": "9s"}, {"repeat": 2}, {"repeat": 2, "share": 0.5}])
def test_the_rows_of_a_trace_that_is_reshaped_stay_in_their_sessions(reshape, tmp_path):
    rows = [f"{row},{100 + row % 7},5,{row % 7}" for row in range(30)]  # the prompt tells the session
    (tmp_path / "own.csv").write_text("\n".join(["arrival_s,prompt_tokens,output_tokens,session", *rows]))
    workload = {"trace": str(tmp_path / "own.csv"), "reshape": reshape}
    two = variants(workload=workload, seed=5)
    ran = [result.tables["requests"] for result in compare(two)]
    requests = [{"id": np.array(own["id"]), "session": np.full(len(own["id"]), -1.0)} for own in ran]
    groups = grouping([(scenario, scenario.seed) for _, scenario in two], requests)
    assert groups.told
    for sessions, own in zip(groups.of_requests, ran, strict=True):
        assert len(set(zip(sessions, own["prompt_tokens"], strict=True))) == len(set(own["prompt_tokens"]))
    _, study = compare_with_intervals(two, Asked(replications=2))
    assert study.samples == len(set(ran[0]["prompt_tokens"]))


def test_seeds_of_replications_follow_from_the_study_and_never_meet_its_pilots():
    seeds = [replication_seed(7, number) for number in range(50)]
    pilots = [replication_seed(7, number, "warm-up") for number in range(50)]
    assert seeds[0] == 7
    assert len({*seeds, *pilots}) == 100
    assert max(seeds) < 1 << 53
    assert replication_seed(8, 1) != seeds[1]


def test_directions_are_those_of_the_first_word():
    assert better("ttft_s.p99") == "lower"
    assert better("goodput_per_s") == "higher"
    assert better("mean_share.used") is None


def test_sessions_that_are_played_again_are_drawn_as_their_requests_tell_them():
    workload = {"trace": "lmcache-web-agents", "sessions": {"loop": "closed"}, "requests": 80}
    two = variants(workload=workload, engine={"max_model_len": 16384}, pool={"tokens": 65536})
    _, study = compare_with_intervals(two, Asked(replications=2))
    assert study.method == "sessions"
    assert study.samples == len(set(compare(two)[0].tables["requests"]["session"]))
    assert study.variants[1].estimates["e2e_s.mean"].difference.interval.low is not None


def test_a_fleet_is_replicated_like_one_replica():
    _, study = compare_with_intervals(variants(fleet={"replicas": 2, "router": "round-robin"}), Asked(replications=3))
    first = study.variants[0]
    assert not first.saturated
    assert first.estimates["ttft_s.p99"].interval.low is not None
    assert len(first.runs[0].latencies["ttft_s"]) == 60

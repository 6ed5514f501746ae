"""A plan chooses what trying everything chooses, says so on fresh seeds, and is the same on any workers."""

import pytest

import kvsim
from kvsim.errors import InputError
from kvsim.metrics.result import to_json
from kvsim.reporting.plan import plan_summary
from kvsim.study.planning.plan import FRESH, SAFETY
from kvsim.study.seeds import replication_seed
from tests.study.planning.small import SCENARIO, brute_force

FAST = {"replications": 1, "tolerance": 0.5, "jobs": 1}

QUICK = ({"gpu": ["RTX 4090", "A100-SXM-80GB"]}, [1, 2, 3], {("ttft_s", "p99"): 0.2, ("tpot_s", "p95"): 0.022}, 1)
WHOLE = (
    {"gpu": ["RTX 4090", "L4", "A100-SXM-80GB"], "model.kv_dtype": ["bf16", "fp8"], "tensor_parallel": [1, 2]},
    [1, 2, 3, 4],
    {("ttft_s", "p99"): 0.12, ("tpot_s", "p95"): 0.024},
    2,
)


@pytest.mark.parametrize("case", [QUICK, pytest.param(WHOLE, marks=pytest.mark.slow)])
def test_the_choice_is_that_of_trying_every_candidate_with_every_number_of_replicas(case):
    choices, counts, limits, replications = case
    truth = brute_force(choices, counts, limits, replications)
    slo = ",".join(f"{name[:-2]}_{statistic}<{limit}s" for (name, statistic), limit in limits.items())
    made = kvsim.plan(SCENARIO, slo, choices=choices, replicas=counts, replications=replications, tolerance=0.5, jobs=1)
    for one in made.rows:
        values = tuple(one.candidate.changes.values())
        right = [count for count in counts if truth[values, count][0]]
        assert one.meets == bool(right)
        if right:
            assert one.replicas == right[0]
    meeting = [(gpus, dollars) for meets, gpus, dollars in truth.values() if meets]
    assert len(meeting) > 1
    assert len(meeting) < len(truth)
    assert made.fewest.gpus == min(gpus for gpus, _ in meeting)
    assert made.cheapest.cost("usd_per_hour") == pytest.approx(min(dollars for _, dollars in meeting))


def test_the_best_are_simulated_once_more_on_seeds_that_nobody_chose_by():
    made = kvsim.plan(SCENARIO, "ttft_p99<1s", choices={"gpu": ["RTX 4090"]}, **FAST)
    [(name, again)] = made.verified.items()
    assert name == made.cheapest.candidate.name
    fresh = replication_seed(0, 0, FRESH)
    assert fresh != 0
    truth = kvsim.run(made.cheapest.candidate.scenario, seed=fresh).metrics["ttft_s"]["p99"]
    assert again.values == [truth]
    assert again.values != made.cheapest.trial.values
    assert again.borne


def test_a_recording_has_one_run_a_trial_and_no_fresh_seeds():
    traced = {**SCENARIO, "workload": {"trace": "azure-conv-2023", "rate": "1/s"}}
    made = kvsim.plan(traced, "ttft_p99<60s", choices={"gpu": ["A100-SXM-80GB"]}, replications=3, tolerance=0.9, jobs=1)
    assert made.replications == 1
    assert not made.verified
    assert any("a recording" in note for note in made.notes)


def test_what_screens_far_below_the_rate_is_out_and_says_why():
    busy = {**SCENARIO, "workload": {**SCENARIO["workload"], "rate": "60/s"}}
    made = kvsim.plan(busy, "ttft_p99<1h", choices={"gpu": ["T4", "L4", "H100-SXM"]}, replicas=[1], **FAST)
    t4, l4, fits = made.rows
    assert "does not fit" in t4.out
    assert "with 1 replica, more than 1.5 times below the rate of 60/s" in l4.out
    assert l4.screened.rate_per_s * SAFETY < 60 < fits.screened.rate_per_s * SAFETY
    assert fits.out is None
    assert [l4.meets, l4.trial, l4.replicas] == [False, None, None]


def test_without_choices_the_scenarios_own_gpu_is_tried_at_every_tp_that_divides_its_heads():
    small = {**SCENARIO, "model": "qwen2.5-0.5b", "workload": {**SCENARIO["workload"], "requests": 20}}
    made = kvsim.plan(small, "ttft_p99<1s", **FAST)
    assert [one.candidate.changes for one in made.rows] == [{"tensor_parallel": ranks} for ranks in (1, 2)]


def test_each_candidate_has_the_pool_of_its_own_card_where_they_differ_in_it():
    given = {**SCENARIO, "pool": {"tokens": 4096}}
    made = kvsim.plan(given, "ttft_p99<1s", choices={"gpu": ["RTX 4090", "A100-SXM-80GB"]}, **FAST)
    pools = [one.screened.pool_tokens for one in made.rows]
    assert 4096 < pools[0] < pools[1]
    assert any("pool that its card leaves" in note for note in made.notes)
    kept = kvsim.plan(given, "ttft_p99<9s", choices={"allocator.block_size": [16, 32]}, **FAST)
    assert [one.screened.pool_tokens for one in kept.rows] == [4096, 4096]


def test_the_plan_is_the_same_on_one_process_and_on_two():
    asked = {"choices": {"gpu": ["RTX 4090", "A100-SXM-80GB"]}, "replications": 2, "tolerance": 0.5}
    here, there = (kvsim.plan(SCENARIO, "ttft_p99<1s,rejected<1%", jobs=jobs, **asked) for jobs in (1, 2))
    assert to_json(plan_summary(here)) == to_json(plan_summary(there))


def test_where_nothing_meets_the_goals_the_nearest_is_told_with_its_distance():
    made = kvsim.plan(SCENARIO, "tpot_p95<5ms", choices={"gpu": ["RTX 4090", "A100-SXM-80GB"]}, replicas=[1], **FAST)
    assert made.fewest is None
    assert made.cheapest is None
    assert made.nearest.candidate.name == "A100-SXM-80GB"
    value = made.nearest.trial.values[0]
    summary = plan_summary(made)
    assert summary["nearest"]["missed_by"] == pytest.approx(value / 0.005 - 1)
    assert summary["answer"].startswith("No candidate meets tpot_p95<5ms at 8.00/s. Nearest: A100-SXM-80GB (1 GPU")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"slo": None}, "--slo: is missing, and the scenario has no slo"),
        ({"slo": "goodput>95%"}, "--slo: goodput: is the share of requests within the scenario's slo, and it has none"),
        ({"choices": {"gpu": []}}, "plan: gpu: has no values"),
        ({"choices": {"gpu": ["H1000"]}}, "candidate H1000: "),
        ({"choices": {"tensor_parallel": [3]}}, "tensor_parallel: 3 does not divide the 32 heads"),
        ({"choices": {"workload.rate": ["1/s", "2/s"]}}, "candidates differ in workload"),
        ({"choices": {"gpu": ["h100", "H100-SXM"]}}, "candidates H100-SXM and H100-SXM are the same"),
        ({"choices": {"capacity.gpu_memory_utilization": [0.9, "90%"]}}, "util 0.9 and util 90% are the same"),
        ({"choices": {"fleet.replicas": [1, 2]}}, "fleet.replicas: is what a plan searches for"),
        ({"replicas": [0]}, "--replicas: 0: give whole numbers of at least 1"),
        ({"scenario": {**SCENARIO, "fleet": {"replicas": 2, "autoscale": {"target": 0.6}}}}, "fleet.autoscale: scales"),
    ],
)
def test_what_cannot_be_planned_is_refused_before_anything_runs(asked, said):
    whole = {"scenario": SCENARIO, "slo": "ttft_p99<1s", **asked}
    with pytest.raises(InputError) as error:
        kvsim.plan(**whole, **FAST)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_progress_never_goes_back_and_ends_where_all_runs_are_done():
    told = []
    kvsim.plan(SCENARIO, "ttft_p99<1s", choices={"gpu": ["RTX 4090"]}, progress=lambda *at: told.append(at), **FAST)
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert all(done <= asked for done, asked in told)
    assert told[-1][0] == told[-1][1]


def test_runs_that_are_over_before_they_are_steady_are_not_trusted():
    few = {**SCENARIO, "workload": {**SCENARIO["workload"], "requests": 12}}
    asked = {"slo": "ttft_p99<1s", "choices": {"gpu": ["A100-SXM-80GB"]}, **FAST}
    short = [note for note in plan_summary(kvsim.plan(few, **asked))["notes"] if "not to be trusted" in note]
    assert short[0].startswith("What A100-SXM-80GB can bear (marked ?) is not to be trusted")
    calm = {**SCENARIO, "workload": {**SCENARIO["workload"], "requests": 400, "output_tokens": 10}}
    asked["slo"] = "ttft_p99<60ms"
    assert not [note for note in plan_summary(kvsim.plan(calm, **asked))["notes"] if "not to be trusted" in note]

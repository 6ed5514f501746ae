"""Small stories, every time and count of which can be checked by hand; leaping and stepping tell the same one."""

import pytest

from kvsim.engine.run import simulate
from kvsim.errors import InputError, RunError
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.request import Request
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.step import CLASSES, StepPlan
from kvsim.timing.interface import LinearTiming

STEP = LinearTiming(step_ps=1000)
"""Every step takes 1,000 ps."""

Stepwise = pytest.mark.parametrize("stepwise", [False, True], ids=["leaping", "stepwise"])


def serve(requests, *, pool=1024, allocator=None, timing=STEP, seqs=8, budget=64, limit=512, **options):
    """Run on single-slot blocks unless told otherwise, audited after each step."""
    scheduler = options.pop("scheduler", ContinuousScheduler)(
        allocator or PagedAllocator(pool, block_size=1), max_num_seqs=seqs, max_num_batched_tokens=budget
    )
    return simulate(iter(requests), scheduler, timing, max_model_len=limit, check=True, **options)


def records(log):
    return {record.id: record for record in log.recording.requests.ended}


def gaps(log):
    histogram = log.recording.gaps.histogram
    return sum(histogram.counts.values()), histogram.sum_ps, histogram.max_ps


def slots_ps(log):
    """The integrals of the classes that are not 0."""
    integrals = zip(CLASSES, log.recording.memory.totals.slots_ps, strict=True)
    return {name: value for name, value in integrals if value}


def events(log):
    return [tuple(event) for event in log.recording.requests.events]


# Alone.


@Stepwise
def test_one_request_takes_its_prefill_and_its_decode_steps(stepwise):
    """1000 a step, 100 a sequence, 10 a context token, 1 a prompt token; 5 prompt and 4 output tokens.

    Prefill 1000 + 100 + 5 = 1105; decodes 1000 + 100 + 10 x (6, 7, 8) = 1160, 1170, 1180. The first token comes
    with the prefill, so there are three decodes.
    """
    timing = LinearTiming(step_ps=1000, per_sequence_ps=100, per_context_ps=10, per_prefill_ps=1)
    log = serve([Request(0, 0, 5, 4)], timing=timing, stepwise=stepwise)
    record = records(log)[0]
    assert (record.first_scheduled_ps, record.first_token_ps) == (0, 1105)
    assert record.end_ps == log.end_ps == 1105 + 1160 + 1170 + 1180
    assert (record.end, record.finish_reason, record.generated_tokens) == ("finished", "eos", 4)
    assert gaps(log) == (3, 1160 + 1170 + 1180, 1180)
    assert log.recording.memory.steps == 4


@Stepwise
def test_slots_are_reserved_while_they_are_computed_and_used_from_the_end_of_the_step_on(stepwise):
    """Blocks of 4, 5 prompt and 3 output tokens: 7 are written in all, so the 8th slot never is.

    Step 1 (prefill): 2 blocks, nothing written, 7 reserved, 1 internal. Step 2: 5 used, 2 reserved. Step 3: 6 used,
    1 reserved. The slot that is never written is internal in all three.
    """
    log = serve([Request(0, 0, 5, 3)], allocator=PagedAllocator(16, block_size=4), stepwise=stepwise)
    assert slots_ps(log) == {
        "used": 1000 * (0 + 5 + 6),
        "reserved": 1000 * (7 + 2 + 1),
        "internal": 3000,
        "free": 8 * 3000,
    }


@Stepwise
def test_a_prompt_beyond_the_budget_is_computed_in_chunks(stepwise):
    """10 prompt tokens by 4: steps of 4, 4 and 2 tokens at 1000 + 10 a token; the last gives the first token."""
    timing = LinearTiming(step_ps=1000, per_prefill_ps=10)
    log = serve([Request(0, 0, 10, 2)], timing=timing, seqs=2, budget=4, stepwise=stepwise)
    record = records(log)[0]
    assert record.first_token_ps == 1040 + 1040 + 1020
    assert record.end_ps == 3100 + 1000


@Stepwise
def test_an_idle_engine_starts_at_the_moment_of_an_arrival(stepwise):
    log = serve([Request(0, 250, 1, 2), Request(1, 50_123, 1, 1)], stepwise=stepwise)
    first, second = records(log).values()
    assert (first.first_scheduled_ps, first.end_ps) == (250, 2250)
    assert (second.first_scheduled_ps, second.end_ps) == (50_123, 51_123)
    assert log.recording.memory.totals.time_ps == log.end_ps == 51_123


# Together.


@Stepwise
@pytest.mark.parametrize("arrival", [3001, 3500, 4000])
def test_an_arrival_in_the_middle_of_a_leap_waits_for_the_end_of_the_step_in_progress(arrival, stepwise):
    """Also one exactly at the end of a step (4000): what comes from outside comes before the next plan."""
    log = serve([Request(0, 0, 1, 10), Request(1, arrival, 1, 2)], stepwise=stepwise)
    first, second = (records(log)[number] for number in (0, 1))
    assert (second.first_scheduled_ps, second.first_token_ps, second.end_ps) == (4000, 5000, 6000)
    assert (first.first_token_ps, first.end_ps) == (1000, 10_000)
    assert log.recording.memory.steps == 10


@Stepwise
def test_an_arrival_just_after_the_plan_waits_for_a_whole_step(stepwise):
    log = serve([Request(0, 0, 1, 10), Request(1, 4001, 1, 2)], stepwise=stepwise)
    assert records(log)[1].first_scheduled_ps == 5000


@Stepwise
def test_a_prompt_beside_decodes_slows_them_down(stepwise):
    """Request 1 brings 7 prompt tokens at 100 each into the step from 4000 on: 1700 instead of 1000."""
    timing = LinearTiming(step_ps=1000, per_prefill_ps=100)
    log = serve([Request(0, 0, 1, 10), Request(1, 3500, 7, 2)], timing=timing, stepwise=stepwise)
    assert records(log)[0].first_token_ps == 1100
    # Its first step lasts 1100, so steps end at 1100, 2100, 3100, 4100; the one with the prompt at 5800.
    assert (records(log)[1].first_scheduled_ps, records(log)[1].first_token_ps) == (4100, 5800)
    assert records(log)[0].end_ps == 4100 + 1700 + 5 * 1000
    assert gaps(log) == (9 + 1, 8 * 1000 + 1700 + 1000, 1700)


@Stepwise
def test_who_finds_no_place_waits_until_one_ends(stepwise):
    log = serve([Request(0, 0, 1, 10), Request(1, 500, 1, 1)], seqs=1, stepwise=stepwise)
    assert (records(log)[1].first_scheduled_ps, records(log)[1].end_ps) == (10_000, 11_000)
    assert events(log) == []


@Stepwise
def test_requests_that_end_together_end_in_the_order_of_admission(stepwise):
    requests = [Request(number, 0, 1, 3) for number in range(5)]
    log = serve(requests, stepwise=stepwise)
    assert [(r.id, r.end_ps) for r in log.recording.requests.ended] == [(n, 3000) for n in range(5)]


# Cancellation.


@Stepwise
def test_a_waiting_request_that_is_cancelled_ends_at_once(stepwise):
    requests = [Request(0, 0, 1, 10), Request(1, 500, 1, 5, patience_ps=2000), Request(2, 600, 1, 1)]
    log = serve(requests, seqs=1, stepwise=stepwise)
    record = records(log)[1]
    assert (record.end, record.end_ps, record.generated_tokens) == ("cancelled", 2500, 0)
    assert record.first_scheduled_ps is None
    assert records(log)[2].first_scheduled_ps == 10_000


@Stepwise
@pytest.mark.parametrize("patience", [2001, 2500, 3000])
def test_a_running_request_that_is_cancelled_ends_with_the_step_in_progress(patience, stepwise):
    """Its slots are free for others from then on, and the token of that step is out."""
    requests = [Request(0, 0, 1, 10, patience_ps=patience), Request(1, 100, 1, 1)]
    log = serve(requests, seqs=1, stepwise=stepwise)
    record = records(log)[0]
    assert (record.end, record.end_ps, record.generated_tokens) == ("cancelled", 3000, 3)
    assert record.finish_reason is None
    assert records(log)[1].first_scheduled_ps == 3000


@Stepwise
def test_a_request_that_is_cancelled_while_its_prompt_is_computed_has_no_token(stepwise):
    log = serve([Request(0, 0, 10, 5, patience_ps=1500)], seqs=2, budget=4, stepwise=stepwise)
    record = records(log)[0]
    assert (record.end, record.end_ps) == ("cancelled", 2000)
    assert (record.first_token_ps, record.generated_tokens) == (None, 0)


@Stepwise
@pytest.mark.parametrize("patience", [10_000, 10_001, 99_000])
def test_a_cancellation_at_or_after_the_end_changes_nothing(patience, stepwise):
    log = serve([Request(0, 0, 1, 10, patience_ps=patience)], stepwise=stepwise)
    record = records(log)[0]
    assert (record.end, record.end_ps, record.generated_tokens) == ("finished", 10_000, 10)
    assert log.end_ps == 10_000


# A pool that is too small.


@Stepwise
def test_a_preempted_request_loses_its_tokens_and_computes_them_again(stepwise):
    """8 slots. Request 0 takes 7 in all (3 + 5 - 1), request 1 takes 5 (3 + 3 - 1).

    At 2000 both have 4 tokens written and the pool is full: request 1, the last admitted, loses its 4. It has 2
    output tokens by then, so it needs 5 slots, and waits for them until request 0 ends at 5000. Then it computes 5
    tokens, 4 of them again, and samples its third and last at 6000.
    """
    log = serve([Request(0, 0, 3, 5), Request(1, 0, 3, 3)], pool=8, stepwise=stepwise)
    first, second = (records(log)[number] for number in (0, 1))
    assert (first.end, first.end_ps, first.preemptions) == ("finished", 5000, 0)
    assert (second.end, second.end_ps, second.generated_tokens) == ("finished", 6000, 3)
    assert (second.first_scheduled_ps, second.first_token_ps) == (0, 1000)
    assert (second.preemptions, second.lost_tokens, second.recomputed_tokens) == (1, 4, 4)
    assert log.recording.requests.preemptions == 1
    assert events(log) == [
        (2000, 0, "capacity", "preempt", 1, 0, 0),
        (3000, 1, "capacity", "wait", 5, 2, 2),
    ]
    # Gaps: four of 1000 (request 0), 1000 and then 2000 to 6000 (request 1).
    assert gaps(log) == (6, 4000 + 1000 + 4000, 4000)
    # Used in the six steps: 0, 3 + 3, 4, 5, 6, 0.
    assert slots_ps(log)["used"] == 1000 * (0 + 6 + 4 + 4 + 5 + 6 + 0 - 4)


@Stepwise
def test_what_a_request_loses_twice_counts_twice_and_only_what_was_computed_before_counts_as_again(stepwise):
    """Budget 2: request 1 is preempted after its resumption computed a part only.

    8 slots; request 0: 2 + 6 - 1 = 7, request 1: 2 + 4 - 1 = 5. Both prompts take a step each (budget 2): request 0
    writes 2 by 1000, then decodes; request 1 shares the budget, 1 token a step, and is done with its prompt at 3000.
    """
    log = serve([Request(0, 0, 2, 6), Request(1, 0, 2, 4)], pool=8, seqs=2, budget=2, stepwise=stepwise)
    second = records(log)[1]
    # Written at the ends of steps: request 0: 2 3 4 5; request 1: 0 1 2 3. At 4000 both want one more: full.
    assert (second.first_scheduled_ps, second.first_token_ps) == (1000, 3000)
    assert (second.preemptions, second.lost_tokens) == (1, 3)
    # At 4000 request 0 goes on to 6 and at 5000 to 7 written, and ends at 6000 with 6 tokens. Request 1 has 2 output
    # tokens, needs 4 slots and gets them at 6000; 2 + 2 tokens at a budget of 2, three of them again.
    assert records(log)[0].end_ps == 6000
    assert second.recomputed_tokens == 3
    assert (second.end_ps, second.generated_tokens) == (6000 + 2 * 1000 + 1000, 4)


@Stepwise
def test_a_prompt_beyond_the_pool_is_refused_on_arrival(stepwise):
    log = serve([Request(0, 0, 1, 5), Request(1, 2500, 9, 1)], pool=8, stepwise=stepwise)
    record = records(log)[1]
    assert (record.end, record.end_ps, record.first_scheduled_ps) == ("rejected", 2500, None)
    # In the step from 2000 on request 0 owns 3 slots.
    assert events(log) == [(2500, 1, "never", "reject", 9, 5, 5)]
    assert log.recording.occupancy.stay_ps == 5000


@Stepwise
@pytest.mark.parametrize("prompt", [512, 513])
def test_a_prompt_at_or_over_the_models_limit_is_refused(prompt, stepwise):
    log = serve([Request(0, 0, prompt, 1), Request(1, 0, 511, 1)], stepwise=stepwise)
    assert records(log)[0].end == "rejected"
    assert [event[2:4] for event in events(log)] == [("never", "reject")]
    assert records(log)[1].end == "finished"


@Stepwise
def test_a_lone_request_that_outgrows_the_pool_is_aborted(stepwise):
    """3 prompt tokens at 1000, then one more each step: 8 at 6000, with 6 tokens out; the 9th slot is not there."""
    log = serve([Request(0, 0, 3, 10), Request(1, 100, 2, 1, patience_ps=50)], pool=8, stepwise=stepwise)
    record = records(log)[0]
    assert (record.end, record.end_ps, record.generated_tokens) == ("aborted", 6000, 6)
    assert events(log) == [(6000, 0, "outgrown", "abort", 1, 0, 0)]
    assert log.end_ps == 6000


@Stepwise
def test_a_region_that_cannot_grow_in_place_is_copied_and_holds_both_for_a_step(stepwise):
    """Regions of 4 in 20 slots: request 0 at 0..3, request 1 at 4..7. Request 0 has 4 written at 2000 and needs a
    fifth: its 4 slots move to 8..15 during the step from 2000 on, at 50 ps each.
    """
    log = serve(
        [Request(0, 0, 3, 4), Request(1, 0, 1, 4)],
        allocator=ContiguousAllocator(20, chunk=4),
        timing=LinearTiming(step_ps=1000, per_copied_ps=50),
        stepwise=stepwise,
    )
    assert log.recording.copied_slots == 4
    assert records(log)[0].end_ps == records(log)[1].end_ps == 4 * 1000 + 200
    # The targets of the copy: 4 slots during one step of 1200.
    assert slots_ps(log)["moving"] == 4 * 1200


# Finish reasons.


@Stepwise
@pytest.mark.parametrize(
    ("prompt", "output", "max_tokens", "tokens", "reason", "clipped"),
    [
        (5, 10, None, 10, "eos", 0),
        (5, 10, 10, 10, "eos", 0),
        (5, 10, 4, 4, "max_tokens", 0),
        (5, 10, 1, 1, "max_tokens", 0),
        (502, 10, None, 10, "eos", 0),
        (503, 10, None, 9, "max_model_len", 1),
        (511, 10, None, 1, "max_model_len", 1),
        (503, 10, 9, 9, "max_tokens", 0),
        (503, 10, 10, 9, "max_model_len", 1),
    ],
)
def test_a_request_ends_by_its_own_end_by_its_client_or_at_the_models_limit(
    prompt, output, max_tokens, tokens, reason, clipped, stepwise
):
    """`max_model_len` is 512; what ends first gives the reason, and the cut outputs are counted."""
    log = serve([Request(0, 0, prompt, output, max_tokens)], budget=512, stepwise=stepwise)
    record = records(log)[0]
    assert (record.end, record.finish_reason, record.generated_tokens) == ("finished", reason, tokens)
    assert record.end_ps == tokens * 1000
    assert log.recording.requests.clipped == clipped


# Horizon and warm-up.


@Stepwise
def test_the_horizon_in_the_middle_of_a_step_leaves_its_work_undone(stepwise):
    log = serve([Request(0, 0, 4, 9), Request(1, 501, 1, 1)], horizon_ps=500, stepwise=stepwise)
    assert [(r.id, r.end, r.end_ps) for r in log.recording.requests.ended] == [(0, "unfinished", 500)]
    assert (records(log)[0].first_token_ps, records(log)[0].generated_tokens) == (None, 0)
    assert (log.recording.memory.steps, log.recording.memory.totals.tokens) == (0, 0)
    assert slots_ps(log) == {"reserved": 4 * 500, "free": 1020 * 500}


@Stepwise
def test_the_horizon_in_the_middle_of_a_leap_counts_whole_steps_and_a_part_of_memory(stepwise):
    """Steps end at 1000, 2000 and 3000; the fourth has half its time. Used: 0, 1, 2 and 3 slots, one more reserved."""
    log = serve([Request(0, 0, 1, 10)], horizon_ps=3500, stepwise=stepwise)
    record = records(log)[0]
    assert (record.end, record.end_ps, record.generated_tokens) == ("unfinished", 3500, 3)
    assert (log.recording.memory.steps, log.end_ps) == (3, 3500)
    assert gaps(log) == (2, 2000, 1000)
    assert slots_ps(log) == {
        "used": 1000 + 2000 + 3 * 500,
        "reserved": 3500,
        "free": 1023 * 1000 + 1022 * 1000 + 1021 * 1000 + 1020 * 500,
    }


@Stepwise
def test_the_step_that_the_horizon_cuts_has_its_slots(stepwise):
    """4 slots for the prompt, and one for each of the decodes that begin at 1,000, 2,000 and 3,000."""
    log = serve([Request(0, 0, 4, 10)], horizon_ps=3500, stepwise=stepwise)
    upkeep = log.recording.upkeep
    assert (upkeep.allocations, upkeep.frees, upkeep.table_bytes) == (7, 7, 7 * 4)


@Stepwise
def test_a_step_that_ends_at_the_horizon_is_over_and_no_other_begins(stepwise):
    requests = [Request(0, 0, 1, 10), Request(1, 0, 1, 3), Request(2, 3000, 1, 1)]
    log = serve(requests, horizon_ps=3000, stepwise=stepwise)
    ends = {r.id: (r.end, r.end_ps, r.generated_tokens) for r in log.recording.requests.ended}
    assert ends == {0: ("unfinished", 3000, 3), 1: ("finished", 3000, 3), 2: ("unfinished", 3000, 0)}
    assert log.recording.memory.steps == 3


@Stepwise
def test_a_horizon_after_the_last_end_changes_nothing(stepwise):
    log, plain = (serve([Request(0, 0, 1, 2)], horizon_ps=h, stepwise=stepwise) for h in (9000, None))
    assert records(log)[0].end == "finished"
    assert log.end_ps == plain.end_ps == 2000
    assert log.recording.memory.totals.time_ps == 2000


@Stepwise
def test_a_horizon_is_waited_for_while_more_requests_could_come(stepwise):
    log = serve([Request(0, 0, 1, 2), Request(1, 9500, 1, 2)], horizon_ps=9000, stepwise=stepwise)
    assert (log.end_ps, log.recording.memory.totals.time_ps, log.recording.requests.arrived) == (9000, 9000, 1)


@Stepwise
def test_clients_that_cancel_their_long_prompts_are_progress_enough(stepwise):
    """Each prompt would take 300 steps and is given up after 40; no token is ever emitted."""
    requests = [Request(n, n * 10_000, 300, 1, patience_ps=40_500) for n in range(40)]
    log = serve(requests, stepwise=stepwise, budget=1, seqs=1)
    assert {record.end for record in log.recording.requests.ended} == {"cancelled"}


@Stepwise
def test_the_warm_up_is_left_out_of_the_sums_and_gaps_are_of_requests_that_come_after_it(stepwise):
    """Request 0 takes ten steps of 1000, two and a half of which are warm-up: 8 of its tokens are left, at levels of
    2 for half a step and 3 to 9. Request 1 comes after it and runs from 3000 to 6000, at levels of 0, 1 and 2.
    """
    log = serve([Request(0, 0, 1, 10), Request(1, 2600, 1, 3)], warmup_ps=2500, stepwise=stepwise)
    totals = log.recording.memory.totals
    assert (totals.time_ps, totals.tokens, totals.running_ps) == (7500, 8 + 3, 7500 + 3000)
    assert slots_ps(log)["used"] == 2 * 500 + 1000 * sum(range(3, 10)) + 1000 * (0 + 1 + 2)
    assert gaps(log) == (2, 2000, 1000)
    assert [records(log)[number].generated_tokens for number in (0, 1)] == [10, 3]


# Runs that go nowhere, and requests that are no workload.


class PlansNothing(ContinuousScheduler):
    def plan(self):
        return StepPlan()


class NeverGetsOn(ContinuousScheduler):
    """Whatever a step computes is thrown away: the same chunk is planned for ever."""

    def complete(self, plan):
        self.allocator.settle(())
        return []


class PreemptsForEver(ContinuousScheduler):
    """Each step takes back what the last one gave."""

    def plan(self):
        for sequence in list(self.running.values()):
            self._preempt(sequence, StepPlan())
        return super().plan()


@Stepwise
def test_a_scheduler_that_plans_nothing_is_stopped_with_a_diagnosis(stepwise):
    with pytest.raises(RunError) as error:
        serve([Request(7, 2_000_000, 3, 3)], scheduler=PlansNothing, pool=64, stepwise=stepwise)
    message = str(error.value)
    assert "the run makes no progress at 0.000002 s: nothing is planned although requests wait or run" in message
    assert "0 running, 1 waiting, request 7 of 3 tokens heads the queue; 64 of 64 slots are free" in message


@Stepwise
@pytest.mark.parametrize("scheduler", [NeverGetsOn, PreemptsForEver])
def test_a_run_that_computes_and_never_gets_on_is_stopped_with_a_diagnosis(scheduler, stepwise):
    """A prompt of 100 takes 7 steps at 16 a step; far more than that without a token is no progress."""
    with pytest.raises(RunError, match=r"the run makes no progress at .*: no token in \d+ steps") as error:
        serve([Request(0, 0, 100, 3)], scheduler=scheduler, budget=16, stepwise=stepwise)
    steps = int(str(error.value).split("no token in ")[1].split()[0])
    assert 7 < steps <= 64 + 2 * (512 // 16) + 1


@Stepwise
def test_a_long_prompt_in_small_chunks_is_progress(stepwise):
    log = serve([Request(0, 0, 500, 1)], seqs=1, budget=1, stepwise=stepwise)
    assert records(log)[0].end_ps == 500_000


def test_requests_out_of_order_are_wrong_input():
    with pytest.raises(InputError, match="request 1 arrives at 499 ps, before the one ahead of it"):
        serve([Request(0, 500, 1, 1), Request(1, 499, 1, 1)])


def test_a_workload_without_requests_is_wrong_input():
    with pytest.raises(InputError, match="the workload has no requests"):
        serve([])


@Stepwise
def test_a_warm_up_that_outlasts_the_arrivals_leaves_nothing_to_measure_up_to_the_last_of_them(stepwise):
    """Steps end at 1,000 to 9,000 and the warm-up at 5,500; a leap over all of them is recorded only after that."""
    log = serve([Request(0, 100, 4, 9)], warmup_ps=5500, stepwise=stepwise)
    assert log.recording.memory.closed is None
    assert log.recording.memory.totals.time_ps == 9100 - 5500

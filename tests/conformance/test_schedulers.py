"""The scheduler keeps every promise of the seam on every allocator, and breaking any one is noticed and named."""

import sys
from collections import Counter, deque

import pytest

from kvsim.errors import CheckError
from kvsim.memory.host import HostPool
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.scheduling.prefill_first import PrefillFirstScheduler
from kvsim.scheduling.static import StaticScheduler
from kvsim.step import StepPlan
from kvsim.testing import check_scheduler, scheduler_checks
from kvsim.testing.schedulers.drive import Drive, Limits, drive

SETTINGS = {
    "roomy": {"max_num_seqs": 64, "max_num_batched_tokens": 256},
    "tight budget": {"max_num_seqs": 8, "max_num_batched_tokens": 12},
    "few": {"max_num_seqs": 2, "max_num_batched_tokens": 2},
    "short chunks": {"max_num_seqs": 6, "max_num_batched_tokens": 40, "long_prefill_token_threshold": 5},
    "many prompts": {"max_num_seqs": 8, "max_num_batched_tokens": 10, "long_prefill_token_threshold": 3},
    "whole prompts": {"max_num_seqs": 6, "max_num_batched_tokens": 50, "chunked_prefill": False},
    "no preemption": {
        "max_num_seqs": 8,
        "max_num_batched_tokens": 16,
        "preemption": "never",
        "max_model_len": 48,
    },
    "aborts": {"max_num_seqs": 8, "max_num_batched_tokens": 16, "preemption": "abort"},
    "lowest priority": {
        "max_num_seqs": 8,
        "max_num_batched_tokens": 16,
        "victim": "lowest-priority",
        "long_prefill_token_threshold": 2,
    },
    "largest": {"max_num_seqs": 8, "max_num_batched_tokens": 16, "victim": "largest"},
    "least work": {
        "max_num_seqs": 8,
        "max_num_batched_tokens": 12,
        "victim": "least-work",
        "long_prefill_token_threshold": 3,
    },
    "no gate": {"max_num_seqs": 8, "max_num_batched_tokens": 16, "reserve_full_isl": False},
    "swap": {"max_num_seqs": 8, "max_num_batched_tokens": 16, "reserve_full_isl": False, "preemption": "swap"},
    "little host memory": {"max_num_seqs": 8, "max_num_batched_tokens": 16, "preemption": "swap", "host": 20},
    "padded": {"max_num_seqs": 8, "max_num_batched_tokens": 16, "kernel": "padded"},
    "prefill first": {"kind": PrefillFirstScheduler, "max_num_seqs": 8, "max_num_batched_tokens": 60},
    "prefill first, tight budget": {"kind": PrefillFirstScheduler, "max_num_seqs": 8, "max_num_batched_tokens": 48},
    "prefill first, swap": {
        "kind": PrefillFirstScheduler,
        "max_num_seqs": 8,
        "max_num_batched_tokens": 60,
        "preemption": "swap",
        "kernel": "padded",
    },
    "prefill first, aborts": {
        "kind": PrefillFirstScheduler,
        "max_num_seqs": 8,
        "max_num_batched_tokens": 60,
        "preemption": "abort",
    },
    "static": {"kind": StaticScheduler, "max_num_seqs": 6, "max_num_batched_tokens": 100},
    "static, aborts": {
        "kind": StaticScheduler,
        "max_num_seqs": 6,
        "max_num_batched_tokens": 48,
        "preemption": "abort",
    },
}


def made(allocator, *, kind=ContinuousScheduler, **settings):
    if settings.get("preemption") == "swap":
        settings["host"] = HostPool(settings.get("host", 10_000))
    return kind(allocator, **settings)


def checks_for(settings):
    limits = {key: settings[key] for key in ("max_num_seqs", "max_num_batched_tokens")}
    return dict(scheduler_checks(**limits))


CHECKS = checks_for(SETTINGS["roomy"])


OTHER_RULES = {
    "no preemption": {"no_work_waits_that_could_be_done"},  # admission waits for what those that run may still need
    "static": {"no_work_waits_that_could_be_done"},  # admission waits for the end of the batch
    "static, aborts": {"no_work_waits_that_could_be_done"},
    "lowest priority": {"the_last_admitted_is_preempted"},
    "largest": {"the_last_admitted_is_preempted"},
    "least work": {"the_last_admitted_is_preempted"},
}
"""Promises that a setting does not make, by its definition."""


@pytest.mark.parametrize(
    ("settings", "check"),
    [(name, check) for name in SETTINGS for check in CHECKS if check not in OTHER_RULES.get(name, ())],
)
def test_every_scheduler_keeps_every_promise(settings, check):
    settings = SETTINGS[settings]
    checks_for(settings)[check](lambda allocator: made(allocator, **settings))


@pytest.mark.parametrize(("settings", "check"), [(name, next(iter(OTHER_RULES[name]))) for name in OTHER_RULES])
def test_other_rules_are_other_rules(settings, check):
    settings = SETTINGS[settings]
    with pytest.raises(CheckError, match=r"work waits that could be done|the last admitted are"):
        checks_for(settings)[check](lambda allocator: made(allocator, **settings))


class Watched(Drive):
    seen: Counter[str]

    def before_plan(self):
        self.seen["stable steps"] += bool(self.scheduler.stable_steps(1))
        self.seen["stable steps while requests wait"] += bool(self.queue and self.scheduler.stable_steps(1))

    def planned(self, plan):
        self.seen["preemption"] += len(plan.preempted)
        self.seen["preemption of a prompt"] += any(not victim.decoding for victim in plan.preempted)
        self.seen["abort"] += len(plan.aborted)
        self.seen["chunk of a part"] += any(chunk.written for chunk in plan.chunks)
        self.seen["copy"] += bool(plan.copied_slots)
        self.seen.update(f"{blocked.short.cause}, {blocked.outcome}" for blocked in plan.blocked)

    def end(self, sequence, end):
        self.seen[f"{end} {'running' if sequence in self.running else 'waiting'}"] += 1
        super().end(sequence, end)


def test_the_drives_meet_preemption_aborts_and_cancellation():
    Watched.seen = Counter()
    settings = SETTINGS["no gate"]
    limits = Limits(settings["max_num_seqs"], settings["max_num_batched_tokens"], 48)
    for _ in drive(Watched, lambda allocator: ContinuousScheduler(allocator, **settings), limits):
        pass
    must = {"stable steps", "stable steps while requests wait", "preemption", "preemption of a prompt"}
    must |= {"abort", "chunk of a part", "copy", "capacity, wait", "capacity, preempt", "fragmentation, wait"}
    must |= {"outgrown, abort", "finished running", "cancelled running", "cancelled waiting"}
    assert {what for what in must if Watched.seen[what] >= 3} == must


# Schedulers with one planted bug each.


class Overspends(ContinuousScheduler):
    def __init__(self, allocator, **settings):
        settings["max_num_batched_tokens"] += 1
        super().__init__(allocator, **settings)


class RunsOneTooMany(ContinuousScheduler):
    def __init__(self, allocator, **settings):
        settings["max_num_seqs"] += 1
        super().__init__(allocator, **settings)


class LeavesADecodeOut(ContinuousScheduler):
    def plan(self):
        plan = super().plan()
        if plan.decodes > 2:
            plan.decodes -= 1
        return plan


class AttendsToTooLittle(ContinuousScheduler):
    def plan(self):
        plan = super().plan()
        plan.rows = plan.rows._replace(context=plan.context - plan.decodes)
        return plan


class ComputesTwice(ContinuousScheduler):
    def plan(self):
        plan = super().plan()
        if len(plan.chunks) > 1:
            plan.chunks.append(plan.chunks[0])
        return plan


class UnderstatesTheLoss(ContinuousScheduler):
    def _preempt(self, victim, plan):
        super()._preempt(victim, plan)
        plan.preempted[-1] = plan.preempted[-1]._replace(lost_tokens=0)


class WaitsForTheBatch(ContinuousScheduler):
    def _admit(self, plan, budget):
        if not self.running or plan.admitted:
            super()._admit(plan, budget)


class IdlesOnPrompts(ContinuousScheduler):
    def _want(self, sequence, budget):
        return 0 if self.allocator.decodes.clock % 3 == 0 else super()._want(sequence, budget)


class ListsBackwards(ContinuousScheduler):
    def _admit(self, plan, budget):
        super()._admit(plan, budget)
        if len(plan.admitted) > 1:
            self.running = dict(reversed(self.running.items()))


class LastComeFirstServed(ContinuousScheduler):
    def submit(self, sequence):
        super().submit(sequence)
        self._queue.rotate(1)
        self._blocked = False


class SendsVictimsToTheBack(ContinuousScheduler):
    def _preempt(self, victim, plan):
        super()._preempt(victim, plan)
        self._queue.rotate(-1)


class AdmitsBesidePreemption(ContinuousScheduler):
    def _extend_in_order(self, plan):
        budget = super()._extend_in_order(plan)
        if plan.preempted and not self.prefilling:
            self._admit(plan, budget)
        return budget


class PreemptsTheOldest(ContinuousScheduler):
    def __init__(self, allocator, **settings):
        super().__init__(allocator, **settings)
        self._victim = lambda running, decodes: next(iter(running))


class PromisesTooMuch(ContinuousScheduler):
    def stable_steps(self, limit):
        return limit if self.running and not self.prefilling else 0


class PromisesWhilePromptsAreComputed(ContinuousScheduler):
    def stable_steps(self, limit):
        return limit if self.running and not self.waiting_count else 0


class PromisesBeyondTheLimit(ContinuousScheduler):
    def stable_steps(self, limit):
        return 2 * super().stable_steps(limit)


class NeverAdmits(ContinuousScheduler):
    def _admit(self, plan, budget):
        pass


class BelievesInSpeed(ContinuousScheduler):
    def silent_steps(self, longest_tokens):
        return 0


class LosesItsVictims(ContinuousScheduler):
    def _preempt(self, victim, plan):
        super()._preempt(victim, plan)
        self._queue.popleft()
        self.waiting_count -= 1


class MiscountsTheCancelled(ContinuousScheduler):
    def leave(self, sequence):
        waits = sequence.id not in self.running
        super().leave(sequence)
        self.waiting_count += waits


class KeepsTheMemoryOfWhoLeaves(ContinuousScheduler):
    def leave(self, sequence):
        if sequence.id in self.running:
            del self.running[sequence.id]
            self.prefilling.pop(sequence.id, None)
        else:
            super().leave(sequence)


class RemembersOtherRuns(ContinuousScheduler):
    plans = 0

    def _admit(self, plan, budget):
        type(self).plans += 1
        if type(self).plans % 5:
            super()._admit(plan, budget)


class PeeksAtTheTruth(ContinuousScheduler):
    """Looks up the call stack for what it must not know, and admits nothing long."""

    def _admit(self, plan, budget):
        driver = sys._getframe(2).f_locals["self"]
        if not self.head or not self.running or driver._calls[self.head.id].output % 2:
            super()._admit(plan, budget)


class StandsStillForNothing(PrefillFirstScheduler):
    def plan(self):
        plan = super().plan()
        plan.stalled = plan.stalled or self.allocator.decodes.clock % 5 == 4
        return self._planned(StepPlan(stalled=True)) if plan.stalled and not plan.chunks else plan


class LeavesAPromptBehind(PrefillFirstScheduler):
    def _admit(self, plan):
        budget, self.budget = self.budget, self.budget // 2
        super()._admit(plan)
        self.budget = budget


class IgnoresPadding(StaticScheduler):
    def _admit(self, plan):
        while self.head and not self._blocked and self.head.tokens <= self.budget - sum(c.tokens for c in plan.chunks):
            if not self._has_seats(self.head) or not self._let_in(plan, self.head, self.head.tokens, 0):
                return


class ForgetsWhatItSwapped(ContinuousScheduler):
    def _preempt(self, victim, plan):
        super()._preempt(victim, plan)
        plan.preempted[-1] = plan.preempted[-1]._replace(swapped_tokens=0)


class LetsNewOnesOvertakeTheSwapped(ContinuousScheduler):
    def _swap_in(self, plan, budget):
        swapped, self._swapped = self._swapped, deque()
        self._admit(plan, budget)
        self._swapped = swapped
        return None if plan.admitted else super()._swap_in(plan, budget)


class HandsOverWhoIsNotDone(StaticScheduler):
    def done(self):
        return list(self.running.values()) if self._ended else []


class DecodesTheDead(StaticScheduler):
    def finish(self, sequence):
        self._ended.add(sequence.id)


PLANTED = [
    (Overspends, "the_limits_hold", "max_num_batched_tokens is 16"),
    (RunsOneTooMany, "the_limits_hold", "9 requests run, max_num_seqs is 8"),
    (LeavesADecodeOut, "nobody_that_decodes_is_left_out", "a decoding request is left out"),
    (AttendsToTooLittle, "nobody_that_decodes_is_left_out", "context"),
    (ComputesTwice, "chunks_follow_the_known_tokens", "is the second for request"),
    (UnderstatesTheLoss, "chunks_follow_the_known_tokens", "0 are told"),
    (WaitsForTheBatch, "no_work_waits_that_could_be_done", "its memory can be had"),
    (IdlesOnPrompts, "no_work_waits_that_could_be_done", "run and get nothing"),
    (ListsBackwards, "running_requests_keep_admission_order", "in admission order it is"),
    (LastComeFirstServed, "first_come_first_served", "first come, first served|the first of the queue"),
    (SendsVictimsToTheBack, "first_come_first_served", "a preempted request goes to the front"),
    (AdmitsBesidePreemption, "nothing_is_admitted_in_a_step_that_preempts", "in a step that preempts"),
    (PreemptsTheOldest, "the_last_admitted_is_preempted", "the last admitted are"),
    (PromisesTooMuch, "stable_steps_are_honest", "admissions"),
    (PromisesWhilePromptsAreComputed, "stable_steps_are_honest", "running requests do not decode"),
    (PromisesBeyondTheLimit, "stable_steps_are_honest", "above its limit"),
    (NeverAdmits, "everything_ends", "nothing is planned although"),
    (BelievesInSpeed, "everything_ends", "steps without a token, silent_steps allows 0"),
    (LosesItsVictims, "requests_and_slots_are_conserved", "requests are not conserved"),
    (MiscountsTheCancelled, "requests_and_slots_are_conserved", "wait and run by its counts"),
    (KeepsTheMemoryOfWhoLeaves, "requests_and_slots_are_conserved", "should be free after a leave"),
    (RemembersOtherRuns, "the_same_calls_give_the_same_plans", "the same calls gave another plan"),
    (PeeksAtTheTruth, "the_truth_stays_hidden", "longer outputs"),
]
PLANTED_IN_OTHERS = [
    ("prefill first", StandsStillForNothing, "nobody_that_decodes_is_left_out", "no prompt is computed"),
    ("prefill first, swap", LeavesAPromptBehind, "no_work_waits_that_could_be_done", "its memory can be had"),
    ("swap", ForgetsWhatItSwapped, "chunks_follow_the_known_tokens", "to be lost or swapped"),
    ("swap", LetsNewOnesOvertakeTheSwapped, "first_come_first_served", "first come, first served"),
    ("static", HandsOverWhoIsNotDone, "requests_and_slots_are_conserved", "has not just finished"),
    ("static", DecodesTheDead, "nobody_that_decodes_is_left_out", "a decoding request is left out"),
    ("static", IgnoresPadding, "the_limits_hold", "max_num_batched_tokens is 100"),
]
"""(setting, broken scheduler, check, message): what only a batch in a rectangle or a swap can break."""


@pytest.mark.parametrize(("settings", "kind", "check", "message"), PLANTED_IN_OTHERS)
def test_a_broken_promise_of_other_schedulers_is_noticed_and_named(settings, kind, check, message):
    settings = SETTINGS[settings] | {"kind": kind}
    with pytest.raises(CheckError, match=message):
        checks_for(settings)[check](lambda allocator: made(allocator, **settings))


BROKEN_SETTINGS = SETTINGS["no gate"]
BROKEN_CHECKS = checks_for(BROKEN_SETTINGS)


def make_broken(kind):
    return lambda allocator: kind(allocator, **BROKEN_SETTINGS)


@pytest.mark.parametrize(("kind", "check", "message"), PLANTED)
def test_a_broken_promise_is_noticed_and_named(kind, check, message):
    with pytest.raises(CheckError, match=message):
        BROKEN_CHECKS[check](make_broken(kind))


def test_every_check_has_a_planted_bug_that_it_finds():
    assert {check for _, check, _ in PLANTED} == set(CHECKS)


def test_check_scheduler_lists_the_broken_promises_and_skips_what_a_policy_does_not_promise():
    limits = {key: BROKEN_SETTINGS[key] for key in ("max_num_seqs", "max_num_batched_tokens")}
    with pytest.raises(CheckError, match=r"of 13 promises are broken:\n(.|\n)*  first_come_first_served: "):
        check_scheduler(make_broken(LastComeFirstServed), **limits)
    with pytest.raises(ValueError, match="skip names fairness; the checks are the_limits_hold"):
        check_scheduler(make_broken(LastComeFirstServed), **limits, skip=["fairness"])


def test_a_last_come_first_served_policy_keeps_every_other_promise():
    limits = {key: BROKEN_SETTINGS[key] for key in ("max_num_seqs", "max_num_batched_tokens")}
    check_scheduler(make_broken(LastComeFirstServed), **limits, skip=["first_come_first_served"])


def test_a_sequence_cannot_even_hold_its_true_output_length():
    seen = []

    class Curious(ContinuousScheduler):
        def submit(self, sequence):
            seen.append(sequence)
            super().submit(sequence)

    CHECKS["the_limits_hold"](lambda allocator: Curious(allocator, **SETTINGS["roomy"]))
    assert seen
    assert not [name for name in type(seen[0]).__slots__ if "output" in name]
    with pytest.raises(AttributeError):
        seen[0].output_tokens = 1

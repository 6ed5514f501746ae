"""The order of things: admission order, first come first served, who is preempted, what is told of the future."""

from itertools import zip_longest
from random import Random
from typing import Any

from kvsim.request import Sequence
from kvsim.step import StepPlan
from kvsim.testing.promises import promise, same
from kvsim.testing.schedulers.drive import (
    Call,
    Drive,
    Limits,
    MakeScheduler,
    drive,
    drives,
    pools,
    random_calls,
    summary,
)


class _Ordering(Drive):
    def planned(self, plan: StepPlan) -> None:
        ours, theirs = [s.id for s in self.running], list(self.scheduler.running)
        promise(ours == theirs, f"{self.name}: running is {theirs}; in admission order it is {ours}")
        numbers = [s.admission for s in self.running]
        promise(
            numbers == sorted(set(numbers)) and -1 not in numbers,
            f"{self.name}: the admissions of those that run are numbered {numbers}, not in order",
        )


def running_requests_keep_admission_order(make: MakeScheduler, limits: Limits) -> None:
    """`running` lists requests as they were admitted, and `admission` numbers them so."""
    for _ in drive(_Ordering, make, limits):
        pass


class _Queueing(Drive):
    def planned(self, plan: StepPlan) -> None:
        queue = [*(v.sequence for v in reversed(plan.preempted)), *self.queue_before]
        admitted = [*plan.resumed, *plan.admitted]
        gone = [s for s in queue if s in admitted or s in plan.aborted]
        promise(
            gone == queue[: len(gone)] and [s for s in gone if s in admitted] == admitted,
            f"{self.name}: not first come, first served: {[s.id for s in admitted]} are admitted from the queue "
            f"{[s.id for s in queue]} (a preempted request goes to its front)",
        )
        head, ours = self.scheduler.head, self.queue[0] if self.queue else None
        promise(
            head is ours,
            f"{self.name}: head is request {head and head.id}, the first of the queue is {ours and ours.id} "
            "(a preempted request goes to the front)",
        )


def first_come_first_served(make: MakeScheduler, limits: Limits) -> None:
    """Nobody overtakes; a preempted request goes to the front of the queue."""
    for _ in drive(_Queueing, make, limits):
        pass


class _Preempting(Drive):
    def planned(self, plan: StepPlan) -> None:
        promise(
            not (plan.preempted and (plan.admitted or plan.resumed)),
            f"{self.name}: {len(plan.admitted) + len(plan.resumed)} requests are admitted in a step that preempts",
        )


def nothing_is_admitted_in_a_step_that_preempts(make: MakeScheduler, limits: Limits) -> None:
    """Memory that a preemption freed is for those that run."""
    for _ in drive(_Preempting, make, limits):
        pass


class _Latest(Drive):
    def planned(self, plan: StepPlan) -> None:
        victims = [v.sequence for v in plan.preempted]
        runners = [s for s in self.running_before if s.id not in self.held and (s not in plan.aborted or s in victims)]
        last = runners[len(runners) - len(victims) :][::-1]
        promise(
            victims == last,
            f"{self.name}: {[v.id for v in victims]} are preempted, the last admitted are {[s.id for s in last]}",
        )


def the_last_admitted_is_preempted(make: MakeScheduler, limits: Limits) -> None:
    """Preemption goes from the end of the running requests."""
    for _ in drive(_Latest, make, limits):
        pass


class _Stable(Drive):
    """Asks before each plan how long nothing will change, and holds the plans to it, as a leap would."""

    pure_until = 0
    promised = 0
    head: Sequence | None = None
    cause = ""

    def arrived(self, sequence: Sequence) -> None:
        if not self.scheduler.stable_steps(1):
            self.pure_until = self.now

    def cancelled(self, sequence: Sequence) -> None:
        self.pure_until = self.now

    def before_plan(self) -> None:
        self.head = self.scheduler.head
        limit = self.steps_to_a_finish()
        steps = self.scheduler.stable_steps(max(limit, 1))
        promise(0 <= steps <= max(limit, 1), f"{self.name}: stable_steps({max(limit, 1)}) is {steps}, above its limit")
        again = self.scheduler.stable_steps(max(limit, 1))
        promise(steps == again, f"{self.name}: stable_steps is not pure: {steps}, then {again}")
        if not steps:
            return
        idle = len(self.working()) - len(self.decoding())
        promise(
            bool(self.running) and not idle,
            f"{self.name}: stable_steps is not honest: {steps} steps of decoding are promised while {idle} of "
            f"{len(self.running)} running requests do not decode",
        )
        self.promised = steps
        self.pure_until = max(self.pure_until, self.now + min(limit, self.allocator.leap(steps).steps))

    def planned(self, plan: StepPlan) -> None:
        if self.now < self.pure_until:
            waits = [(b.sequence.id, b.short.cause, b.outcome) for b in plan.blocked]
            retries = all(b.sequence is self.head and b.outcome == "wait" for b in plan.blocked)
            retries = retries and all(b.short.cause == self.cause for b in plan.blocked)
            working = len(self.working())
            same_set = self.running == self.running_before and plan.decodes == working
            promise(
                not plan.chunks and same_set and not plan.aborted and retries,
                f"{self.name}: stable_steps is not honest: {self.promised} steps of the same decodes were promised, "
                f"but a plan has {len(plan.chunks)} chunks, {len(plan.admitted)} admissions, "
                f"{len(plan.preempted)} preemptions, {plan.decodes} decodes of {working} and blocks {waits} "
                f"(before: {self.cause or 'nothing'})",
            )
        self.cause = next((b.short.cause for b in plan.blocked if b.outcome == "wait"), "")


def stable_steps_are_honest(make: MakeScheduler, limits: Limits) -> None:
    """For as many steps as promised, and while the pool serves them, plan only decodes what decodes now."""
    for _ in drive(_Stable, make, limits):
        pass


class _Logging(Drive):
    """Keeps the last plan; with `reads` it reads everything that can be read, all the time."""

    log: dict[str, Any]
    reads = False

    def before_plan(self) -> None:
        self.log = {}
        self._read()

    def planned(self, plan: StepPlan) -> None:
        self.log = summary(plan)
        self._read()

    def _read(self) -> None:
        if self.reads:
            scheduler = self.scheduler
            _ = scheduler.head, scheduler.live(), scheduler.running_count, scheduler.waiting_count
            list(scheduler.running)
            scheduler.stable_steps(9)
            scheduler.silent_steps(9)


class _LoggingReader(_Logging):
    reads = True


def the_same_calls_give_the_same_plans(make: MakeScheduler, limits: Limits) -> None:
    """No chance, no clock, no shared state; and reading changes nothing."""
    for one, other in zip(drives(_Logging, make, limits), drives(_LoggingReader, make, limits), strict=True):
        for _ in zip_longest(one.run(), other.run()):
            same(_log(other), _log(one), f"{one.name}: the same calls gave another plan")


def _log(driver: Drive) -> dict[str, Any]:
    return driver.log if isinstance(driver, _Logging) and hasattr(driver, "log") else {}


def the_truth_stays_hidden(make: MakeScheduler, limits: Limits) -> None:
    """Until something ends, plans do not depend on how long the outputs will be."""
    for seed, fresh in enumerate(pools(limits.longest)):
        random = Random(seed)
        short = [
            Call(c.step, 1 + c.prompt // 3, 1 + limits.longest // 4 + random.randint(0, 3))
            for c in random_calls(random, limits)
        ]
        long = [c._replace(output=c.output + random.randint(1, limits.longest // 4)) for c in short]
        one, other = (_Logging(make(fresh()), calls, limits) for calls in (short, long))
        for _ in zip_longest(one.run(), other.run()):
            same(_log(other), _log(one), f"{one.name}: longer outputs, which nobody can know of, changed a plan")
            if one.ended or other.ended or one.held or other.held:
                break

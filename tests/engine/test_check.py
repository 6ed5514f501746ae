"""`--check` finds planted bugs: each breaks one thing that must be conserved, and the message names it."""

import re

import pytest

from kvsim.engine.run import simulate
from kvsim.errors import CheckError, RunError
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.request import Request
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.timing.interface import Line, LinearTiming

LIMIT = 64

REQUESTS = [Request(number, 300 * number, 5 + number, 3 + number) for number in range(6)]
"""Six that overlap; each lives for a few steps of about 1,000 ps."""


def serve(allocator, *, scheduler=ContinuousScheduler, timing=None, check=True, stepwise=False):
    return simulate(
        REQUESTS,
        scheduler(allocator, max_num_seqs=4, max_num_batched_tokens=16),
        timing or LinearTiming(step_ps=1000, per_context_ps=1),
        max_model_len=LIMIT,
        check=check,
        stepwise=stepwise,
    )


def paged(kind=PagedAllocator, blocks=64):
    return kind(4 * blocks, block_size=4)


def caught(says, make, **kwargs):
    """The run breaks with a CheckError that says so, leaping or not."""
    for stepwise in (False, True):
        with pytest.raises(CheckError, match=re.escape(says)):
            serve(make(), stepwise=stepwise, **kwargs)


@pytest.mark.parametrize("stepwise", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: paged(),
        lambda: paged(blocks=5),
        lambda: ContiguousAllocator(256, chunk=4),
        lambda: ContiguousAllocator(24, chunk=4),
        lambda: ReserveAllocator(4 * LIMIT, max_model_len=LIMIT),
    ],
    ids=["paged", "paged, tight", "contiguous", "contiguous, tight", "reserve"],
)
def test_a_sound_run_passes(make, stepwise):
    log = serve(make(), stepwise=stepwise)
    assert log.recording.requests.arrived == len(log.recording.requests.ended) == 6


# A leak.


class LosesABlock(PagedAllocator):
    def release(self, sequence):
        super().release(sequence)
        self.free_blocks -= 1


class KeepsABlockReferenced(PagedAllocator):
    def release(self, sequence):
        super().release(sequence)
        self.free_blocks -= 1
        self.references += 1


class ForgetsARegion(ContiguousAllocator):
    def release(self, sequence):
        self._space.give = lambda start, length: None
        super().release(sequence)
        del self._space.give


class KeepsTheRegionsOfTheDead(ContiguousAllocator):
    def release(self, sequence):
        if sequence.decoding:
            self.decodes.leave(sequence)
        else:
            self._prefill_written -= sequence.written


class ForgetsTheSourceOfACopy(ContiguousAllocator):
    def settle(self, chunks, **how):
        self._sources.clear()
        return super().settle(chunks, **how)


def test_a_leaked_block_is_caught():
    caught("do not add up to the pool's 64 (a wrong reference count, a leak", lambda: paged(LosesABlock))


def test_a_block_that_stays_referenced_after_its_request_is_caught():
    caught("(a leak, or a wrong reference count)", lambda: paged(KeepsABlockReferenced))


def test_leaked_slots_are_caught():
    caught("belong to nobody (a leak)", lambda: ForgetsARegion(256, chunk=4))


def test_the_region_of_a_request_that_is_gone_is_caught():
    caught("are held by no live request (a leak)", lambda: KeepsTheRegionsOfTheDead(256, chunk=4))


def test_the_forgotten_source_of_a_copy_is_caught():
    caught("belong to nobody (a leak)", lambda: ForgetsTheSourceOfACopy(256, chunk=1))


def test_a_run_that_is_not_checked_does_not_see_a_leak():
    serve(paged(LosesABlock), check=False)


# A double free.


class FreesABlockTwice(PagedAllocator):
    def release(self, sequence):
        super().release(sequence)
        self.free_blocks += 1


class GivesARegionBackTwice(ContiguousAllocator):
    def release(self, sequence):
        region = self._regions[sequence.id]
        super().release(sequence)
        self._space.give(*region)


class ReleasesTwice(ContinuousScheduler):
    def leave(self, sequence):
        super().leave(sequence)
        self.allocator.release(sequence)


def test_a_block_that_is_freed_twice_is_caught():
    caught("leak or a double free)", lambda: paged(FreesABlockTwice))


@pytest.mark.parametrize("check", [False, True])
def test_a_region_that_is_given_back_twice_is_caught_with_or_without_check(check):
    caught("are free (a double free)", lambda: GivesARegionBackTwice(256, chunk=4), check=check)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("make", [paged, lambda: ContiguousAllocator(256, chunk=4)])
def test_a_request_that_is_released_twice_is_caught_with_or_without_check(make, check):
    caught("request 0 gives back", make, scheduler=ReleasesTwice, check=check)
    caught("it does not own (a double free)", make, scheduler=ReleasesTwice, check=check)


# A lost request.


class LosesOneOnArrival(ContinuousScheduler):
    def submit(self, sequence):
        if sequence.id != 3:
            super().submit(sequence)


class LosesThePreempted(ContinuousScheduler):
    def _preempt(self, victim, plan):
        super()._preempt(victim, plan)
        self._queue.popleft()
        self.waiting_count -= 1


class KeepsTheFinished(ContinuousScheduler):
    def leave(self, sequence):
        self.allocator.release(sequence)


class CountsOneTooManyWaiting(ContinuousScheduler):
    def submit(self, sequence):
        super().submit(sequence)
        self.waiting_count += sequence.id == 3


def test_a_request_lost_on_arrival_is_caught_and_named():
    caught(
        "requests [3] are known to the engine or to the scheduler, but not to both (lost)",
        paged,
        scheduler=LosesOneOnArrival,
    )


def test_a_request_lost_in_preemption_is_caught():
    caught("but not to both (lost)", lambda: paged(blocks=5), scheduler=LosesThePreempted)


def test_a_request_that_is_served_on_after_its_end_is_caught():
    caught("requests [0] are known to the engine or to the scheduler", paged, scheduler=KeepsTheFinished)


def test_a_wrong_count_of_the_waiting_is_caught():
    caught("running requests are counted", paged, scheduler=CountsOneTooManyWaiting)


def test_a_request_that_nobody_will_ever_wake_ends_the_run_with_a_message_even_without_check():
    with pytest.raises(RunError, match="1 requests are left although nothing more can happen"):
        serve(paged(), scheduler=LosesOneOnArrival, check=False)


# A wrong reference count, and other wrong counts.


class CountsAReferenceTooMany(PagedAllocator):
    def begin_decode(self, sequence):
        super().begin_decode(sequence)
        self.references += 1


class CountsAReferenceTooFew(PagedAllocator):
    def begin_decode(self, sequence):
        super().begin_decode(sequence)
        self.references -= 1


class SwapsAFreeBlockForAReference(PagedAllocator):
    """The sum stays right; only the block tables of the live requests tell."""

    def begin_decode(self, sequence):
        super().begin_decode(sequence)
        self.references += 1
        self.free_blocks -= 1


class CountsAWrittenTokenTwice(PagedAllocator):
    def settle(self, chunks, **how):
        self._prefill_written += 1
        return super().settle(chunks, **how)


class ForgetsWhoNeedsABlockWhen(PagedAllocator):
    def begin_decode(self, sequence):
        super().begin_decode(sequence)
        self.phases.remove(-sequence.origin % self.block_size)


class GivesTheSameSlotsTwice(ContiguousAllocator):
    def acquire(self, asks, *, decodes=False):
        before = self._space.snapshot()
        got = super().acquire(asks, decodes=decodes)
        if any(ask.sequence.id == 1 and ask.admit for ask in asks):
            self._space.restore(before)
        return got


@pytest.mark.parametrize("bug", [CountsAReferenceTooMany, CountsAReferenceTooFew, SwapsAFreeBlockForAReference])
def test_a_wrong_reference_count_is_caught(bug):
    caught("wrong reference count", lambda: paged(bug))


def test_a_token_that_is_counted_twice_is_caught():
    caught(
        "6 slots are counted as used and 0 as dead, live requests have written 5 tokens",
        lambda: paged(CountsAWrittenTokenTwice),
    )


def test_a_decoding_request_that_would_never_get_its_next_block_is_caught():
    caught("block phases for", lambda: paged(ForgetsWhoNeedsABlockWhen))


def test_slots_with_two_owners_are_caught():
    caught("have two owners", lambda: GivesTheSameSlotsTwice(256, chunk=4))


# A clock that steps back.


class Wrong(LinearTiming):
    """Right but for the numbers given: what prompts take, and (base, slope) of decode steps."""

    def __init__(self, *, prompts=None, decodes=None):
        super().__init__(step_ps=1000)
        self.prompts, self.decodes = prompts, decodes

    def decode(self, decodes, context=0):
        return Line(*self.decodes) if self.decodes else super().decode(decodes)

    def step_ps(self, plan):
        if plan.chunks and self.prompts is not None:
            return self.prompts
        if self.decodes is not None and not plan.chunks:
            return self.decodes[0] + self.decodes[1] * plan.context
        return super().step_ps(plan)


def serve_one(timing, output_tokens, **options):
    scheduler = ContinuousScheduler(paged(), max_num_seqs=1, max_num_batched_tokens=16)
    return simulate([Request(0, 0, 5, output_tokens)], scheduler, timing, max_model_len=LIMIT, **options)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("stepwise", [False, True])
@pytest.mark.parametrize("lasts", [0, -1, -5000])
def test_a_step_that_takes_no_time_or_less_is_caught_with_or_without_check(lasts, stepwise, check):
    """A prompt's step, from the start on; and the one decode step behind it, from 1000 ps on."""
    for timing, at in ((Wrong(prompts=lasts), 0), (Wrong(decodes=(lasts, 0)), 1000)):
        with pytest.raises(CheckError, match=f"from {at} ps to {at + lasts} ps: the clock must go forward"):
            serve_one(timing, 2, check=check, stepwise=stepwise)


@pytest.mark.parametrize(
    ("outputs", "stepwise"),
    [(4, False), (4, True), (3, True), (3, False)],
)
def test_a_step_time_that_falls_below_zero_on_the_way_is_caught(outputs, stepwise):
    """After 5 prompt tokens, decode steps of 20 - 3 x context: 2, -1 and -4 ps for contexts of 6, 7 and 8."""
    with pytest.raises(CheckError, match="the clock must go forward"):
        serve_one(Wrong(decodes=(20, -3)), outputs, stepwise=stepwise)


def test_a_clock_that_steps_back_is_caught(monkeypatch):
    """Whatever turns it back: here SimPy's own time, at the end of the third step."""
    ended = []

    class TurnsBack(ContinuousScheduler):
        def complete(self, plan):
            ended.append(plan)
            return super().complete(plan)

    back = property(lambda clock: clock._now if len(ended) < 3 else 500)
    monkeypatch.setattr("kvsim.engine.clock.Clock.now_ps", back)
    with pytest.raises(CheckError, match="the clock steps back from 2000 ps to 500 ps"):
        serve(paged(), scheduler=TurnsBack, timing=LinearTiming(step_ps=1000), stepwise=True)

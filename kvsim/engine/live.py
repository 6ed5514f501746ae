"""The live requests of a replica: who is in it from arrival to end, sample by sample, and how each of them ends."""

from collections.abc import Callable, Collection, Iterable

from kvsim.content import own_stream
from kvsim.engine.ahead import Foresight
from kvsim.engine.clock import Clock
from kvsim.engine.recording import Recording
from kvsim.engine.steps import ProgressWatch
from kvsim.metrics.requests import Ended, Journey
from kvsim.request import Request, Sequence
from kvsim.scheduling.interface import Scheduler
from kvsim.step import Short

OnEnd = Callable[[Ended], None]
"""Called with the record of a request that has just ended."""

Over = Callable[[Request], Iterable[int]]
"""Called with a request that has ended; gives the ids of those whose own tokens no later one holds."""


class LiveRequests:
    """Who is in a replica, and what becomes of them (the `Ends` of its plans).

    `on_end` and `over` are as for `Replica`. It knows no flight: the replica says what came of one.
    """

    def __init__(
        self,
        clock: Clock,
        scheduler: Scheduler,
        recording: Recording,
        foresight: Foresight,
        progress: ProgressWatch,
        *,
        on_end: OnEnd | None,
        over: Over | None,
    ) -> None:
        self.by_sequence: dict[int, Journey] = {}
        self.leaving: list[Journey] = []
        """Requests whose client has gone; what runs of them by then leaves at the end of the step."""
        self.end_ps = 0
        """When the last thing happened to any of them."""
        self._clock = clock
        self._scheduler = scheduler
        self._allocator = scheduler.allocator
        self._recording = recording
        self._foresight = foresight
        self._progress = progress
        self._on_end = on_end
        self._over = over
        self._unforked: dict[int, Journey] = {}
        """Samples whose prompt is still being computed, by the sequence that they will be."""

    # They come.

    def refuse(self, journey: Journey, refusal: Short) -> None:
        """A request is rejected on arrival."""
        now = self.end_ps = self._clock.now_ps
        self._ended(journey, self._recording.rejected(now, journey, refusal))

    def enter(self, journey: Journey) -> None:
        """A request joins the queue: as one sequence where its samples fork off it later, else each by itself."""
        now = self.end_ps = self._clock.now_ps
        self._recording.arrived(now, journey)
        alone = journey.samples
        if len(alone) > 1:
            _, *others = alone
            journey.sequence.samples = tuple(other.sequence for other in others)
            journey.sequence.seats = len(alone)
            if self._scheduler.forks(journey.sequence):
                self._unforked.update((other.sequence.id, other) for other in others)
                alone = [journey]
            else:
                journey.sequence.samples, journey.sequence.seats = (), 1
        for sample in alone:
            self.by_sequence[sample.sequence.id] = sample
            self._scheduler.submit(sample.sequence)

    # Their tokens.

    def sampled(self, sequences: list[Sequence]) -> list[Sequence]:
        """These have emitted a token at the end of a prompt; returns those for which it was the last."""
        now, due = self._clock.now_ps, []
        for sequence in sequences:
            if sequence.id not in self.by_sequence:
                self.by_sequence[sequence.id] = self._unforked.pop(sequence.id)
            journey = self.by_sequence[sequence.id]
            self._recording.sampled(now, journey)
            if not self._foresight.expect(journey):
                due.append(sequence)
            elif journey.request.replacements and journey is journey.samples[0]:
                self._foresight.beams.expect(self._allocator.decodes.clock, journey)
        return due

    def came_late(self, sequences: Iterable[Sequence]) -> list[Sequence]:
        """Tokens of these were in flight when they were preempted; returns those for which it was the last."""
        now, due = self._clock.now_ps, []
        for sequence in sequences:
            journey = self.by_sequence[sequence.id]
            self._recording.came_late(now, journey)
            if sequence.tokens > journey.written_in_all:
                due.append(sequence)
        return due

    def replace_due(self) -> None:
        """Beam search drops candidates, and others go on in their place as well."""
        live = self.by_sequence
        for dropped, kept in self._foresight.beams.due(self._allocator.decodes.clock):
            old, new = dropped.sequence, kept.sequence
            side_by_side = old.decoding and new.decoding and old.origin == new.origin
            if side_by_side and live.get(old.id) is dropped and live.get(new.id) is kept:
                common = self._scheduler.replace(old, new)
                self._recording.replaced(old, new, common)
                self._foresight.replaced(dropped, kept)

    # They end.

    def finish_due(self, due: list[Sequence]) -> None:
        """Everyone that has emitted its last token is done, in admission order."""
        due += self._foresight.due()
        if len(due) > 1:
            due.sort(key=lambda sequence: sequence.admission)
        if due:
            for sequence in due:
                self._recording.gaps.left(sequence)
                self._scheduler.finish(sequence)
            self.hand_over()

    def hand_over(self) -> None:
        """Those whose results go out now leave."""
        for sequence in self._scheduler.done():
            self._end(self.by_sequence[sequence.id], "finished")

    def fail(self, journey: Journey) -> None:
        """See `Ends`; the scheduler has let it go."""
        self._end(journey, "aborted", left=True)

    def cancel(self, journey: Journey, late: Collection[Sequence]) -> bool:
        """The client of a request gives up now; False if all of it has ended. What runs, or comes `late`, goes on."""
        live = [sample for sample in journey.samples if self.by_sequence.get(sample.sequence.id) is sample]
        if not live:
            return False
        self.end_ps = self._clock.now_ps
        self.leaving.append(journey)
        for sample in live:
            if sample.sequence.id not in self._scheduler.running and sample.sequence not in late:
                self._end(sample, "cancelled")
        return True

    def leave(self) -> None:
        """The step is over, and those that are leaving go."""
        for journey in self.leaving:
            for sample in journey.samples:
                if sample.sequence.id in self.by_sequence:
                    self._end(sample, "cancelled")
        self.leaving.clear()
        self.hand_over()

    def stop(self) -> None:
        """The horizon: who is here stays unfinished."""
        for journey in list(self.by_sequence.values()):
            self._end(journey, "unfinished")

    def _end(self, journey: Journey, end: str, *, left: bool = False) -> None:
        """A request, or one of its samples, ends now; with `left` the scheduler has already let it go."""
        sequence, now = journey.sequence, self._clock.now_ps
        if sequence.decoding:
            generated = self._allocator.decodes.written_of(sequence) + 1 - sequence.prompt_tokens
        else:
            generated = sequence.tokens - sequence.prompt_tokens
        if not left:
            self._scheduler.leave(sequence)
        del self.by_sequence[sequence.id]
        self.end_ps = now
        self._recording.left(journey)
        for child in sequence.samples:
            # They end with the prompt that they were to go on from.
            self._recording.ended(now, self._unforked.pop(child.id), end, 0)
        record = self._recording.ended(now, journey, end, generated)
        if record is not None:
            self._ended(journey, record)

    def _ended(self, journey: Journey, record: Ended) -> None:
        self._progress.ended()
        if self._on_end is not None:
            self._on_end(record)
        if self._over is not None:
            self._forget(journey, self._over(journey.request))

    def _forget(self, journey: Journey, over: Iterable[int]) -> None:
        """Nobody comes any more with the own tokens of these requests, nor with those of further samples of this."""
        further = (sample.sequence.id for sample in journey.samples[1:])
        self._allocator.forget(own_stream(number) for number in (*over, *further))


def first_need(scheduler: Scheduler, journey: Journey) -> int:
    """Slots that a request asks for when it is first admitted; what it declares is noted in its sequences."""
    allocator, need = scheduler.allocator, 0
    for sample in journey.samples:
        sequence = sample.sequence
        declared = allocator.declare(sequence.prompt_tokens, sample.allowed)
        sequence.declared = max(declared, scheduler.declare(sequence))
        need = max(need, allocator.capacity(sequence.reach))
    return need

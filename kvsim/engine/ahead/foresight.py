"""When who ends, when a beam is replaced, and which slots will never be written."""

from kvsim.engine.ahead.beams import Beams
from kvsim.engine.ahead.finishes import Finishes
from kvsim.memory.interface import Allocator
from kvsim.metrics.memory.owners import NeverWritten
from kvsim.metrics.requests import Journey
from kvsim.request import Sequence


class Foresight:
    """Foresees on the decode clock of `allocator`, and tells `never_written` who owns slots beyond its end.

    Whoever ends where no limit says so is scheduled for `beyond` tokens more: they are in flight when its end is seen.
    """

    def __init__(
        self, allocator: Allocator, never_written: NeverWritten, max_model_len: int, *, beyond: int = 0
    ) -> None:
        self._allocator = allocator
        self._max_model_len = max_model_len
        self._beyond = beyond
        self._never_written = never_written
        self._finishes = Finishes()
        self.beams = Beams()

    def next(self) -> int | None:
        """The clock at which decoding is not the same any more for everyone; None when nobody decodes."""
        finish = self._finishes.next()
        if finish is None or not self.beams.to_come:
            return finish
        return min(finish, self.beams.to_come[0][0])

    def due(self) -> list[Sequence]:
        """Everyone who has emitted its last token now, in admission order; they are not expected any more."""
        return self._finishes.due(self._allocator.decodes.clock)

    def holds(self, journey: Journey) -> None:
        """What a sequence owns is known; some of it may lie beyond its end."""
        sequence = journey.sequence
        self._never_written.owns(sequence, self._allocator.owned(sequence) - journey.furthest)

    def expect(self, journey: Journey) -> bool:
        """Foresee the end of a request that has begun to decode; False if it has nothing to emit any more."""
        sequence, allocator, end = journey.sequence, self._allocator, journey.written_in_all
        to_come = end - allocator.decodes.written_of(sequence)
        if not to_come:
            return False
        self._finishes.expect(allocator.decodes.clock + to_come, sequence)
        owned = allocator.owned(sequence)
        if owned < end:
            # It will own slots that it never writes from the step on in which it gets its last ones.
            self._will_own(journey, end)
        elif sequence.request is not None:
            self._owns_from_now_on(journey)
        if (
            self._beyond
            and not self._sure(journey)
            and allocator.capacity(end + self._beyond) > max(owned, allocator.capacity(end))
        ):
            self._will_own(journey, end + self._beyond)
        return True

    def _will_own(self, journey: Journey, tokens: int) -> None:
        """It comes to own slots for so many tokens, some of which it never writes."""
        allocator, sequence = self._allocator, journey.sequence
        last = allocator.last_growth(tokens) - sequence.origin
        self._never_written.will_own(sequence, last, allocator.capacity(tokens) - journey.written_in_all)

    def _sure(self, journey: Journey) -> bool:
        """Its end can be seen coming by its limits."""
        request = journey.request
        limits = request.max_tokens, self._max_model_len - request.prompt_tokens, journey.most_tokens
        return journey.limit != "eos" or journey.allowed in limits

    def replaced(self, dropped: Journey, kept: Journey) -> None:
        """`dropped` goes on from where `kept` is; they share their last block until they write."""
        for journey in (dropped, kept):
            if self._allocator.owned(journey.sequence) >= journey.written_in_all:
                self._never_written.gives_back(journey.sequence)
                self._owns_from_now_on(journey)

    def _owns_from_now_on(self, journey: Journey) -> None:
        """Its last block may still be held by other samples; from the next step on it has its own."""
        sequence, allocator = journey.sequence, self._allocator
        slots = allocator.owned(sequence) - journey.written_in_all
        self._never_written.will_own(sequence, allocator.decodes.clock, slots)

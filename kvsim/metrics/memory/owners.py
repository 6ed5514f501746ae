"""Who owns slots that it will never write: what tells `internal` from `reserved`.

The engine knows where each request will end and says so here, as soon as the request has, or from which decode step on
it will have, its last slots. Policies never see any of it.
"""

from heapq import heappop, heappush

from kvsim.request import Sequence


class NeverWritten:
    """Slots of live requests that lie beyond their ends."""

    def __init__(self) -> None:
        self.slots = 0
        """All of them together, now."""
        self._owned: dict[int, int] = {}
        self._to_come: list[tuple[int, int, int, Sequence]] = []
        """Heap of (decode clock, admission, slots, sequence): from that step on it owns so many."""

    def owns(self, sequence: Sequence, slots: int) -> None:
        """From now on `sequence` owns this many slots that it will never write (0 or less: none)."""
        if slots > 0:
            self.slots += slots - self._owned.get(sequence.id, 0)
            self._owned[sequence.id] = slots

    def will_own(self, sequence: Sequence, clock: int, slots: int) -> None:
        """The same, from the decode step at `clock` on."""
        if slots > 0:
            heappush(self._to_come, (clock, sequence.admission, slots, sequence))

    def gives_back(self, sequence: Sequence) -> None:
        """`sequence` owns nothing any more."""
        self.slots -= self._owned.pop(sequence.id, 0)

    def come_due(self, first_clock: int, steps: int) -> list[tuple[int, int]]:
        """(step, slots) of everyone that gets its last slots within `steps` steps, now counted in `slots`."""
        due, heap = [], self._to_come
        while heap and heap[0][0] < first_clock + steps:
            clock, admission, slots, sequence = heappop(heap)
            if sequence.decoding and sequence.admission == admission:
                more = slots - self._owned.get(sequence.id, 0)
                self._owned[sequence.id] = slots
                self.slots += more
                due.append((clock - first_clock, more))
        return due

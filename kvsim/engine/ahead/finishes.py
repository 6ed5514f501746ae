"""Who has emitted its last token when: the truth about ends, on the decode clock."""

from heapq import heappop, heappush

from kvsim.request import Sequence


class Finishes:
    """The decode clock at which each decoding sequence finishes, if it is not preempted before."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Sequence]] = []
        """(clock, admission, sequence); entries of sequences that have left, or came back since, are skipped."""

    def expect(self, clock: int, sequence: Sequence) -> None:
        """`sequence`, which has just begun to decode, will have emitted its last token at `clock`."""
        heappush(self._heap, (clock, sequence.admission, sequence))

    def next(self) -> int | None:
        """The clock of the next finish; None when nobody decodes."""
        heap = self._heap
        while heap:
            clock, admission, sequence = heap[0]
            if sequence.decoding and sequence.admission == admission:
                return clock
            heappop(heap)
        return None

    def due(self, clock: int) -> list[Sequence]:
        """Everyone that finishes at `clock`, in admission order; they are not expected any more."""
        heap, due = self._heap, []
        while heap and heap[0][0] <= clock and self.next() == clock:
            due.append(heappop(heap)[2])
        return due

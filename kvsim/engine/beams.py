"""Beam search: at which decode step which candidate is dropped, and another goes on in its place as well."""

from heapq import heappop, heappush

from kvsim.metrics.requests import Journey


class Beams:
    """The replacements to come, on the decode clock.

    A replacement holds only while both candidates decode side by side: one that was preempted has fallen behind.
    """

    __slots__ = ("_heap", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Journey, Journey]] = []
        self._order = 0

    def expect(self, clock: int, first: Journey) -> None:
        """The samples of a request have forked and emitted one token each; `clock` is the decode clock now."""
        for emitted, dropped, kept in first.request.replacements:
            entry = (clock + emitted - 1, self._order, first.samples[dropped], first.samples[kept])
            heappush(self._heap, entry)
            self._order += 1

    def next(self) -> int | None:
        """The clock of the next replacement; None if none is to come."""
        return self._heap[0][0] if self._heap else None

    def due(self, clock: int) -> list[tuple[Journey, Journey]]:
        """(dropped, kept) of every replacement at `clock`, in order; they are not expected any more."""
        due = []
        while self._heap and self._heap[0][0] <= clock:
            _, _, dropped, kept = heappop(self._heap)
            due.append((dropped, kept))
        return due

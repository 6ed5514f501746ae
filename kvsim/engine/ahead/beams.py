"""Beam search: at which decode step which candidate is dropped, and another goes on in its place as well."""

from heapq import heappop, heappush

from kvsim.metrics.requests import Journey


class Beams:
    """The replacements to come, on the decode clock.

    A replacement holds only while both candidates decode side by side: one that was preempted has fallen behind.
    """

    __slots__ = ("_order", "to_come")

    def __init__(self) -> None:
        self.to_come: list[tuple[int, int, Journey, Journey]] = []
        """Heap of (clock, order, dropped, kept)."""
        self._order = 0

    def expect(self, clock: int, first: Journey) -> None:
        """The samples of a request have forked and emitted one token each; `clock` is the decode clock now."""
        for emitted, dropped, kept in first.request.replacements:
            entry = (clock + emitted - 1, self._order, first.samples[dropped], first.samples[kept])
            heappush(self.to_come, entry)
            self._order += 1

    def due(self, clock: int) -> list[tuple[Journey, Journey]]:
        """(dropped, kept) of every replacement at `clock`, in order; they are not expected any more."""
        due = []
        while self.to_come and self.to_come[0][0] <= clock:
            _, _, dropped, kept = heappop(self.to_come)
            due.append((dropped, kept))
        return due

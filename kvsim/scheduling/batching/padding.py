"""The batch of a padded kernel: a compact rectangle of rows, all as long as the longest.

Attention takes rows x longest, and the rows must lie side by side: before a step that decodes, the last rows are
copied into the places of those that have left, and whoever has joined is copied to the end.
"""

from heapq import heappop, heappush

from kvsim.request import Sequence
from kvsim.step import DecodeSet, Rows


class CompactRows:
    """The rows of the sequences in `decodes`."""

    def __init__(self, decodes: DecodeSet) -> None:
        self._decodes = decodes
        self._rows: list[Sequence | None] = []
        """None where somebody has left."""
        self._places: dict[int, int] = {}
        self._vacant: list[int] = []
        self._joining: list[Sequence] = []
        self._lengths: list[tuple[int, int, Sequence]] = []
        """Heap of (- origin, admission, sequence), the longest first; those that have left are skipped."""

    @property
    def scattered(self) -> bool:
        """Somebody has left or joined since the rows were gathered."""
        return bool(self._vacant or self._joining)

    def join(self, sequence: Sequence) -> None:
        """A sequence begins to decode."""
        self._joining.append(sequence)
        heappush(self._lengths, (-sequence.origin, sequence.admission, sequence))

    def leave(self, sequence: Sequence) -> None:
        """It has left the batch; one that has not decoded yet has no row."""
        place = self._places.pop(sequence.id, None)
        if place is not None:
            self._rows[place] = None
            self._vacant.append(place)

    def gather(self) -> int:
        """Make the rows compact again; the written slots copied for it. O(those that have left and joined)."""
        rows, written_of, copied = self._rows, self._decodes.written_of, 0
        for place in sorted(self._vacant):
            while rows and rows[-1] is None:
                rows.pop()
            if place < len(rows):
                last = rows.pop()
                assert last is not None
                rows[place] = last
                self._places[last.id] = place
                copied += written_of(last)
        self._vacant.clear()
        for sequence in self._joining:
            if sequence.decoding and sequence.id not in self._places:
                self._places[sequence.id] = len(rows)
                rows.append(sequence)
                copied += sequence.written
        self._joining.clear()
        return copied

    def rows(self, *, anew: bool) -> Rows:
        """As many as decode, each with the context of the longest."""
        lengths = self._lengths
        while lengths and not (lengths[0][2].decoding and lengths[0][2].admission == lengths[0][1]):
            heappop(lengths)
        longest = self._decodes.clock + 1 - lengths[0][0] if lengths else 0
        return Rows.even(self._decodes.count, longest, anew=anew)

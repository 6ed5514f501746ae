"""The batch of a padded kernel: a compact rectangle of rows, all as long as the longest.

Attention takes rows x longest, and the rows must lie side by side: whoever joins is copied to the end, and when one
leaves, the last row is copied into its place.
"""

from heapq import heappop, heappush

from kvsim.request import Sequence
from kvsim.step import DecodeSet, Rows


class CompactRows:
    """The rows of the sequences in `decodes`; `gathered` slots were copied since it was last set to 0."""

    def __init__(self, decodes: DecodeSet) -> None:
        self.gathered = 0
        self._decodes = decodes
        self._rows: list[Sequence] = []
        self._places: dict[int, int] = {}
        self._lengths: list[tuple[int, int, Sequence]] = []
        """Heap of (- origin, admission, sequence), the longest first; those that have left are skipped."""

    def join(self, sequence: Sequence) -> None:
        """A sequence begins to decode."""
        self._places[sequence.id] = len(self._rows)
        self._rows.append(sequence)
        self.gathered += sequence.written
        heappush(self._lengths, (-sequence.origin, sequence.admission, sequence))

    def leave(self, sequence: Sequence) -> None:
        """It has left the batch; one that never decoded has no row."""
        place = self._places.pop(sequence.id, None)
        if place is None:
            return
        last = self._rows.pop()
        if last is not sequence:
            self._rows[place] = last
            self._places[last.id] = place
            self.gathered += self._decodes.written_of(last)

    def rows(self) -> Rows:
        """As many as decode, each with the context of the longest."""
        lengths = self._lengths
        while lengths and not (lengths[0][2].decoding and lengths[0][2].admission == lengths[0][1]):
            heappop(lengths)
        count = self._decodes.count
        return Rows(count, count * (self._decodes.clock + 1 - lengths[0][0]) if lengths else 0)

"""How much was touched since: LRU stack distances in one pass, in tokens (Mattson et al., Evaluation techniques for
storage hierarchies, IBM Systems Journal 9(2), 1970).

Touches have moments, and those of one moment are simultaneous. Every content counts at the moment of its last touch,
so that what was touched after a moment is a sum over later ones. `memory.eviction.stack_distance` does the same for a
trace that is known from the start.
"""

from array import array


class Recency:
    """Tokens by the moment of their last touch, as a Fenwick tree that grows; moments are numbered from 0."""

    __slots__ = ("_sums", "moments", "tokens")

    def __init__(self) -> None:
        self.moments = 0
        self.tokens = 0
        """Touched at any time: all different contents together."""
        self._sums = array("q", [0])

    def open(self) -> int:
        """A new moment, the last one from now on; its number. Mutates; O(log moments)."""
        self.moments += 1
        place = self.moments
        self._sums.append(self.tokens - self._upto(place & (place - 1)))
        return place - 1

    def add(self, moment: int, tokens: int) -> None:
        """So many tokens were touched last at `moment`; fewer, if `tokens` is negative. Mutates; O(log moments)."""
        place, sums = moment + 1, self._sums
        self.tokens += tokens
        while place <= self.moments:
            sums[place] += tokens
            place += place & -place

    def between(self, earlier: int, later: int) -> int:
        """Tokens whose last touch lies after moment `earlier` and before moment `later`. Pure; O(log moments)."""
        return self._upto(later) - self._upto(earlier + 1) if later > earlier else 0

    def _upto(self, moments: int) -> int:
        """Tokens of the first so many moments."""
        found = 0
        while moments:
            found += self._sums[moments]
            moments &= moments - 1
        return found

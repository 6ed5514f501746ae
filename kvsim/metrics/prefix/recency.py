"""How much was touched since: LRU stack distances in one pass, in tokens (Mattson et al., Evaluation techniques for
storage hierarchies, IBM Systems Journal 9(2), 1970).

Touches have moments, and those of one moment are simultaneous. Every content counts at the moment of its last touch,
so that what was touched after a moment is a sum over later ones. `memory.eviction.stack_distance` does the same for a
trace that is known from the start.
"""

from array import array
from collections.abc import Sequence


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

    def merged(self, kept: Sequence[int]) -> "tuple[Recency, dict[int, int]]":
        """The same for whoever asks for `kept` (rising) and for moments to come alone; and the new number of each.

        What was touched between two of them is of one moment there. Pure; O(kept log moments).
        """
        weights: list[int] = []
        numbers, told = {}, 0
        for moment in kept:
            below, upto = self._upto(moment), self._upto(moment + 1)
            if below != told:
                weights.append(below - told)
            numbers[moment] = len(weights)
            weights.append(upto - below)
            told = upto
        if self.tokens != told:
            weights.append(self.tokens - told)
        merged = Recency()
        merged.moments, merged.tokens = len(weights), self.tokens
        merged._sums.extend(weights)
        for place in range(1, len(weights) + 1):
            above = place + (place & -place)
            if above <= len(weights):
                merged._sums[above] += merged._sums[place]
        return merged, numbers

    def _upto(self, moments: int) -> int:
        """Tokens of the first so many moments."""
        found = 0
        while moments:
            found += self._sums[moments]
            moments &= moments - 1
        return found

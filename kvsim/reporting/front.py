"""Which of several choices no other beats, where two numbers count and less of each is better."""

import math
from collections.abc import Sequence


def front(pairs: Sequence[tuple[float | None, float | None]]) -> list[int]:
    """Places of the pairs that no other beats: none has less of one number and no more of the other; None is beaten."""
    numbered = ((one, other, place) for place, (one, other) in enumerate(pairs))
    there = sorted((one, other, place) for one, other, place in numbered if one is not None and other is not None)
    found, before = [], (math.inf, math.inf)
    for one, other, place in there:
        if other < before[1] or (one, other) == before:
            found.append(place)
            before = one, other
    return sorted(found)

"""Searches that ask as little as they can: for the largest rate that is borne, and for the fewest of something that do.

Each is a generator: it yields what it wants to know next and is sent the answers, so that whoever drives it can have
other searches' questions worked on beside them.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

TOLERANCE = 0.02
"""How far apart, as a share, the rates may be between which the answer lies."""

STRIDE = 1.5
"""Factor between rates that are tried while nothing is known on one side."""

FARTHEST = 1024.0
"""The search gives up so many times above or below where it began."""


@dataclass(frozen=True)
class Found:
    """The largest rate that was borne, and the smallest above it that was not, per second.

    `borne` is None where none was, down to `FARTHEST` times below the guess; `not_borne` where all were.
    `tried` says for every rate whether it was borne, in ascending order.
    """

    borne: float | None
    not_borne: float | None
    tried: dict[float, bool] = field(default_factory=dict)


def largest_rate(
    bears: Callable[[Sequence[float]], Sequence[bool]], guess: float, *, tolerance: float = TOLERANCE, at_once: int = 1
) -> Found:
    """Search for the largest rate of which `bears` says that it is borne, beginning near `guess`.

    See `searched_rate`; `bears` is asked about `at_once` rates together, which may be worked on side by side.
    """
    search = searched_rate(guess, tolerance=tolerance, at_once=at_once)
    try:
        rates = next(search)
        while True:
            rates = search.send(list(bears(rates)))
    except StopIteration as end:
        found: Found = end.value
        return found


def searched_rate(
    guess: float, *, tolerance: float = TOLERANCE, at_once: int = 1
) -> Generator[list[float], list[bool], Found]:
    """Search for the largest rate that is borne, beginning near `guess`: yields rates, is sent whether each is.

    `at_once` rates are asked about together; which rates are tried, and so the answer, depends on that number. Costs
    log(uncertainty of the guess / tolerance) / log(at_once + 1) questions. Where chance makes a rate seem borne above
    one that is not, the lower counts. ValueError where an argument is not above 0.
    """
    if guess <= 0 or tolerance <= 0 or at_once < 1:
        raise ValueError(f"guess {guess}, tolerance {tolerance}, at_once {at_once}: all must be above 0")
    tried: dict[float, bool] = {}

    def ask(rates: Sequence[float]) -> Generator[list[float], list[bool], tuple[float | None, float | None]]:
        new = [rate for rate in rates if rate not in tried]
        tried.update(zip(new, map(bool, (yield new)), strict=True))
        return _bracket(tried)

    low, high = yield from ask(_around(guess, at_once))
    while low is None and high is not None and high > guess / FARTHEST:
        low, high = yield from ask([high / STRIDE**number for number in range(1, at_once + 1)])
    while high is None and low is not None and low < guess * FARTHEST:
        low, high = yield from ask([low * STRIDE**number for number in range(1, at_once + 1)])
    while low is not None and high is not None and high > low * (1 + tolerance):
        step = (high / low) ** (1 / (at_once + 1))
        low, high = yield from ask([low * step**number for number in range(1, at_once + 1)])
    return Found(low, high, dict(sorted(tried.items())))


def fewest(counts: Sequence[int], guess: int) -> Generator[int, bool, int | None]:
    """Search ascending counts for the smallest that does: yields one, is sent whether it does. None: not even the last.

    More of them do at least as well, so that below one that does not none is asked about. Begins at the first from
    `guess` on, goes on in strides that double, then by halves.
    """
    low, high = -1, len(counts)
    place, stride = min(bisect_left(counts, guess), len(counts) - 1), 1
    while high - low > 1:
        if (yield counts[place]):
            high = place
        else:
            low = place
        if low < 0 or high == len(counts):
            place = max(high - stride, 0) if low < 0 else min(low + stride, len(counts) - 1)
            stride *= 2
        else:
            place = (low + high) // 2
    return counts[high] if high < len(counts) else None


def _around(guess: float, count: int) -> list[float]:
    """The guess, and as many others on its sides as are tried with it."""
    return sorted(guess * STRIDE ** (number - (count - 1) // 2) for number in range(count))


def _bracket(tried: dict[float, bool]) -> tuple[float | None, float | None]:
    """The smallest rate that is not borne, and the largest below it that is."""
    high = min((rate for rate, borne in tried.items() if not borne), default=math.inf)
    low = max((rate for rate, borne in tried.items() if borne and rate < high), default=None)
    return low, None if high == math.inf else high

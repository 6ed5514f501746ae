"""Going on until intervals are short enough: how many more replications, and what that does to the interval."""

import math
from collections.abc import Iterable, Sequence

from kvsim.study.statistics.intervals import Interval

LEAST = 10
"""Replications before anybody looks: intervals of fewer are short by luck too often."""

MOST = 1000
"""Replications after which it is given up."""

AT_MOST_TIMES = 2
"""A spread known from few replications is known badly, so that no step more than doubles them."""

BIAS = (
    "Replications went on until intervals were short enough. Stopping there favours samples that happen to spread "
    "little, so that these intervals cover the truth somewhat less often than they say; at least {least} replications "
    "were run to keep that small."
)
"""What to say of an interval that decided when to stop; tests/study/statistics/test_coverage.py measures it."""


def widest(intervals: Iterable[Interval]) -> float | None:
    """The widest of some intervals, half of it as a share of its estimate; None where none can be told."""
    shares = [interval.relative for interval in intervals]
    return max((share for share in shares if share is not None), default=None)


def more_replications(done: int, intervals: Sequence[Interval], target: float, *, most: int = MOST) -> int:
    """How many more than the `done` it takes until the widest interval is within `target` of its estimate; 0: enough.

    The half-width shrinks with the square root of their number. At least `LEAST` in all are asked for, and never more
    than `most` in all.
    """
    if done < LEAST:
        return min(LEAST, most) - done
    share = widest(intervals)
    if share is None or share <= target or done >= most:
        return 0
    wanted = math.ceil(done * (share / target) ** 2)
    return max(1, min(wanted, AT_MOST_TIMES * done, most) - done)

"""What one sequence holds, in the order of its tokens: a band of slots for each class."""

from collections.abc import Iterator

from kvsim.step import CLASSES

USED, RESERVED, INTERNAL, DEAD, MOVING, CACHED, EXTERNAL, FREE = range(len(CLASSES))
"""The classes by their numbers, those of `step.CLASSES`."""

Bands = tuple[tuple[int, int], ...]
"""(class, slot behind its last one, counted from the sequence's first) of each band; one may be empty."""


def bands_of(written: int, owned: int, end: int, *, holding: int = USED, rounding: int = 0, kept: int = 0) -> Bands:
    """The bands of a sequence that has written `written` of its `owned` slots and will have written `end` of them.

    What is written is of class `holding`, but for the first `kept` slots, which are used. `rounding` slots lie behind.
    """
    reach = max(written, min(end, owned))
    return (
        (USED, kept),
        (holding, written),
        (RESERVED, reach),
        (INTERNAL, owned),
        (EXTERNAL, owned + rounding),
    )


def length(bands: Bands) -> int:
    """Slots of all of them."""
    return bands[-1][1]


def differences(old: Bands, new: Bands) -> Iterator[tuple[int, int, int]]:
    """(from, to, class) of each run of slots that was of another class, or not there, in `old`."""
    at, before = 0, iter(old)
    was, until = next(before, (None, length(new)))
    for kind, end in new:
        while at < end:
            while until <= at:
                was, until = next(before, (None, length(new)))
            stop = min(end, until)
            if kind != was:
                yield at, stop, kind
            at = stop

"""The changes of an address table as numbers, all of them or those between evenly spaced instants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvsim.step import CLASSES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

FREE = CLASSES.index("free")


@dataclass(frozen=True)
class Changes:
    """From `time_us` on the `length` slots from `start` on are of class number `kind` and belong to `owner`.

    Rows are in order of time, of two of one time the later one holds. Owner 0 is nobody, owner n the n-th pair of
    `owners`: the id of a request and the number of its sample.
    """

    time_us: "Whole"
    start: "Whole"
    length: "Whole"
    owner: "Whole"
    kind: "Whole"
    owners: Sequence[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.time_us)


def changes_of(table: Mapping[str, Sequence[Any]]) -> Changes:
    """The changes that an `addresses` table lists."""
    import numpy as np

    numbers: dict[tuple[int, int] | None, int] = {None: 0}
    owner = [
        numbers.setdefault(None if request is None else (request, sample), len(numbers))
        for request, sample in zip(table["request"], table["sample"], strict=True)
    ]
    kinds = {name: number for number, name in enumerate(CLASSES)}
    return Changes(
        np.rint(np.asarray(table["time_s"], dtype=np.float64) * 1e6).astype(np.int64),
        np.asarray(table["start"], dtype=np.int64),
        np.asarray(table["length"], dtype=np.int64),
        np.asarray(owner, dtype=np.int64),
        np.asarray([kinds[name] for name in table["class"]], dtype=np.int64),
        [pair for pair in numbers if pair is not None],
    )


def sampled(changes: Changes, pool_tokens: int, end_us: int, instants: int) -> Changes:
    """The changes from one instant to the next, of so many evenly spaced ones: exact at each of them, and what came
    and went in between is not there. O(changes + instants x pool)."""
    import numpy as np

    codes = changes.owner * len(CLASSES) + changes.kind
    pool = np.full(pool_tokens, FREE, dtype=np.int64)
    shown = pool.copy()
    found: list[tuple[Whole, ...]] = []
    at, until = 0, np.rint(np.arange(instants + 1) / instants * end_us).astype(np.int64)
    lasts = np.searchsorted(changes.time_us, until, side="right")
    for instant, last in zip(until, lasts, strict=True):
        if last == at:
            continue
        slots, own = _slots(changes.start[at:last], changes.length[at:last]), codes[at:last]
        pool[slots] = np.repeat(own, changes.length[at:last])  # of two in one slot the later one holds
        at = last
        places = np.flatnonzero(pool != shown)
        if not len(places):
            continue
        new = pool[places]
        heads = np.flatnonzero(np.r_[True, (np.diff(places) != 1) | (np.diff(new) != 0)])
        lengths = np.diff(np.r_[heads, len(places)])
        order = np.argsort(new[heads], kind="stable")  # each owner's together, as packing expects them
        found.append((np.full(len(heads), instant), places[heads][order], lengths[order], new[heads][order]))
        shown[places] = new
    time, start, length, code = (
        (np.concatenate(column) for column in zip(*found, strict=True)) if found else (np.empty(0, np.int64),) * 4
    )
    return Changes(time, start, length, code // len(CLASSES), code % len(CLASSES), changes.owners)


def _slots(start: "Whole", length: "Whole") -> "Whole":
    """The slots of some runs, one after the other."""
    import numpy as np

    before: Whole = np.cumsum(length) - length
    slots: Whole = np.repeat(start - before, length) + np.arange(int(length.sum()))
    return slots

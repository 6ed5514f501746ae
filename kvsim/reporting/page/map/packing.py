"""Changes as few bytes: each number as what it differs by from what was to be expected, small ones in one byte.

The script of the page (`assets/changes.js`) reads them in the same order: how many times and how many changes there
are, the differences of the times that occur (microseconds), how many changes each of them has, and of all changes the
owner as the difference to the change before, the class, the start as the difference to where the same owner's last
slots of this class ended, and the length. All are varints (seven bits a byte, lowest first, the eighth says that more
follow), differences with their sign in the lowest bit; all of it is deflated (zlib) and written in base64.
"""

import base64
import zlib
from typing import TYPE_CHECKING

from kvsim.reporting.page.map.changes import Changes
from kvsim.step import CLASSES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

LEVEL = 6
"""How hard deflate tries; more takes twice the time for a hundredth of the bytes."""


def packed(changes: Changes) -> str:
    """The changes as text."""
    import numpy as np

    times, counts = np.unique(changes.time_us, return_counts=True)
    columns = (
        np.array([len(times), len(changes)]),
        np.diff(times, prepend=0),
        counts,
        _signed(np.diff(changes.owner, prepend=0)),
        changes.kind,
        _signed(changes.start - _expected(changes)),
        changes.length,
    )
    return base64.b64encode(zlib.compress(b"".join(map(varints, columns)), LEVEL)).decode()


def varints(values: "Whole") -> bytes:
    """Whole numbers from 0 as varints."""
    import numpy as np

    left = values.astype(np.uint64)
    groups = []
    while True:
        groups.append((left & np.uint64(127)).astype(np.uint8))
        left = left >> np.uint64(7)
        if not left.any():
            break
    bytes_of = np.stack(groups, axis=1)
    used = np.cumsum(bytes_of[:, ::-1] != 0, axis=1)[:, ::-1] > 0
    used[:, 0] = True
    more = np.zeros_like(used)
    more[:, :-1] = used[:, 1:]
    return bytes((bytes_of | (more * 128).astype(np.uint8))[used])


def _signed(values: "Whole") -> "Whole":
    return (values << 1) ^ (values >> 63)


def _expected(changes: Changes) -> "Whole":
    """Where each change would start if it went on where the same owner's last slots of its class ended."""
    import numpy as np

    codes = changes.owner * len(CLASSES) + changes.kind
    order = np.argsort(codes, kind="stable")  # each owner's changes of a class together, in order of time
    ends, own = (changes.start + changes.length)[order], codes[order]
    expected = np.zeros_like(codes)
    expected[order[1:]] = np.where(own[1:] == own[:-1], ends[:-1], 0)
    return expected

"""What a step or a leap says of itself: who is in it, where the slots are, and the row that is kept of it."""

import struct
from typing import NamedTuple, Protocol

from kvsim.step import CLASSES, PoolUse

SERIES = (
    "start_ps",
    "duration_ps",
    "steps",
    "prefill_tokens",
    "decode_tokens",
    "padding_tokens",
    "context_tokens",
    "running",
    "waiting",
    "stay_ps",
    "largest_hole",
    "rounding",
    "shared",
    "duplicate",
    "host",
    *CLASSES,
)
"""Columns of the record of steps: a row per step or leap, levels as they are during its first step.

`stay_ps` is the integral of the requests in the system since the row before.
"""

ROW = struct.Struct(f"{len(SERIES)}q")
"""A row as the array keeps it; packing it first is three times as fast as extending the array by numbers."""


class Levels(Protocol):
    """What a leap says of the slots that are not written, and of those that are cached (`memory.interface.Leap`)."""

    bound: int

    def use_at(self, step: int) -> PoolUse:
        """Where the slots are during a step."""
        ...

    def unwritten_sum(self, steps: int, a: int, b: int) -> int:
        """Sum over steps j < `steps` of (a + b j) x slots owned and not written."""
        ...

    def cached_sum(self, steps: int, a: int, b: int) -> int:
        """The same of the slots that are cached; these only become fewer."""
        ...

    def unwritten_peak(self, first: int, last: int) -> int:
        """Most slots owned and not written in any of the steps first..last-1."""
        ...


class Beside(NamedTuple):
    """What is to be known of the pool beside the allocator's own count; it holds through a leap. Slots."""

    external: int
    """Lost to shape."""
    shared: int = 0
    """Saved by sharing: what they hold belongs to more than one sequence and is kept once."""
    duplicate: int = 0
    """Hold what another live sequence also holds: sharing would have saved them."""
    host: int = 0
    """Taken in host memory."""


NOTHING = Beside(0)


class Batch(NamedTuple):
    """Who is in a step."""

    prefill_tokens: int
    decode_tokens: int
    padding_tokens: int
    context_tokens: int
    running: int
    waiting: int
    tokens: int
    """Output tokens that one step emits."""
    requests: int
    """Requests of which at least one sequence runs: as many as run, unless some ask for several samples."""
    padding_context: int = 0
    """Tokens of `context_tokens` that are padding."""


NOBODY = Batch(0, 0, 0, 0, 0, 0, 0, 0)
"""The batch of idle time."""

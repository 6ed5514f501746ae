"""The address recorder: looks at what every sequence holds, and writes down what has changed."""

from collections.abc import Sequence as Seq

from kvsim.engine.addresses.blocks import BlockLayout
from kvsim.engine.addresses.layout import Layout
from kvsim.engine.addresses.regions import RegionLayout
from kvsim.engine.addresses.tree import TreeLayout, TreeRows
from kvsim.memory.interface import Allocator
from kvsim.memory.paged import BlockAllocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.metrics.memory import AddressLog
from kvsim.metrics.requests import Journey
from kvsim.request import Sequence


class AddressRecorder:
    """Which slots hold what for whom during each step, as changes in `log`.

    Region allocators know where their regions lie; to those that only count blocks a `BlockMap` gives numbers, and to
    the slots of a radix cache a `SlotBook`. A slot that several sequences share counts to the first that came to hold
    it, and to the next one when that one leaves.
    What the address space rounds up is `external` and counts to the sequence in front of it; holes are `free`, however
    small. Which slots are never written (`internal`) follows from where each request ends.
    """

    def __init__(self, allocator: Allocator) -> None:
        self.log = AddressLog()
        self._layout = _layout(allocator)

    def forked(self, parent: Sequence, child: Sequence) -> None:
        """`child` goes on from where `parent` is."""
        self._layout.forked(parent.id, child.id)

    def preempted(self, sequence: Sequence) -> None:
        """While a step was planned `sequence` has given everything back, because another could not grow."""
        self._layout.left(sequence.id, in_plan=True)

    def left(self, sequence: Sequence) -> None:
        """`sequence` has given everything back, if it had anything."""
        self._layout.left(sequence.id, in_plan=False)

    def note(self, now_ps: int, running: Seq[Journey], *, stalled: bool) -> None:
        """Write down what has changed; `running` in admission order. Call when a step is planned, or none can be.

        With `stalled` the decoding sequences stand still. O(running and slots that changed).
        """
        for paint in self._layout.changes(running, stalled=stalled):
            self.log.add(now_ps, *paint)


def _layout(allocator: Allocator) -> Layout:
    if isinstance(allocator, BlockAllocator | PrefixAllocator):
        return BlockLayout(allocator)
    if isinstance(allocator, TreeRows):
        return TreeLayout(allocator)
    return RegionLayout(allocator)

"""The layout of regions, whose addresses the allocator knows."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kvsim.engine.addresses.bands import DEAD, FREE, MOVING, USED, Bands, bands_of, differences, length
from kvsim.engine.addresses.layout import Layout, Paint
from kvsim.memory.interface import Allocator, Extent
from kvsim.metrics.requests import Journey


class _Region(NamedTuple):
    sequence: int
    bands: Bands


class RegionLayout(Layout):
    """Regions by where they start. One that lies elsewhere now, or is another's, is free before it is anything."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._noted: dict[int, _Region] = {}

    def forked(self, parent: int, child: int) -> None:
        """See `Layout`; regions are never shared."""

    def left(self, sequence: int, *, in_plan: bool) -> None:
        """See `Layout`; its region is not among the allocator's any more."""

    def changes(self, running: Sequence[Journey], *, stalled: bool) -> Iterator[Paint]:
        """See `Layout`."""
        journeys = {journey.sequence.id: journey for journey in running}
        # A copy that nobody waits for any more, when the run is stopped in the middle of it, is over.
        extents = self._allocator.extents() if running else ()
        regions = {extent.start: _Region(extent.sequence, self._bands(extent, journeys)) for extent in extents}
        noted, self._noted = self._noted, regions
        stay = dict[int, Bands]()
        for start, (sequence, bands) in noted.items():
            now = regions.get(start)
            if now and now.sequence == sequence and length(now.bands) >= length(bands):
                stay[start] = bands
            else:
                yield Paint(start, length(bands), 0, FREE)
        for start, (sequence, bands) in regions.items():
            for low, high, kind in differences(stay.get(start, ()), bands):
                yield Paint(start + low, high - low, sequence, kind)

    def _bands(self, extent: Extent, journeys: dict[int, Journey]) -> Bands:
        slots, rounding = extent.slots, extent.rounding
        if extent.beside:
            return bands_of(slots, slots, slots, holding=MOVING if extent.moving else USED, rounding=rounding)
        journey = journeys[extent.sequence]
        written = self._allocator.decodes.written_of(journey.sequence)
        holding = DEAD if journey.done else MOVING if extent.moving else USED
        return bands_of(written, slots, journey.furthest, holding=holding, rounding=rounding)

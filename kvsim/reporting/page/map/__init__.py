"""What the memory map of a page is drawn from: the changes of an address table, packed small."""

from kvsim.reporting.page.map.maps import MapData, maps_of

__all__ = ["MapData", "maps_of"]

"""Which slots of the pool are whose: only where somebody asks, since a radix cache does with counts."""

from kvsim.memory.radix.slots.book import SlotBook

__all__ = ["SlotBook"]

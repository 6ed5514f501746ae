"""Real address spaces: which slots are free, and where a region is put."""

from kvsim.memory.addresses.buddy import BuddySpace, power_of_two
from kvsim.memory.addresses.holes import FITS, AddressSpace
from kvsim.memory.addresses.interface import Space

__all__ = ["FITS", "AddressSpace", "BuddySpace", "Space", "power_of_two"]

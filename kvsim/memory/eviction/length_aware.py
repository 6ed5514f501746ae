"""Mooncake's LengthAwareCache: as LFU, but of blocks with equally many uses the one furthest back in its prompt goes
first (Qin et al., Mooncake, arXiv 2407.00079, section 4).
"""

from kvsim.memory.eviction.lfu import Lfu


class LengthAware(Lfu):
    """Fewest uses first, then furthest from the head, then least recently used."""

    def rank(self, uses: int, position: int, touched: int) -> tuple[int, int, int]:
        """The lowest goes first."""
        return uses, -position, touched

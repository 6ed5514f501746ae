"""Block phases of the decoding sequences: who takes a new block when, in two forms that answer alike.

`phases_of(size)` gives the one that suits the block: a table for blocks of up to 256 slots, a count per phase that
occurs for longer ones (pages of thousands of tokens), where a table, quadratic in the block, would not fit.
"""

from kvsim.memory.phases.counts import PhaseCounts
from kvsim.memory.phases.interface import Phases
from kvsim.memory.phases.leap import PhaseLeap, weights
from kvsim.memory.phases.members import PhaseMembers
from kvsim.memory.phases.table import PhaseTable

__all__ = ["PhaseCounts", "PhaseLeap", "PhaseMembers", "PhaseTable", "Phases", "phases_of", "weights"]

TABLE_LIMIT = 256
"""The longest block in slots for which a table is kept: its rows are 3 x 256 x 256 numbers."""


def phases_of(size: int) -> Phases:
    """An empty set of phases for blocks of `size` slots."""
    return PhaseTable(size) if size <= TABLE_LIMIT else PhaseCounts(size)

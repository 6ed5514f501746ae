"""Seeds of the replications of a study."""

from kvsim.workload.streams import Streams

SEED_BITS = 53
"""Bits of a seed that is made here, so that every reader of JSON reads it exactly."""


def replication_seed(seed: int, number: int, purpose: str = "replication") -> int:
    """The seed of a replication: the study's own for the first, and for the others one that follows from it.

    So no two studies whose seeds are neighbours have a replication in common. Other purposes have seeds of their own
    throughout.
    """
    if number == 0 and purpose == "replication":
        return seed
    return int(Streams(seed).generator(purpose, number).integers(0, 1 << SEED_BITS))

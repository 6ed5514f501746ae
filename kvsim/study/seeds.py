"""Seeds of the replications of a study."""

from kvsim.workload.streams import Streams

SEED_BITS = 53
"""Bits of a seed that is made here, so that every reader of JSON reads it exactly."""


def replication_seed(seed: int, number: int) -> int:
    """The seed of a replication: the study's own for the first, and for the others one that follows from it.

    So no two studies whose seeds are neighbours have a replication in common.
    """
    return seed if number == 0 else int(Streams(seed).generator("replication", number).integers(0, 1 << SEED_BITS))

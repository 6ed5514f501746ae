"""The least loaded of some replicas; of equal ones the next in turn, so that none is always the first."""

from collections.abc import Callable, Sequence

from kvsim.engine.fleet.interface import Member


class Least:
    """Finds the member with the least load, however that is counted."""

    def __init__(self, load: Callable[[Member], int]) -> None:
        self._load = load
        self._last = -1

    def of(self, members: Sequence[Member]) -> Member:
        """One of `members`. O(members). Mutates."""
        loads = [self._load(member) for member in members]
        least = min(loads)
        equal = [member for member, load in zip(members, loads, strict=True) if load == least]
        chosen = next((member for member in equal if member.number > self._last), equal[0])
        self._last = chosen.number
        return chosen


def requests(member: Member) -> int:
    """Load as requests in the system."""
    return member.requests


def held_slots(member: Member) -> int:
    """Load as KV memory in use."""
    return member.held_slots

"""Who loses its KV when a running request cannot be extended: one function per policy, among all that run.

Each takes the running requests in admission order and the decode set, and returns the victim. Ties go to the last
admitted, which has waited least. O(running), and only called when memory has run out.
"""

from collections.abc import Callable, Collection

from kvsim.request import Sequence
from kvsim.step import DecodeSet

Victim = Callable[[Collection[Sequence], DecodeSet], Sequence]


def last(running: Collection[Sequence], decodes: DecodeSet) -> Sequence:
    """The last admitted (vLLM under fcfs)."""
    *_, victim = running
    return victim


def lowest_priority(running: Collection[Sequence], decodes: DecodeSet) -> Sequence:
    """The one with the highest priority number, the latest arrival among equals (vLLM's priority policy)."""
    return max(running, key=lambda sequence: (sequence.priority, sequence.arrival_ps, sequence.admission))


def largest(running: Collection[Sequence], decodes: DecodeSet) -> Sequence:
    """The one with the most written tokens, which frees the most room; but never the first admitted.

    Prompts that preempt one another whenever they have become the largest would never end.
    """
    first, *others = running
    return max(others or [first], key=lambda sequence: (decodes.written_of(sequence), sequence.admission))


def least_work(running: Collection[Sequence], decodes: DecodeSet) -> Sequence:
    """The one with the fewest written tokens: it loses the least work."""
    return min(running, key=lambda sequence: (decodes.written_of(sequence), -sequence.admission))


VICTIMS: dict[str, Victim] = {
    "last": last,
    "lowest-priority": lowest_priority,
    "largest": largest,
    "least-work": least_work,
}

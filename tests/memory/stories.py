"""The first lines of a story: requests whose prompts are computed, and steps in which everybody decodes."""

from kvsim.memory.interface import Allocator
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, Short


def sequence(number: int, prompt: int) -> Sequence:
    return Sequence(number, prompt, None, tokens=prompt, admission=number)


def decoding(allocator: Allocator, *prompts: int, admit: bool = False, granted: Grant | None = None) -> list[Sequence]:
    """Requests 0, 1, ... whose prompts have been computed in one step: they decode from the next step on.

    With `granted` their slots must come with exactly this grant.
    """
    batch = [sequence(number, prompt) for number, prompt in enumerate(prompts)]
    got = allocator.acquire([Ask(one, one.tokens, admit=admit) for one in batch])
    assert isinstance(got, Grant)
    assert granted is None or got == granted
    allocator.settle([Chunk(one, one.tokens, 0) for one in batch])
    for one in batch:
        one.tokens += 1
        allocator.begin_decode(one)
    return batch


def decode(allocator: Allocator) -> Grant | Short:
    """One step in which everybody decodes, if memory allows."""
    got = allocator.acquire([], decodes=True)
    if isinstance(got, Grant):
        allocator.settle([])
    return got

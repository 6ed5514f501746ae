"""Prompts told by the ids of their blocks, as contents."""

from collections.abc import Iterable, Iterator

from kvsim.content import Content, Run, own_stream
from kvsim.workload.readers.request import BlockId

_BLOCKS = 0
"""The stream that all blocks of a trace are parts of, one behind the other."""


def prompt_contents(prompts: Iterable[tuple[int, tuple[BlockId, ...]]], block_tokens: int) -> Iterator[Content]:
    """The content of each prompt of so many tokens, by the ids of its blocks, head first.

    Ids are numbered in order of appearance, so that blocks that were first seen together are one run. The last block
    may be partly filled; tokens behind it are like no other prompt's. The k-th prompt is that of request k, from 0.
    """
    numbers: dict[BlockId, int] = {}
    for request, (tokens, ids) in enumerate(prompts):
        content = Content()
        for block in ids:
            start = numbers.setdefault(block, len(numbers)) * block_tokens
            content.append(Run(_BLOCKS, start, min(block_tokens, tokens - content.tokens)))
        content.append(Run(own_stream(request), content.tokens, tokens - content.tokens))
        yield content

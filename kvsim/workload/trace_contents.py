"""Prompts told by the ids of their blocks, as contents."""

from collections.abc import Iterable, Iterator

from kvsim.content import Content, Layers, Run, common_tokens, own_stream
from kvsim.workload.readers.interface import BlockId

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


def prompt_layers(contents: Iterable[Content]) -> Layers:
    """What the pattern of sharing tells of the layers: tokens that every prompt begins with are `system`.

    Ids alone do not tell a group of requests from the turns of one conversation, so the rest is unknown. A prompt that
    is over before it differs from the first agrees with it. Reads no further than to a prompt that shares nothing.
    """
    first: Content | None = None
    system_tokens = 0
    for content in contents:
        if first is None:
            first, system_tokens = content, content.tokens
            continue
        common = common_tokens(first.runs, content.runs)
        if common < content.tokens:
            system_tokens = min(system_tokens, common)
        if not system_tokens:
            break
    # The blocks that the first prompt begins with are the first of the stream, up to one that it has twice.
    head = first.runs[0] if first else None
    return Layers(heads={_BLOCKS: min(system_tokens, head.tokens)} if head and head.stream == _BLOCKS else {})

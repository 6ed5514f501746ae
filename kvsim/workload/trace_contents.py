"""Prompts told by the ids of their blocks, as contents."""

from collections.abc import Iterable, Iterator

from kvsim.content import ENDLESS, Content, Layers, Run, own_stream
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


def prompt_layers(contents: Iterable[Content]) -> Layers:
    """What the pattern of sharing tells of the layers: tokens that every prompt begins with are `system`.

    Ids alone do not tell a group of requests from the turns of one conversation, so the rest is unknown. A prompt that
    is over before it differs from the others agrees with them. Reads no further than to one that shares nothing.
    """
    longest, system_tokens = Content(), ENDLESS
    for content in contents:
        common = longest.common(content)
        if common < min(longest.tokens, content.tokens):
            system_tokens = min(system_tokens, common)
        elif content.tokens > longest.tokens:
            longest = content
        if not system_tokens:
            break
    # They are the first blocks of the stream, up to one that a prompt has twice.
    blocks = next((run.tokens for run in longest.runs[:1] if run.stream == _BLOCKS), 0)
    return Layers(heads={_BLOCKS: min(system_tokens, blocks)} if blocks else {})

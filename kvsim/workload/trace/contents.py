"""Prompts told by the ids of their blocks, as contents."""

from array import array
from collections.abc import Iterable, Iterator

from kvsim.content import ENDLESS, Content, Layers, Run, Spans, own_stream
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
        yield block_content(request, tokens, ids, block_tokens, numbers)


def block_content(
    request: int, tokens: int, ids: tuple[BlockId, ...], block_tokens: int, numbers: dict[BlockId, int]
) -> Content:
    """The prompt of one request; `numbers` are those of all blocks so far. Mutates them."""
    content = Content()
    for block in ids:
        start = numbers.setdefault(block, len(numbers)) * block_tokens
        content.append(Run(_BLOCKS, start, min(block_tokens, tokens - content.tokens)))
    content.append(Run(own_stream(request), content.tokens, tokens - content.tokens))
    return content


def prompt_layers(prompts: Iterable[tuple[Content, str]], block_tokens: int) -> Layers:
    """What the pattern of sharing tells of the layers of these prompts, each with its session (empty: none).

    Tokens that every prompt begins with are `system`; a prompt that is over before it differs from the others agrees
    with them. Other blocks are their `session`'s where no request outside it has them, and a `group`'s where some has.
    Ids alone do not tell one from the other, so what only requests without a session have is unknown.
    """
    longest, system_tokens = Content(), ENDLESS
    users = _Users(block_tokens)
    for content, session in prompts:
        users.add(content, session)
        common = longest.common(content)
        if common < min(longest.tokens, content.tokens):
            system_tokens = min(system_tokens, common)
        elif content.tokens > longest.tokens:
            longest = content
    # They are the first blocks of the stream, up to one that a prompt has twice.
    blocks = next((run.tokens for run in longest.runs[:1] if run.stream == _BLOCKS), 0)
    return Layers(
        heads={_BLOCKS: min(system_tokens, blocks)} if blocks else {},
        spans={_BLOCKS: users.spans()} if users.sessions else {},
    )


_NO_SESSION, _SEVERAL, _NOBODY = -1, -2, -3


class _Users:
    """Whose each block is, by its number: a session's, by the number of that, or one of the two above."""

    def __init__(self, block_tokens: int) -> None:
        self.sessions: dict[str, int] = {}
        self._block_tokens = block_tokens
        self._users = array("q")

    def add(self, content: Content, session: str) -> None:
        """A prompt of this session. Mutates."""
        user = self.sessions.setdefault(session, len(self.sessions)) if session else _NO_SESSION
        users, size = self._users, self._block_tokens
        for run in content.runs:
            if run.stream != _BLOCKS:
                continue
            for block in range(run.offset // size, -(-(run.offset + run.tokens) // size)):
                # They are numbered in order of appearance, but for those that only a partly filled last block had.
                if block >= len(users):
                    users.extend([_NOBODY] * (block - len(users) + 1))
                if users[block] == _NOBODY:
                    users[block] = user
                elif users[block] != user:
                    users[block] = _SEVERAL

    def spans(self) -> Spans:
        """The layers of all blocks."""
        starts: list[int] = [0]
        names: list[str | None] = [None]
        for block, user in enumerate(self._users):
            name = _LAYERS.get(user, "session")
            if name != names[-1]:
                starts.append(block * self._block_tokens)
                names.append(name)
        return Spans(starts, names)


_LAYERS: dict[int, str | None] = {_NO_SESSION: None, _SEVERAL: "group", _NOBODY: None}

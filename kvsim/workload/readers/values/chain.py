"""Prefix blocks from tokens: ids that are equal exactly where everything up to the block's end is equal."""

from collections.abc import Hashable, Sequence
from hashlib import blake2b

_ID_BYTES = 8
"""64 bits: among a million blocks two unlike ones share an id with a probability of 3e-8."""

BLOCK_TOKENS = 16
"""Tokens of a block where the file holds tokens or text, and any block would do: the block of vLLM's default."""


def chained_blocks(tokens: Sequence[Hashable], block_tokens: int = BLOCK_TOKENS) -> tuple[int, ...]:
    """Ids of the blocks of a prompt, the last one perhaps partly filled. The same in every process."""
    found = []
    before = b""
    for start in range(0, len(tokens), block_tokens):
        block = repr(tuple(tokens[start : start + block_tokens])).encode("utf-8", "surrogatepass")
        before = blake2b(before + block, digest_size=_ID_BYTES).digest()
        found.append(int.from_bytes(before, "big"))
    return tuple(found)

"""Sizes of a cache as people write them: blocks, tokens, or bytes."""

from kvsim.errors import InputError
from kvsim.units import parse_size

TOKENS = "tokens"
RIGHT = "write blocks (65536), tokens (3000000tokens) or, with --model, bytes (40GiB)"


def blocks_of(text: str, block_tokens: int, bytes_per_token: int | None) -> int:
    """Whole blocks in a size such as `65536`, `3000000tokens` or `40GiB`; InputError where that is less than one."""
    text = text.strip()
    if text.isdecimal():
        blocks = int(text)
    elif text.removesuffix(TOKENS).strip().isdecimal():
        blocks = int(text.removesuffix(TOKENS)) // block_tokens
    else:
        blocks = _bytes(text, bytes_per_token) // (block_tokens * (bytes_per_token or 1))
    if blocks < 1:
        raise InputError(f"--sizes {text}: is less than one block of {block_tokens} tokens; {RIGHT}")
    return blocks


def _bytes(text: str, bytes_per_token: int | None) -> int:
    try:
        size = parse_size(text)
    except ValueError as error:
        raise InputError(f"--sizes {error}; {RIGHT}") from error
    if bytes_per_token is None:
        raise InputError(f"--sizes {text}: needs --model, which says how many bytes a token takes; {RIGHT}")
    return size

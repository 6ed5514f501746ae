"""Random streams: every use of chance draws from a stream of its own, all grown from one seed.

A stream is keyed by what it is for and for whom, never by when it is asked for. A change in one part of a run
(another allocator, one more client) therefore leaves the draws of every other part untouched, and comparisons
are paired.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.random import Generator

_WORD_BITS = 32
_SEED_BITS = 128
"""`SeedSequence` pads a seed to four words of 32 bits before it appends a key; a longer one would run into
the key.
"""


class Streams:
    """All random streams of one run.

    `seed` is an int of at least 0 and below 2**128. ValueError otherwise.
    """

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << _SEED_BITS:
            raise ValueError(f"seed: must be a whole number from 0 to 2**{_SEED_BITS} - 1; got {seed!r}")
        self.seed = seed

    def generator(self, purpose: str, member: int | str = 0, turn: int = 0) -> "Generator":
        """A fresh generator at the start of the stream of `purpose`, for one client or session (`member`) and
        turn.

        The same three give the same draws, in any order of asking and in any process. Costs about 30 us.
        Draws follow numpy's own algorithms, so they are the same on every machine with the same numpy.
        ValueError where an integer key is negative or wider than 64 bits.
        """
        from numpy.random import PCG64, Generator, SeedSequence

        key = (*_text_words(purpose), *_key_words("member", member), *_key_words("turn", turn))
        return Generator(PCG64(SeedSequence(self.seed, spawn_key=key)))


@cache
def _text_words(text: str) -> tuple[int, ...]:
    """Four words that stand for a text in every process; Python's own `hash` changes from one to the next."""
    from hashlib import sha256

    digest = sha256(text.encode()).digest()
    return tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))


def _key_words(argument: str, key: int | str) -> tuple[int, ...]:
    """A fixed number of words for each kind of key: once joined, keys of varying width could coincide."""
    if isinstance(key, str):
        return _text_words(key)
    if not 0 <= key < 1 << 2 * _WORD_BITS:
        raise ValueError(f"{argument}: must be from 0 to 2**{2 * _WORD_BITS} - 1; got {key!r}")
    return key & ((1 << _WORD_BITS) - 1), key >> _WORD_BITS

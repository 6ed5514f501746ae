"""The seam between a prefix cache and those who keep a record of it: a cache tells, and never asks.

A cache has no clock, and does not know what becomes of what it tells. Its listener is None unless somebody wants to
know (`Allocator.listen`), so that a cache nobody listens to pays for one comparison.
"""

from collections.abc import Hashable, Iterable
from collections.abc import Sequence as Seq
from typing import Protocol

from kvsim.content import Content

Piece = Hashable
"""What a cache keeps or evicts as a whole, together with all that comes before it: a block, an edge of a tree."""


class CacheListener(Protocol):
    """Told of every change at the moment at which it happens."""

    def stored(self, pieces: Seq[Piece], before: Piece | None, content: Content, start: int, tokens: int) -> None:
        """`pieces` can be found from now on, each behind the other, the first behind `before` (None: at the start).

        Each holds `tokens` tokens, together those of `content` from `start` on. A piece that is there already has one
        copy more.
        """

    def removed(self, pieces: Seq[Piece], tokens: int, *, for_good: bool = False) -> None:
        """A copy of each is evicted, of `tokens` tokens. `for_good`: their content would come back as other pieces."""

    def forgotten(self, pieces: Seq[Piece]) -> None:
        """Nobody can ask for these any more, whether they are cached now, were, or never came to be."""

    def cleared(self) -> None:
        """Nothing is cached any more: whoever runs the engine has emptied it. That is no eviction."""

    def cut(self, piece: Piece, upper: Piece, tokens: int) -> None:
        """The first `tokens` tokens of `piece` are a piece of their own now, `upper`, and `piece` is what follows."""

    def admitted(
        self,
        sequence: int,
        content: Content,
        tokens: int,
        found: Seq[tuple[Piece, int]],
        beyond: Iterable[tuple[Piece, int]],
    ) -> None:
        """A waiting sequence, told by its id, is admitted; the first `tokens` tokens of its `content` are known.

        It need not compute `found`: head first, each with its tokens. `beyond`: what it would have found next if it
        were cached, worked out as far as somebody asks. Nothing of this sequence is stored yet.
        """

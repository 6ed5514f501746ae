"""What is cached where: the index that a prefix-aware router keeps from its replicas' KV events."""

from collections.abc import Hashable, Iterable
from collections.abc import Sequence as Seq

from kvsim.content import Content
from kvsim.memory.prefix.chain import Chain, Identities

_START = 0


class FleetCaches:
    """Blocks of `block_tokens` tokens by number of their content, each with the replicas that have it, as bits."""

    def __init__(self, replicas: int, *, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.identities = Identities()
        self.holders: dict[int, int] = {}
        self._replicas = replicas

    def found(self, content: Content, tokens: int) -> list[int]:
        """See `Caches`. O(blocks found by anybody + replicas)."""
        lengths, size = [0] * self._replicas, self.block_tokens
        chain, holders = Chain(content, block_size=size, identities=self.identities), self.holders
        have, blocks = (1 << self._replicas) - 1, min(tokens, content.tokens) // size
        for block in range(blocks + 1):
            still = have & holders.get(chain[block], 0) if block < blocks else 0
            if still == have:
                continue
            ending = have & ~still
            while ending:
                lowest = ending & -ending
                lengths[lowest.bit_length() - 1] = block * size
                ending -= lowest
            if not still:
                break
            have = still
        return lengths

    def forget(self, streams: Iterable[int]) -> None:
        """No prompt with tokens of these own streams will come any more. Mutates; changes no answer."""
        self.identities.forget(streams)

    def follower(self, replica: int) -> "Held":
        """Who listens to the cache of one replica."""
        return Held(self, replica)


class Held:
    """Hears (as a `Follower`) what one replica stores and evicts; every copy of a piece is told by itself."""

    def __init__(self, caches: FleetCaches, replica: int) -> None:
        self._caches = caches
        self._bit = 1 << replica
        self._blocks: dict[Hashable, list[int]] = {}
        """The numbers of the blocks of every piece that is cached."""
        self._copies: dict[Hashable, int] = {}
        """Of every piece that is cached more than once."""

    def stored(
        self, now_ps: int, pieces: Seq[Hashable], before: Hashable | None, content: Content, start: int, tokens: int
    ) -> None:
        """See `CacheListener`. Mutates."""
        caches = self._caches
        holders, number, size = caches.holders, caches.identities.number, caches.block_tokens
        last = _START if before is None else self._blocks[before][-1]
        shared_tokens, stream = content.first_own()
        for piece in pieces:
            blocks = self._blocks.get(piece)
            if blocks is None:
                blocks = self._blocks[piece] = []
                for place in range(start, start + tokens, size):
                    # As `Chain` has it, so that whoever looks for the same tokens finds the same number.
                    own = place + size > shared_tokens
                    last = number(last, content.part(place, place + size), stream if own else None)
                    blocks.append(last)
                    holders[last] = holders.get(last, 0) | self._bit
            else:
                self._copies[piece] = self._copies.get(piece, 1) + 1
                last = blocks[-1]
            start += tokens

    def removed(self, now_ps: int, pieces: Seq[Hashable]) -> None:
        """See `CacheListener`. Mutates."""
        holders = self._caches.holders
        for piece in pieces:
            copies = self._copies.pop(piece, 1)
            if copies > 2:
                self._copies[piece] = copies - 1
            if copies > 1:
                continue
            for block in self._blocks.pop(piece):
                left = holders[block] & ~self._bit
                if left:
                    holders[block] = left
                else:
                    del holders[block]

    def cleared(self, now_ps: int) -> None:
        """See `CacheListener`. Mutates."""
        self._copies.clear()
        self.removed(now_ps, list(self._blocks))

    def cut(self, piece: Hashable, upper: Hashable, tokens: int) -> None:
        """See `CacheListener`. Mutates."""
        blocks = self._blocks[piece]
        at = tokens // self._caches.block_tokens
        self._blocks[upper], self._blocks[piece] = blocks[:at], blocks[at:]

"""The block tables of all sequences: what each holds in each group of layers, what it needs more, what it gives back.

The steps of vLLM's `allocate_slots`: the gate for the whole sequence, the blocks that have left the window, the need of
this step, hits taken over, new blocks, full blocks put into the map. A block is put there when its last token is
scheduled, before it is computed (rule 5).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kvsim.content import Content
from kvsim.memory.prefix.chain import Chain, Identities
from kvsim.memory.prefix.group import Group
from kvsim.memory.prefix.lookup import Hit, Lookup
from kvsim.memory.prefix.pool import BlockPool
from kvsim.memory.residency import CacheListener


class Holding:
    """What one sequence holds, and what its blocks contain."""

    __slots__ = ("chain", "junction_tokens", "owner", "prompt_tokens", "stored", "tables")

    def __init__(self, chain: Chain, prompt_tokens: int, groups: int, owner: int) -> None:
        self.owner = owner
        """The id of the sequence."""
        self.chain = chain
        self.prompt_tokens = prompt_tokens
        self.junction_tokens = 0
        """Where a prefix that it shares with others ends without having been hit in full (0: nowhere)."""
        self.tables: list[list[int]] = [[] for _ in range(groups)]
        self.stored = 0
        """Blocks at the start of each table that were put into the map, or left out of it for good."""


class Want(NamedTuple):
    """Slots wanted for `new_tokens` after `computed_tokens` (those hit included), of `known_tokens` in all.

    `lookahead_tokens` more slots are for drafts. `in_flight_tokens` of the computed ones are not processed yet, so that
    their windows are still read. There must be room for `gate_tokens` tokens now, although only this step's are taken;
    `spare_blocks` must stay free beyond.
    """

    computed_tokens: int
    new_tokens: int
    known_tokens: int
    lookahead_tokens: int = 0
    in_flight_tokens: int = 0
    gate_tokens: int = 0
    spare_blocks: int = 0


class Holdings:
    """Block tables over one pool. `caching` off: nothing is put into the map or looked up."""

    def __init__(
        self, pool: BlockPool, groups: Sequence[Group], *, block_size: int, max_model_len: int, caching: bool = True
    ) -> None:
        self.pool = pool
        self.groups = tuple(groups)
        self.block_size = block_size
        self.max_model_len = max_model_len
        self.caching = caching
        self._identities = Identities()
        self._lookup = Lookup(pool, groups, block_size)
        self._nothing: tuple[list[int], ...] = tuple([] for _ in groups)
        self._forgets = any(group.most_blocks is not None for group in groups)
        """Some group gives back what its window has left."""

    def open(self, content: Content, prompt_tokens: int, *, owner: int = 0) -> Holding:
        """A new sequence, which holds nothing yet. `content` covers all tokens that it will ever have."""
        chain = Chain(content, block_size=self.block_size, identities=self._identities)
        return Holding(chain, prompt_tokens, len(self.groups), owner)

    def hit(self, holding: Holding, known_tokens: int) -> Hit:
        """What is cached of a sequence that holds nothing: all but its last known token at most. Pure."""
        if not self.caching:
            return Hit(0, self._nothing, 0)
        return self._lookup.hit(holding.chain, known_tokens - 1)

    def lacking(self, holding: Holding, want: Want, hit: Hit | None = None) -> int:
        """Free blocks that `acquire` would ask for, if nothing leaves a window before. Pure."""
        found = hit.tables if hit else self._nothing
        computed = min(want.computed_tokens, self.max_model_len)
        need = self._need(holding, found, self._end(want), computed)
        if want.gate_tokens:
            tokens = min(want.gate_tokens, self.max_model_len)
            need = max(need, self._need(holding, found, tokens, computed, bounded=True))
        return need + want.spare_blocks

    def acquire(self, holding: Holding, want: Want, hit: Hit | None = None) -> bool:
        """Get the slots; False if there are too few, and then only what has left a window has changed. Mutates.

        `hit` is what `hit` found just before, for a sequence that holds nothing.
        """
        pool = self.pool
        found = hit.tables if hit else self._nothing
        computed = min(want.computed_tokens, self.max_model_len)
        if want.gate_tokens:
            tokens = min(want.gate_tokens, self.max_model_len)
            if self._need(holding, found, tokens, computed, bounded=True) + want.spare_blocks > pool.free_blocks:
                return False
        if self._forgets:
            self._give_back(holding, computed - want.in_flight_tokens)
        tokens = self._end(want)
        if self._need(holding, found, tokens, computed) + want.spare_blocks > pool.free_blocks:
            return False
        if hit:
            self.take_over(holding, hit, want.known_tokens)
        blocks = -(-tokens // self.block_size)
        for table in holding.tables:
            if blocks > len(table):
                table += pool.take(blocks - len(table))
        self.store(holding, min(computed + want.new_tokens, want.known_tokens))
        return True

    def take_over(self, holding: Holding, hit: Hit, known_tokens: int) -> None:
        """A sequence that holds nothing, of `known_tokens` tokens, goes on behind what `hit` just found. Mutates."""
        if self.pool.listener is not None:
            self._tell_admitted(self.pool.listener, holding, hit.tokens, known_tokens)
        holding.junction_tokens = hit.junction_tokens
        for number, (group, blocks) in enumerate(zip(self.groups, hit.tables, strict=True)):
            behind = group.behind(hit.tokens)
            self.pool.hit(blocks[behind:])
            holding.tables[number] = [0] * behind + blocks[behind:]
        holding.stored = hit.tokens // self.block_size

    def leave_behind(self, holding: Holding, tokens: int) -> None:
        """Keep the whole blocks of the first `tokens` tokens, as a sequence that has computed them and left. Mutates.

        Only where one group of full attention holds all blocks; of `tokens` there must be room for.
        """
        size, pool = self.block_size, self.pool
        hit = self._lookup.hit(holding.chain, tokens)
        for table, blocks in zip(holding.tables, hit.tables, strict=True):
            pool.hit(blocks)
            table += blocks
            table += pool.take(tokens // size - len(table))
        holding.stored = hit.tokens // size
        self.store(holding, tokens)
        self.release(holding)

    def store(self, holding: Holding, tokens: int) -> None:
        """The full blocks of the first `tokens` tokens can be hit from now on, as far as they are kept. Mutates."""
        full = tokens // self.block_size
        if not self.caching or full <= holding.stored:
            return
        boundaries = [holding.prompt_tokens - 1]
        if holding.junction_tokens:
            boundaries.append(holding.junction_tokens)
        for number, (group, table) in enumerate(zip(self.groups, holding.tables, strict=True)):
            for place in range(holding.stored, full):
                if table[place] and group.keeps(place, boundaries):
                    self.pool.store(table[place], (number, holding.chain[place]))
        if self.pool.listener is not None:
            self._tell_stored(self.pool.listener, holding.chain, holding.stored, full)
        holding.stored = full

    def _tell_admitted(self, listener: CacheListener, holding: Holding, hit_tokens: int, known_tokens: int) -> None:
        size, chain = self.block_size, holding.chain
        hit, most = hit_tokens // size, (known_tokens - 1) // size
        beyond = ((chain[place], size) for place in range(hit, most))
        found = [(number, size) for number in chain.span(0, hit)]
        listener.admitted(holding.owner, chain.content, known_tokens, found, beyond)

    def _tell_stored(self, listener: CacheListener, chain: Chain, first: int, end: int) -> None:
        """Listeners are for one group of full attention, which keeps all blocks."""
        before = chain[first - 1] if first else None
        listener.stored(chain.span(first, end), before, chain.content, first * self.block_size, self.block_size)

    def release(self, holding: Holding) -> None:
        """Give back everything, the last block first, group by group; what is known stays in the map. Mutates."""
        for number, table in enumerate(holding.tables):
            self.pool.free(reversed(table))
            holding.tables[number] = []
        holding.stored = 0

    def forget(self, streams: Iterable[int]) -> None:
        """No sequence with tokens of these own streams will be opened any more. Mutates; changes no answer."""
        gone = self._identities.forget(streams)
        if gone and self.pool.listener is not None:
            self.pool.listener.forgotten(gone)

    def _end(self, want: Want) -> int:
        """The last token that it wants a slot for."""
        computed = min(want.computed_tokens, self.max_model_len)
        return min(computed + want.new_tokens + want.lookahead_tokens, self.max_model_len)

    def _need(
        self, holding: Holding, found: tuple[list[int], ...], tokens: int, computed: int, *, bounded: bool = False
    ) -> int:
        """Free blocks that it takes to hold `tokens` tokens: new ones, and hit ones that nobody references."""
        need, total = 0, -(-tokens // self.block_size)
        for group, table, hits in zip(self.groups, holding.tables, found, strict=True):
            blocks = total
            if not hits and blocks <= len(table):
                continue
            if bounded and group.most_blocks is not None:
                blocks = min(blocks, group.most_blocks)
            behind = group.behind(computed)
            need += max(0, blocks - max(behind, len(table) + len(hits)))
            need += sum(map(self.pool.is_free, hits[behind:]))
        return need

    def _give_back(self, holding: Holding, processed_tokens: int) -> None:
        """Free what lies behind the windows, the last block first."""
        for group, table in zip(self.groups, holding.tables, strict=True):
            last = min(group.behind(processed_tokens), len(table))
            first = last
            while first and table[first - 1]:
                first -= 1
            self.pool.free(reversed(table[first:last]))
            table[first:last] = [0] * (last - first)

"""Operations on a tree alone: match, insert, lock, unlock, evict, load."""

from collections.abc import Iterator

from kvsim.engine.replay.case import MOST, Record
from kvsim.engine.replay.sglang.case import content_of, field_of
from kvsim.errors import InputError
from kvsim.memory.radix.host import TieredRadixTree
from kvsim.memory.radix.interface import Match, PrefixTree
from kvsim.memory.radix.node import Node
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.tree import RadixTree

OPERATIONS = ("match", "insert", "lock", "unlock", "evict", "load")


def pool_state(tree: PrefixTree) -> Record:
    """The four numbers, in tokens, that every record gives of a pool and the tree over it."""
    return {
        "available": tree.pool.free,
        "evictable": tree.evictable_tokens,
        "protected": tree.protected_tokens,
        "tree_total": tree.tokens,
    }


class Operations:
    """A tree and the operations done to it."""

    def __init__(self, settings: Record) -> None:
        size, tier = settings["page_size"], settings["hicache"]
        self.pool = SlotPool(settings["pool_tokens"], page_size=size)
        self.tree = RadixTree(self.pool, eviction=settings["eviction_policy"])
        if tier is not None:
            self.tree = TieredRadixTree(
                self.pool,
                SlotPool(tier["host_tokens"], page_size=size),
                write_policy=tier["policy"],
                load_back_tokens=tier["load_back_threshold"],
                eviction=settings["eviction_policy"],
            )
        self.locked: dict[str, Node] = {}
        self.inserted = self.evicted = self.matched = 0

    def records(self, operations: list[Record]) -> Iterator[Record]:
        """A record for each operation, then the summary."""
        for index, operation in enumerate(operations):
            where = f"operation {index} of the case"
            name = field_of(operation, "op", where)
            if name not in OPERATIONS:
                raise InputError(f"{where}: op is {name!r}; it must be one of {', '.join(OPERATIONS)}")
            done = getattr(self, f"_{name}")(operation, where)
            yield {"i": index, "op": name, **done, **self._host(), **pool_state(self.tree)}
        totals = {"inserted": self.inserted, "evicted": self.evicted, "matched": self.matched}
        yield {"summary": totals, "requests": {}}

    def _match(self, operation: Record, where: str) -> Record:
        match, found = self._find(operation, where)
        self.matched += match.tokens
        return found

    def _lock(self, operation: Record, where: str) -> Record:
        name = field_of(operation, "id", where)
        if name in self.locked:
            raise InputError(f"{where}: id is {name!r}, which is locked already")
        match, found = self._find(operation, where)
        self.matched += match.tokens
        self.locked[name] = match.node
        self.tree.lock(match.node)
        return found

    def _unlock(self, operation: Record, where: str) -> Record:
        name = field_of(operation, "id", where)
        if name not in self.locked:
            raise InputError(f"{where}: id is {name!r}, which is not locked")
        self.tree.unlock(self.locked.pop(name))
        return {}

    def _load(self, operation: Record, where: str) -> Record:
        if not isinstance(self.tree, TieredRadixTree):
            raise InputError(f"{where}: op is 'load'; it needs config.hicache")
        match, found = self._find(operation, where)
        return found | {"loaded": self.tree.load_back(match)}

    def _insert(self, operation: Record, where: str) -> Record:
        key = content_of(operation.get("key"), where)
        priority = field_of(operation, "priority", where, least=-MOST, default=0)
        tokens = self.pool.floor(key.tokens)
        self.tree.make_room(tokens)
        if tokens > self.pool.free:
            raise InputError(f"{where}: the key needs {tokens:,} slots and only {self.pool.free:,} can be had")
        self.pool.take(tokens)
        found = self.tree.insert(key, priority=priority).found
        self.inserted += tokens - found
        return {"prefix_len": found, "new": tokens - found}

    def _evict(self, operation: Record, where: str) -> Record:
        evicted = self.tree.evict(field_of(operation, "n", where, least=0))
        self.evicted += evicted
        return {"evicted": evicted}

    def _find(self, operation: Record, where: str) -> tuple[Match, Record]:
        match = self.tree.match(content_of(operation.get("key"), where))
        tiered = isinstance(self.tree, TieredRadixTree)
        return match, {"matched": match.tokens, **({"host_hit": match.host_tokens} if tiered else {})}

    def _host(self) -> Record:
        if not isinstance(self.tree, TieredRadixTree):
            return {}
        return {
            "host_used": self.tree.host.slots - self.tree.host.free,
            "wrote": self.tree.written_tokens,
            "loaded_total": self.tree.loaded_tokens,
        }

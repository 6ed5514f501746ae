"""A row: the slots of one sequence, of which those at its start are the tree's, and the rest its own."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kvsim.content import Content
from kvsim.errors import CheckError
from kvsim.memory.radix.interface import PrefixTree
from kvsim.memory.radix.node import Node


class Holder(Protocol):
    """Whoever has a row."""

    content: Content
    prompt_tokens: int
    priority: int
    """The higher, the longer the `priority` policy keeps it."""
    protected: int
    """Tokens from its start that are in the tree's slots."""
    inserted: int
    """Tokens that it has brought to the tree, or found there, since it was admitted."""
    locked: Node | None
    """The node that it protects."""


@dataclass(slots=True, eq=False)
class Row:
    """The row of a sequence under any scheduler; `tokens` are those that it has slots for, unless it decodes."""

    content: Content
    prompt_tokens: int
    priority: int
    tokens: int = 0
    protected: int = 0
    inserted: int = 0
    locked: Node | None = None


def checkpoint(tree: PrefixTree, row: Holder, tokens: int) -> None:
    """Hand the whole pages of the first `tokens` of `row` over to the tree, and protect them there. Mutates both.

    What the tree has besides goes back to the pool. The prompt is cut off from the output, so that the one can be
    evicted without the other, and counts as more important by one.
    """
    if not tree.shares or tokens <= 0:
        return
    end, prompt = tree.pool.floor(tokens), tree.pool.floor(row.prompt_tokens)
    found, node = tree.insert(
        row.content, limit=tokens, owned=row.protected, counted=row.inserted, priority=row.priority
    )
    if tree.pool.book is not None:
        tree.pool.book.hand_over(row, max(0, found - row.protected), node, end - found)
    row.inserted = max(row.inserted, end)
    if 0 < prompt < end:
        tree.insert(row.content, limit=prompt, owned=prompt, counted=prompt, priority=row.priority + 1)
    unlock(tree, row)
    tree.lock(node)
    row.locked, row.protected = node, end


def leave_behind(tree: PrefixTree, row: Row, tokens: int) -> None:
    """Keep what whoever has computed the first `tokens` of `row` hands over at its end, as far as there is room.

    Mutates both. Nobody else may hold anything.
    """
    pool = tree.pool
    end = min(pool.floor(tokens), pool.slots)
    match = tree.match(row.content, end)
    tree.lock(match.node)
    row.locked, row.protected = match.node, match.tokens
    tree.make_room(end - match.tokens)
    new = min(end - match.tokens, pool.free)
    pool.take(new)
    if pool.book is not None:
        pool.book.take(row, new)
    checkpoint(tree, row, match.tokens + new)
    unlock(tree, row)
    if pool.book is not None:
        pool.book.give_back(row)


def unlock(tree: PrefixTree, row: Holder) -> None:
    """Protect nothing for `row` any more. Mutates both."""
    if row.locked is not None:
        tree.unlock(row.locked)
        row.locked = None


def audit_rows(tree: PrefixTree, rows: Sequence[Holder], slots: int) -> None:
    """Count pool, locks and the tree's sums again from all `rows`, of `slots` slots; CheckError if they differ."""
    pool, own = tree.pool, slots - sum(row.protected for row in rows)
    if own + tree.tokens + pool.free != pool.slots:
        raise CheckError(
            f"radix: {own} slots of live requests alone, {tree.tokens} of the tree and {pool.free} free ones do not "
            f"add up to the pool's {pool.slots} (a leak, or a double free)"
        )
    locks: Counter[Node] = Counter()
    for row in rows:
        path = row.locked.path() if row.locked else []
        locks.update(path)
        if sum(node.tokens for node in path) != row.protected:
            raise CheckError(f"radix: a row has {row.protected} slots of the tree and locks others")
    nodes = list(tree.nodes())
    if any(node.locks != locks[node] for node in nodes):
        raise CheckError("radix: the locks of the tree are not those of the live requests")
    evictable = sum(node.tokens for node in nodes if not node.locks)
    if evictable != tree.evictable_tokens or sum(node.tokens for node in nodes) != tree.tokens:
        raise CheckError(f"radix: the tree counts {tree.evictable_tokens} evictable slots, {evictable} are")
    if pool.book is not None:
        pool.book.audit(nodes, pool.free)

"""The KV of requests: slots taken from the pool, content handed to the tree, all of it given back.

A request has one row of slots. From its start they are the tree's (`protected`), the rest is its own.
"""

from kvsim.errors import RunError
from kvsim.memory.radix.interface import PrefixTree
from kvsim.memory.radix.row import checkpoint, unlock
from kvsim.scheduling.sglang.request import Request


class Rows:
    """The rows of all requests that have slots."""

    def __init__(self, tree: PrefixTree) -> None:
        self.tree = tree
        self.pool = tree.pool
        self.held = 0
        """Requests that have a row."""
        self.evicted = 0
        """Tokens evicted to make room, in all."""

    @property
    def reachable(self) -> int:
        """Tokens for which there is room, evictions included. Pure."""
        return self.pool.free + self.tree.evictable_tokens

    def find(self, request: Request, limit: int | None = None) -> None:
        """Look up what is cached of the first `limit` tokens of a waiting request. Mutates both, and takes nothing."""
        match = self.tree.match(request.content, limit)
        request.prefix = request.protected = match.tokens
        request.found = match.node
        request.matched = min(match.tokens + match.host_tokens, max(0, request.tokens - 1))

    def extend(self, requests: list[Request]) -> None:
        """Slots for the chunks at hand. With pages, one more for each request is asked for than may be needed."""
        spare = self.pool.page_size if self.pool.page_size > 1 else 0
        self.make_room(sum(request.end - request.prefix + spare for request in requests))
        for request in requests:
            slots = self.pool.ceil(request.end) - self.pool.ceil(request.prefix)
            self._take(slots)
            if self.pool.book is not None:
                self.pool.book.take(request, slots)
            request.committed = request.end
            if not request.holds:
                request.holds, request.retracted = True, False
                self.held += 1

    def decode(self, requests: list[Request]) -> None:
        """A slot more for each. With pages, one is asked for each request, whoever needs it."""
        self.make_room(len(requests) * self.pool.page_size)
        self._take(self.decode_slots(requests))
        if self.pool.book is not None:
            for request in requests:
                self.pool.book.take(request, self.decode_slots([request]))
        for request in requests:
            request.committed += 1

    def decode_slots(self, requests: list[Request]) -> int:
        """Slots that it takes for each to decode one token more. Pure."""
        size = self.pool.page_size
        return size * sum(request.committed % size == 0 for request in requests)

    def grow(self, requests: list[Request], tokens: int) -> None:
        """Slots for so many tokens more of each, all of which are free. Mutates."""
        for request in requests:
            slots = self.pool.ceil(request.committed + tokens) - self.pool.ceil(request.committed)
            self._take(slots)
            if self.pool.book is not None:
                self.pool.book.take(request, slots)
            request.committed += tokens

    def decode_fits(self, requests: list[Request]) -> bool:
        """Whether each can get a slot more, after evicting what that takes. Mutates the tree."""
        slots = self.decode_slots(requests)
        self.make_room(slots)
        return self.pool.free >= slots

    def make_room(self, slots: int) -> None:
        """Evict what is missing for `slots`, as far as there is anything. Mutates."""
        self.evicted += self.tree.make_room(slots)

    def checkpoint(self, request: Request, tokens: int) -> None:
        """Hand the whole pages of the first `tokens` of a request over to the tree. Mutates."""
        checkpoint(self.tree, request, min(tokens, request.filled))

    def stash(self, request: Request) -> None:
        """Checkpoint the chunk just computed; the next one goes on from its end. Mutates."""
        self.checkpoint(request, request.end)
        request.prefix = request.end

    def release(self, request: Request, *, keep: bool) -> None:
        """Give back all that is its own, after handing over, with `keep`, what the tree can key. Mutates."""
        if keep:
            request.filled = request.tokens
            self.checkpoint(request, request.committed)
        self.pool.give(self.pool.ceil(request.committed) - request.protected)
        if self.pool.book is not None:
            self.pool.book.give_back(request)
        unlock(self.tree, request)
        request.holds = False
        self.held -= 1

    def retract(self, request: Request) -> None:
        """Release a running request, which will wait and be computed anew. Mutates."""
        self.release(request, keep=False)
        request.prefix = request.end = request.committed = request.protected = request.inserted = 0
        request.found, request.middle_chunks, request.retracted = None, 0, True

    def _take(self, slots: int) -> None:
        """SGLang admits on an estimate, so a batch may turn out not to fit; the real one ends there too."""
        if slots > self.pool.free:
            raise RunError(
                f"out of memory: a batch needs {slots:,} slots more and {self.pool.free:,} are free with nothing left "
                "to evict; SGLang itself stops here. A larger pool or smaller chunks would do"
            )
        self.pool.take(slots)

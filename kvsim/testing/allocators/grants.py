"""What may be had: capacity, admission, grants, honest refusals, and that a refusal changes nothing."""

from collections.abc import Sequence as Seq

from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, Short
from kvsim.testing.allocators.walk import MakeAllocator, Walk, side_by_side, walk
from kvsim.testing.promises import promise, same


def a_fresh_pool_is_empty(make: MakeAllocator, longest: int) -> None:
    """It has a name, is not larger than asked, and all of it is free."""
    slots = 4 * make(1 << 20).capacity(longest)
    pool = make(slots)
    promise(isinstance(pool.name, str) and bool(pool.name), "an allocator has a name")
    right = 0 < pool.pool_slots <= slots if pool.keeps else not pool.pool_slots
    promise(right, f"{pool.name}: {slots} slots became a pool of {pool.pool_slots}, with keeps {pool.keeps}")
    use = pool.usage()
    empty = use.free == pool.pool_slots and use.largest_hole >= pool.most_slots and not (any(use[:5]) or use.rounding)
    promise(empty, f"{pool.name}: a fresh pool of {pool.pool_slots} slots is not empty: {use}")
    decodes = pool.decodes
    promise(
        (decodes.clock, decodes.count, decodes.written) == (0, 0, 0),
        f"{pool.name}: somebody decodes in a fresh pool",
    )
    pool.audit([])


def capacity_holds_the_tokens(make: MakeAllocator, longest: int) -> None:
    """At least one slot a token, or none if nothing is kept; never less for more; growth comes before its token."""
    pool = make(1 << 20)
    before = 0
    for tokens in range(1, longest + 1):
        slots = pool.capacity(tokens)
        enough = slots >= tokens if pool.keeps else not slots
        promise(enough, f"{pool.name}: capacity({tokens}) is {slots}: too small to hold the tokens, or nothing is kept")
        promise(slots >= before, f"{pool.name}: capacity({tokens}) is {slots}, less than for a token fewer")
        grown = pool.last_growth(tokens)
        promise(0 <= grown < tokens, f"{pool.name}: last_growth({tokens}) is {grown}, not below the token")
        before = slots


def an_empty_pool_admits_whoever_fits(make: MakeAllocator, longest: int) -> None:
    """Alone, a sequence is admitted exactly if its capacity is at most what the pool can ever give to one."""
    whole = make(1 << 20).capacity(longest)
    for slots in (whole, whole + whole // 2):
        pool = make(slots)
        most = pool.most_slots
        promise(
            pool.pool_slots // 2 <= most <= pool.pool_slots and (pool.has_holes or most == pool.pool_slots),
            f"{pool.name}: most_slots is {most} in a pool of {pool.pool_slots} slots",
        )
        for tokens in range(1, longest + 1):
            pool = make(slots)
            got = pool.acquire((Ask(Sequence(1, tokens, None, tokens=tokens), tokens, True, tokens, True),))
            need = pool.capacity(tokens)
            promise(
                isinstance(got, Grant) == (need <= pool.most_slots),
                f"{pool.name}: an empty pool of {pool.pool_slots} slots answers {got} to a lone request that needs "
                f"{need} (it must be admitted exactly if it fits)",
            )


def many_small_requests_fill_the_pool(make: MakeAllocator, longest: int) -> None:
    """The number of requests is no limit of the pool: small ones are admitted until the room is gone."""
    each = make(1 << 20).capacity(1)
    pool = make(600 * each)
    admitted: list[Sequence] = []
    while pool.keeps or len(admitted) < 600:
        sequence = Sequence(len(admitted) + 1, 1, None, tokens=1)
        sequence.admission = len(admitted)
        got = pool.acquire((Ask(sequence, 1, True, 1, not admitted),))
        if isinstance(got, Short):
            promise(
                got.need_slots > got.free_slots,
                f"{pool.name}: request {len(admitted) + 1} of one token is refused although there is room: {got}",
            )
            break
        admitted.append(sequence)
        promise(len(admitted) * each <= pool.pool_slots, f"{pool.name}: overbooked by {len(admitted)} small requests")
    pool.settle([Chunk(s, 1, 0) for s in admitted])
    pool.audit(admitted)
    for sequence in admitted:
        pool.release(sequence)
    use = pool.usage()
    promise(use.free + use.cached == pool.pool_slots, f"{pool.name}: {len(admitted)} small requests leave a leak")


class _Granted(Walk):
    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        got = super().acquire(asks, decodes=decodes)
        for ask in asks if isinstance(got, Grant) else ():
            owned = self.allocator.owned(ask.sequence)
            promise(
                owned >= ask.tokens or not self.allocator.keeps,
                f"{self.allocator.name}: a Grant for {ask.tokens} tokens leaves the request owning {owned} slots",
            )
        return got

    def rest(self) -> None:
        pool = self.allocator
        for sequence in self.running:
            owned, written = pool.owned(sequence), self.written[sequence.id]
            promise(
                any(pool.capacity(tokens) == owned for tokens in range(max(1, written), self.longest + 1)),
                f"{pool.name}: a request with {written} written tokens owns {owned} slots, the capacity of no number "
                f"of tokens from there to {self.longest}",
            )


def a_grant_owns_the_tokens_asked(make: MakeAllocator, longest: int) -> None:
    """After a Grant every request owns room for what it asked; what it owns is a capacity."""
    for walker in walk(_Granted, make, longest):
        gone = walker.new_sequence(1)
        promise(walker.allocator.owned(gone) == 0, f"{walker.allocator.name}: a stranger owns slots")


class _Short(Walk):
    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        use = self.allocator.usage()
        use = use._replace(free=use.free + use.cached, largest_hole=use.largest_hole + use.cached)
        owned = sum(self.allocator.owned(ask.sequence) for ask in asks)
        got = super().acquire(asks, decodes=decodes)
        if isinstance(got, Short) and len(asks) == 1 and not decodes:
            told = f"{self.allocator.name}: {got} is not honest: "
            free, largest = got.free_slots, got.largest_hole_slots
            # One that gives up its old place for a new one may count it, and what its own copy holds, as free.
            own = free - use.free if owned else 0
            promise(0 <= own <= owned + use.moving + use.rounding, f"{told}{use.free} slots are free")
            promise(free == use.free + own, f"{told}{use.free} slots are free")
            right = largest == use.largest_hole if not own else use.largest_hole <= largest <= free
            promise(right, f"{told}the largest hole has {use.largest_hole}")
            if got.cause == "capacity":
                promise(got.need_slots > free, f"{told}as many slots as needed are free")
            else:
                promise(got.cause == "fragmentation", f"{told}the cause is neither capacity nor fragmentation")
                promise(self.allocator.has_holes, f"{told}has_holes is False")
                fits = largest < got.need_slots <= free
                promise(fits, f"{told}fragmentation is enough in all and no hole large enough")
        return got


def a_short_is_honest(make: MakeAllocator, longest: int) -> None:
    """Cause, need and what is free say why one request's slots could not be had."""
    for _ in walk(_Short, make, longest):
        pass


class _Failing(Walk):
    """Every step begins with acquires that cannot be met: the requests that run, then more new ones than fit."""

    def step(self) -> None:
        if self.allocator.keeps:  # otherwise nothing is ever refused
            self._fail()
        super().step()

    def _fail(self) -> None:
        pool = self.allocator
        known, before = self._ids, self.state()
        crowd = pool.pool_slots // pool.capacity(self.longest) + 1
        more = [Ask(self.new_sequence(self.longest), self.longest, True, self.longest) for _ in range(crowd)]
        asks = [Ask(s, min(self.written[s.id] + 1, s.tokens)) for s in self.running if not s.decoding]
        for decodes in (False, True):
            got = pool.acquire([*asks, *more], decodes=decodes)
            promise(
                isinstance(got, Short),
                f"{pool.name}: overbooked: {crowd} requests of {self.longest} tokens were granted in a pool of "
                f"{pool.pool_slots} slots",
            )
            same(self.state(), before, f"{pool.name}: acquire is not atomic: {got} changed something")
        for ask in more:
            owned = pool.owned(ask.sequence)
            promise(not owned, f"{pool.name}: acquire is not atomic: {owned} slots are owned after a failed admission")
        pool.audit(self.live)
        self._ids = known

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        before = self.allocator.usage(), [self.allocator.owned(ask.sequence) for ask in asks]
        got = super().acquire(asks, decodes=decodes)
        if isinstance(got, Short):
            after = self.allocator.usage(), [self.allocator.owned(ask.sequence) for ask in asks]
            promise(after == before, f"{self.allocator.name}: acquire is not atomic: {got} changed {before} to {after}")
        return got


def acquire_is_atomic(make: MakeAllocator, longest: int) -> None:
    """A Short changes nothing: not what can be read, and not what comes later."""
    for plain, tried in side_by_side(Walk, _Failing, make, longest):
        name = plain.allocator.name
        same(tried.state(), plain.state(), f"{name}: acquire is not atomic: it went on differently after a Short")


class _Growing(Walk):
    """Watches how what each decoding request owns grows, step by step."""

    def settle(self, chunks: list[Chunk], *, stalled: bool = False) -> bool:
        pool = self.allocator
        decoding = [s for s in self.running if s.decoding and s.id in self.owned_before]
        came_free = super().settle(chunks, stalled=stalled)
        for sequence in decoding if pool.keeps and not stalled else ():
            self._follow(sequence, self.owned_before[sequence.id], pool.owned(sequence))
        return came_free

    owned_before: dict[int, int]

    def step(self) -> None:
        self.owned_before = {s.id: self.allocator.owned(s) for s in self.running}
        super().step()

    def _follow(self, sequence: Sequence, before: int, now: int) -> None:
        pool, asked_at = self.allocator, self.written[sequence.id] - 1
        told = f"{pool.name}: growth breaks the rule: a request with {asked_at} written tokens"
        promise(now >= before, f"{told} shrinks from {before} to {now} slots by decoding")
        for end in range(before + 1, min(now, self.longest) + 1):
            promise(
                pool.last_growth(end) == asked_at and pool.capacity(end) == now,
                f"{told} grows from {before} to {now} slots, but for token {end} last_growth says "
                f"{pool.last_growth(end)} and capacity {pool.capacity(end)}",
            )
        for end in range(now + 1, self.longest + 1):
            promise(
                pool.last_growth(end) > asked_at,
                f"{told} still owns {now} slots, but last_growth({end}) is {pool.last_growth(end)}",
            )


def growth_follows_the_rule(make: MakeAllocator, longest: int) -> None:
    """A decoding request gets capacity(n) slots exactly when it has written last_growth(n) tokens."""
    for _ in walk(_Growing, make, longest):
        pass

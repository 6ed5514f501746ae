"""What a leap promises: it is its steps, told in advance and then done at once."""

from kvsim.memory.interface import Leap
from kvsim.step import Grant
from kvsim.testing.allocators.walk import MakeAllocator, Walk, side_by_side, walk
from kvsim.testing.promises import promise, same

WEIGHTS = ((1, 0), (7, 0), (0, 1), (5, 3), (10**12 + 7, 10**9 + 1))
"""(a, b) of the weighted sums."""


class _Stepping(Walk):
    """Does each leap step by step."""

    def apply(self, leap: Leap, steps: int, limit: int) -> None:
        for step in range(steps):
            self.one_step(step, steps)

    def one_step(self, step: int, steps: int) -> None:
        got = self.acquire((), decodes=True)
        promise(
            isinstance(got, Grant),
            f"{self.allocator.name}: a leap is longer than what the pool can serve: step {step + 1} of {steps} "
            f"gets {got}",
        )
        costs = isinstance(got, Grant) and (got.copied_slots or got.mapped_pages)
        promise(not costs, f"{self.allocator.name}: step {step + 1} of a leap of {steps} has a cost of its own: {got}")
        self.settle([])


class _Counting(_Stepping):
    """Takes every leap to its end, and one step beyond it."""

    def apply(self, leap: Leap, steps: int, limit: int) -> None:
        pool = self.allocator
        told = f"{pool.name}: leap({limit}) takes {leap.steps} steps"
        promise(0 <= leap.steps <= limit, f"{told}: more than the limit")
        for shorter in {1, 1 + leap.steps // 2, leap.steps}:
            there = pool.leap(shorter).steps
            promise(there == shorter, f"{told}, leap({shorter}) {there}: the limit must be all that differs")
        super().apply(leap, leap.steps, limit)
        if leap.steps < limit:
            before = pool.usage()
            got = self.acquire((), decodes=True)
            after = pool.usage()
            same_room = (before.free, before.cached, before.rounding) == (after.free, after.cached, after.rounding)
            promise(
                not isinstance(got, Grant) or not same_room or bool(got.copied_slots),
                f"{told}, but one more can be served and nobody needs a slot for it",
            )
            if isinstance(got, Grant):
                self.settle([])


def a_leap_takes_the_steps_that_the_pool_serves(make: MakeAllocator, longest: int) -> None:
    """Each of its steps is granted; one that ends before its limit ends where the pool is short or someone grows."""
    for _ in walk(_Counting, make, longest):
        pass


def a_leap_equals_its_steps(make: MakeAllocator, longest: int) -> None:
    """apply(k) is k times acquire and settle, to the bit, now and in all that comes later."""
    for leaping, stepping in side_by_side(Walk, _Stepping, make, longest):
        name = leaping.allocator.name
        same(leaping.state(), stepping.state(), f"{name}: leap.apply differs from single steps")
        leaping.allocator.audit(leaping.live)


class _Measuring(_Stepping):
    """Asks a leap for its levels, then measures them."""

    def apply(self, leap: Leap, steps: int, limit: int) -> None:
        pool, steps = self.allocator, leap.steps
        told = [leap.use_at(step) for step in range(steps)]
        spans = {(0, steps), (0, 1), (steps - 1, steps), (steps // 3, steps // 3 + 1 + steps // 2)}
        spans = {(first, min(last, steps)) for first, last in spans}
        peaks = {span: leap.unwritten_peak(*span) for span in spans}
        counts = {1, steps, 1 + steps // 2, max(1, steps - 1)}
        sums = {
            (verb, n, a, b): getattr(leap, f"{verb}_sum")(n, a, b)
            for verb in ("unwritten", "cached")
            for n in counts
            for a, b in WEIGHTS
        }
        bound = leap.bound
        uses = []
        for step in range(steps):
            got = self.acquire((), decodes=True)
            promise(isinstance(got, Grant), f"{pool.name}: a leap is longer than what the pool can serve: {got}")
            use = pool.usage()
            promise(use == told[step], f"{pool.name}: use_at({step}) is {told[step]}, but the step makes it {use}")
            uses.append(use)
            self.settle([])
        for (verb, n, a, b), total in sums.items():
            right = sum((a + b * step) * getattr(use, verb) for step, use in enumerate(uses[:n]))
            promise(
                total == right,
                f"{pool.name}: {verb}_sum({n}, {a}, {b}) is {total}, over single steps it is {right}",
            )
        found = [use.unwritten for use in uses]
        for (first, last), peak in peaks.items():
            right = max(found[first:last])
            promise(
                peak == right,
                f"{pool.name}: unwritten_peak({first}, {last}) is {peak}, over single steps it is {right}",
            )
        promise(max(found) <= bound, f"{pool.name}: bound is {bound}, but {max(found)} slots are unwritten")


def a_leap_knows_the_levels_of_its_steps(make: MakeAllocator, longest: int) -> None:
    """use_at, unwritten_sum, unwritten_peak, cached_sum and bound are what single steps measure."""
    for _ in walk(_Measuring, make, longest):
        pass

"""Phases of short blocks: one number per phase, and tables of what each phase leaves unwritten."""

from functools import lru_cache
from itertools import accumulate
from operator import mul

from kvsim.memory.phases.interface import Phases


class PhaseTable(Phases):
    """A count for every phase. An answer takes O(size), in loops that run in C."""

    __slots__ = ("_at",)

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._at = [0] * size

    def add(self, phase: int) -> None:
        self._at[phase] += 1
        self.count += 1

    def remove(self, phase: int) -> None:
        self._at[phase] -= 1
        self.count -= 1

    def recount(self) -> int:
        return sum(self._at)

    def crossing(self, clock: int) -> int:
        return self._at[clock % self.size]

    def _from(self, phase: int) -> list[int]:
        return self._at[phase:] + self._at[:phase]

    def blocks(self, clock: int, steps: int) -> int:
        size, at = self.size, self._at
        rounds, rest = divmod(steps, size)
        blocks = rounds * self.count
        if rest:
            first = clock % size
            blocks += sum(at[first : first + rest])
            wrapped = first + rest - size
            if wrapped > 0:
                blocks += sum(at[:wrapped])
        return blocks

    def served(self, clock: int, limit: int, blocks: int) -> int:
        size, count = self.size, self.count
        if -(-limit // size) * count <= blocks:
            return limit
        rounds, rest = divmod(blocks, count)
        steps = rounds * size
        for crossing in self._from(clock % size):
            rest -= crossing
            if rest < 0:
                break
            steps += 1
        return min(limit, steps)

    def quiet(self, clock: int, limit: int) -> int:
        if not self.count:
            return limit
        steps = 0
        for crossing in self._from(clock % self.size):
            if crossing:
                break
            steps += 1
        return min(limit, steps)

    def unwritten_sum(self, clock: int, steps: int, a: int, b: int) -> int:
        # Slack repeats with the block size; with the clock's own phase as origin the sum is a difference of two
        # prefix sums, each a whole number of rounds and a row of a table.
        first = clock % self.size
        a -= b * first
        return self._prefix(first + steps, a, b) - self._prefix(first, a, b)

    def _prefix(self, x: int, a: int, b: int) -> int:
        """Sum over t in [0, x) of (a + b t) x slack at phase t."""
        size, count, at = self.size, self.count, self._at
        plain, weighted = _slack_tables(size)
        rounds, rest = divmod(x, size)
        per_round = count * (size * (size + 1) // 2)
        total = 0
        if rounds:
            total += a * rounds * per_round
            if b:
                whole = sum(map(mul, at, weighted[size]))
                total += b * (size * per_round * (rounds * (rounds - 1) // 2) + rounds * whole)
        if rest:
            part = sum(map(mul, at, plain[rest]))
            total += (a + b * rounds * size) * part
            if b:
                total += b * sum(map(mul, at, weighted[rest]))
        return total

    def unwritten_peak(self, clock: int, steps: int) -> int:
        size, count = self.size, self.count
        start = clock % size
        slack: int = sum(map(mul, self._at, _slack_rows(size)[start]))
        # From one step to the next every member writes a token, and those that cross get a block.
        crossings = self._from(start)[1 : min(steps, size)]
        return slack + max(accumulate((size * n - count for n in crossings), initial=0))


@lru_cache(maxsize=8)
def _slack_rows(size: int) -> list[list[int]]:
    """Row t, column p: slots owned and not written during a step at phase t by a sequence that crosses at phase p."""
    return [[size - (t - p) % size for p in range(size)] for t in range(size)]


@lru_cache(maxsize=8)
def _slack_tables(size: int) -> tuple[list[list[int]], list[list[int]]]:
    """Prefix sums over t of the slack rows, plain and weighted by t: row x sums t in [0, x)."""
    plain, weighted = [[0] * size], [[0] * size]
    for t, row in enumerate(_slack_rows(size)):
        plain.append([s + r for s, r in zip(plain[-1], row, strict=True)])
        weighted.append([s + t * r for s, r in zip(weighted[-1], row, strict=True)])
    return plain, weighted

"""Phases of long blocks: a count per phase that occurs, and the sawtooth of each phase summed in closed form."""

from kvsim.memory.phases.interface import Phases


class PhaseCounts(Phases):
    """Counts of the phases that occur. An answer takes O(phases that occur), at most one per sequence."""

    __slots__ = ("_at",)

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._at: dict[int, int] = {}

    def add(self, phase: int) -> None:
        self._at[phase] = self._at.get(phase, 0) + 1
        self.count += 1

    def remove(self, phase: int) -> None:
        left = self._at[phase] - 1
        if left:
            self._at[phase] = left
        else:
            del self._at[phase]
        self.count -= 1

    def recount(self) -> int:
        return sum(self._at.values())

    def crossing(self, clock: int) -> int:
        return self._at.get(clock % self.size, 0)

    def _ahead(self, clock: int) -> list[tuple[int, int]]:
        """(steps from `clock` to the next crossing, sequences), soonest first."""
        size = self.size
        return sorted(((phase - clock) % size, number) for phase, number in self._at.items())

    def blocks(self, clock: int, steps: int) -> int:
        size = self.size
        rounds, rest = divmod(steps, size)
        blocks = rounds * self.count
        if rest:
            blocks += sum(number for phase, number in self._at.items() if (phase - clock) % size < rest)
        return blocks

    def served(self, clock: int, limit: int, blocks: int) -> int:
        size, count = self.size, self.count
        if -(-limit // size) * count <= blocks:
            return limit
        rounds, rest = divmod(blocks, count)
        for ahead, number in self._ahead(clock):
            rest -= number
            if rest < 0:
                return min(limit, rounds * size + ahead)
        raise AssertionError("what is left of a round is less than all sequences together take")

    def quiet(self, clock: int, limit: int) -> int:
        size = self.size
        return min((limit, *((phase - clock) % size for phase in self._at)))

    def unwritten_sum(self, clock: int, steps: int, a: int, b: int) -> int:
        # One that has used d slots of its block at step 0 leaves size - (d + j) + size x wraps(d + j) at step j, with
        # wraps(x) = floor(x / size). The first part is a line over all sequences together. The second is added up by
        # wrap: the k-th holds from step k x size - d on, so that it counts as often as there are steps after it. Sums
        # of (a + b j) over steps below x are kept twice as large, as whole numbers: x (2 a + b (x - 1)).
        size = self.size
        twice_all = steps * (2 * a + b * (steps - 1))
        squares = (steps - 1) * steps * (2 * steps - 1) // 6
        weighted = a * (steps * (steps - 1) // 2) + b * squares  # sum of (a + b j) j
        line, twice_wrapped = 0, 0
        for phase, number in self._at.items():
            used = (clock - phase) % size
            line += number * (size - used)
            wraps = (used + steps - 1) // size
            if wraps > 0:
                # Over k = 1..wraps, x = k size - used: the sums of x and of x squared.
                ks = wraps * (wraps + 1) // 2
                kks = wraps * (wraps + 1) * (2 * wraps + 1) // 6
                xs = size * ks - used * wraps
                xxs = size * size * kks - 2 * size * used * ks + used * used * wraps
                twice_wrapped += number * (wraps * twice_all - (2 * a - b) * xs - b * xxs)
        return (line * twice_all + size * twice_wrapped) // 2 - self.count * weighted

    def unwritten_peak(self, clock: int, steps: int) -> int:
        size, count = self.size, self.count
        level = top = sum(number * (size - (clock - phase) % size) for phase, number in self._at.items())
        # The level falls by one slot per sequence and step and rises where somebody crosses: the top is at the first
        # step or at a crossing, and it repeats with the block size.
        last = min(steps, size)
        for ahead, number in self._ahead(clock):
            if ahead >= last:
                break
            if ahead:
                level += size * number
                top = max(top, level - count * ahead)
        return top

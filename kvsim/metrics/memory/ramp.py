"""The step times of a leap, and the sums over them in closed form."""

from math import isqrt
from typing import NamedTuple


class Ramp(NamedTuple):
    """Step j (from 0) of a leap lasts `first_ps + rise_ps x j + bend_ps x j (j - 1) / 2`.

    The context grows by the same amount each step; where it is computed again as a whole, so does the growth of the
    work, and `bend_ps` is not 0. Written with binomials, C(j, 1) and C(j, 2), the sums over steps are binomials too.
    """

    first_ps: int
    rise_ps: int
    bend_ps: int = 0

    def until(self, steps: int) -> int:
        """Time that the first `steps` steps take."""
        pairs = steps * (steps - 1) // 2
        time_ps = self.first_ps * steps + self.rise_ps * pairs
        return time_ps + self.bend_ps * (pairs * (steps - 2) // 3) if self.bend_ps else time_ps

    def step(self, step: int) -> int:
        """Time of step number `step`."""
        return self.first_ps + self.rise_ps * step + self.bend_ps * (step * (step - 1) // 2)

    def after(self, steps: int) -> "Ramp":
        """The ramp of what follows the first `steps` steps."""
        return Ramp(self.step(steps), self.rise_ps + self.bend_ps * steps, self.bend_ps)

    def weighted(self, level: int, rise: int, low: int, high: int) -> int:
        """Sum over steps low..high-1 of their time x a level that is `level` in step 0 and rises by `rise` each."""
        if low:
            return self.weighted(level, rise, 0, high) - self.weighted(level, rise, 0, low)
        # j C(j, 1) = 2 C(j, 2) + C(j, 1) and j C(j, 2) = 3 C(j, 3) + 2 C(j, 2); C(j, m) over j < n adds to C(n, m + 1).
        first, slope, bend = self
        pairs = high * (high - 1) // 2
        triples = pairs * (high - 2) // 3
        total = first * level * high + (first * rise + slope * level + slope * rise) * pairs
        total += 2 * slope * rise * triples
        if bend:
            total += bend * (level + 2 * rise) * triples + 3 * bend * rise * (triples * (high - 3) // 4)
        return total

    def done_by(self, elapsed_ps: int, limit: int) -> int:
        """How many of at most `limit` steps are over when `elapsed_ps` have passed."""
        first, rise, bend = self
        if not bend:
            if not rise:
                return max(0, min(limit, elapsed_ps // first))
            # The larger root of rise x steps ** 2 + (2 first - rise) x steps = 2 elapsed, rounded down.
            linear = 2 * first - rise
            return max(0, min(limit, (isqrt(linear * linear + 8 * rise * max(0, elapsed_ps)) - linear) // (2 * rise)))
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            if self.until(middle) <= elapsed_ps:
                low = middle
            else:
                high = middle - 1
        return low

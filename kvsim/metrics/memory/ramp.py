"""The step times of a leap, and the sums over them in closed form."""

from typing import NamedTuple


class Ramp(NamedTuple):
    """Step j (from 0) of a leap lasts `first_ps + rise_ps x j`: the context grows by the same amount each step."""

    first_ps: int
    rise_ps: int

    def until(self, steps: int) -> int:
        """Time that the first `steps` steps take."""
        return self.first_ps * steps + self.rise_ps * (steps * (steps - 1) // 2)

    def weighted(self, level: int, rise: int, low: int, high: int) -> int:
        """Sum over steps low..high-1 of their time x a level that is `level` in step 0 and rises by `rise` each."""
        ones = high - low
        firsts = (high * (high - 1) - low * (low - 1)) // 2
        squares = ((high - 1) * high * (2 * high - 1) - (low - 1) * low * (2 * low - 1)) // 6
        return (
            self.first_ps * level * ones
            + (self.first_ps * rise + self.rise_ps * level) * firsts
            + self.rise_ps * rise * squares
        )

    def done_by(self, elapsed_ps: int, limit: int) -> int:
        """How many of at most `limit` steps are over when `elapsed_ps` have passed."""
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            if self.until(middle) <= elapsed_ps:
                low = middle
            else:
                high = middle - 1
        return low

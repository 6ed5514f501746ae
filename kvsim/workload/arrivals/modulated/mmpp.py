"""Arrivals in states: the Markov-modulated Poisson process, and its simplest kind, on and off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from kvsim.workload.arguments import check_not_negative, check_positive, check_share
from kvsim.workload.arrivals.interface import CHUNK
from kvsim.workload.arrivals.modulated.interface import Modulated, Piece

if TYPE_CHECKING:
    from numpy.random import Generator

Scaling = Literal["time", "count"]

_ROUNDED = 1e-3
"""How far probabilities that were printed with few digits may be from adding up to 1."""


@dataclass(frozen=True, kw_only=True)
class Mmpp(Modulated):
    """A Markov-modulated Poisson process of k states.

    In state i arrivals come at `rates[i]` per second for an exponential time of mean `sojourns_s[i]`; then state j
    follows with probability `moves[i][j]` (absent: each other state is as likely). It starts in its stationary state.
    The mean of all is stretched to `rate`: by `scale` "time" bursts keep their number of arrivals and become shorter,
    by "count" they keep their duration. ValueError on parameters that make no process.
    """

    process: ClassVar[str] = "mmpp"
    rates: Sequence[float]
    sojourns_s: Sequence[float]
    moves: Sequence[Sequence[float]] | None = None
    scale: Scaling = "time"

    def _check(self) -> None:
        k = len(self.rates)
        if k < 2 or len(self.sojourns_s) != k:
            given = f"{k} rates and {len(self.sojourns_s)} sojourns"
            raise ValueError(f"rates: must be two or more, and as many as sojourns; got {given}")
        for rate in self.rates:
            check_not_negative("rates", rate)
        for sojourn_s in self.sojourns_s:
            check_positive("sojourns_s", sojourn_s)
        if self.scale not in ("time", "count"):
            raise ValueError(f"scale: must be time or count; got {self.scale!r}")
        if self.moves is not None:
            _check_moves(self.moves, k)
        if not self.own_rate > 0:
            raise ValueError(f"rates: at least one must be above 0; got {list(self.rates)}")

    @cached_property
    def _moves(self) -> list[list[float]]:
        k = len(self.rates)
        if self.moves is None:
            return [[0.0 if i == j else 1 / (k - 1) for j in range(k)] for i in range(k)]
        return [[share / sum(row) for share in row] for row in self.moves]

    @cached_property
    def presence(self) -> list[float]:
        """The share of time spent in each state."""
        import numpy as np

        # The visits of the chain of moves, each as long as its state lasts.
        k = len(self.rates)
        flows = np.array(self._moves).T - np.eye(k)
        flows[-1] = 1
        visits = np.linalg.solve(flows, [0] * (k - 1) + [1])
        times = visits * np.array(self.sojourns_s)
        return [float(share) for share in times / times.sum()]

    @cached_property
    def own_rate(self) -> float:
        """The mean rate as the states are written."""
        return sum(share * rate for share, rate in zip(self.presence, self.rates, strict=True))

    def course(self, generator: "Generator") -> Iterator[Piece]:
        """One piece for each visit of a state."""
        factor = self.rate / self.own_rate
        slower = factor if self.scale == "time" else 1.0
        rates = [rate * factor for rate in self.rates]
        sojourns_s = [sojourn_s / slower for sojourn_s in self.sojourns_s]
        state = int(generator.choice(len(rates), p=self.presence))
        while True:
            durations, draws = generator.exponential(1, CHUNK), generator.random(CHUNK)
            for duration, draw in zip(durations.tolist(), draws.tolist(), strict=True):
                # A duration of exactly 0 is possible and no piece.
                if duration:
                    yield Piece(duration * sojourns_s[state], rates[state], rates[state])
                state = _drawn(self._moves[state], draw)


def _check_moves(moves: Sequence[Sequence[float]], k: int) -> None:
    if len(moves) != k or any(len(row) != k for row in moves):
        raise ValueError(f"moves: must be {k} rows of {k} probabilities, one for each state")
    for i, row in enumerate(moves):
        for share in row:
            check_share("moves", share)
        if row[i] or abs(sum(row) - 1) > _ROUNDED:
            raise ValueError(f"moves: row {i + 1} must add up to 1 without its own state; got {list(row)}")
    reached = {0}
    for _ in range(k):
        reached |= {j for i in reached for j in range(k) if moves[i][j]}
    back = {0}
    for _ in range(k):
        back |= {i for i in range(k) if any(moves[i][j] for j in back)}
    if len(reached) < k or len(back) < k:
        raise ValueError("moves: every state must lead to every other, perhaps over a third")


def _drawn(shares: list[float], draw: float) -> int:
    for index, share in enumerate(shares):
        draw -= share
        if draw < 0:
            return index
    return max(index for index, share in enumerate(shares) if share)

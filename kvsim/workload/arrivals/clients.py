"""Arrivals of many clients, each with a process of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from typing import TYPE_CHECKING, ClassVar, Literal

from kvsim.workload.arguments import check_not_negative, check_whole
from kvsim.workload.arrivals.interface import CHUNK, Described, check_rate
from kvsim.workload.arrivals.renewal.gamma import Gamma
from kvsim.workload.arrivals.renewal.interface import Renewal
from kvsim.workload.arrivals.renewal.poisson import Poisson
from kvsim.workload.arrivals.renewal.weibull import Weibull

if TYPE_CHECKING:
    from numpy.random import Generator

MOST_CLIENTS = 100_000


@dataclass(frozen=True, kw_only=True)
class Clients(Described):
    """`clients` clients, of which the k-th sends a share proportional to k**-`theta` (Zipf's law) of `rate`.

    Each is a renewal process: `each` poisson, gamma or weibull, of coefficient of variation `cv`. A client's draws are
    its own: one client more leaves the gaps of the others as they are, up to their share. ValueError on a number that
    cannot be.
    """

    process: ClassVar[str] = "clients"
    rate: float
    clients: int
    theta: float = 1.0
    each: Literal["poisson", "gamma", "weibull"] = "poisson"
    cv: float | None = None

    def __post_init__(self) -> None:
        check_rate(self.rate)
        check_whole("clients", self.clients, 1, MOST_CLIENTS)
        check_not_negative("theta", self.theta)
        if (self.cv is None) != (self.each == "poisson"):
            raise ValueError(f"cv: {'needed by' if self.cv is None else 'means nothing to'} {self.each} clients")
        self._client(min(self.shares))

    @property
    def shares(self) -> list[float]:
        """The share of the arrivals that each client sends, the largest first."""
        weights = [k**-self.theta for k in range(1, self.clients + 1)]
        total = sum(weights)
        return [weight / total for weight in weights]

    def arrivals_ps(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[int]:
        """Arrival times of all clients in picoseconds, never decreasing, without end."""
        shares = self.shares
        largest = shares[0]
        own = generator.spawn(self.clients)
        # A client that sends little draws little at a time, so that ten thousand of them stay small.
        arrivals = (
            self._client(share).arrivals_ps(draws, max(1, round(chunk * share / largest)))
            for share, draws in zip(shares, own, strict=True)
        )
        return merge(*arrivals)

    def _client(self, share: float) -> Renewal:
        rate = self.rate * share
        if self.cv is None:
            return Poisson(rate=rate)
        return (Gamma if self.each == "gamma" else Weibull)(rate=rate, cv=self.cv)

"""What requests carry beside their lengths: tenant, priority, class of service, and the client's limit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvsim.workload.arguments import check_positive
from kvsim.workload.arrivals import CHUNK
from kvsim.workload.clients.limits import MaxTokens

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass(frozen=True, kw_only=True)
class Tags:
    """One kind of client: its share among the others is its `weight` over the sum of theirs.

    `max_tokens` None: as all others. ValueError on a weight that is not above 0 and a priority beyond 64 bits.
    """

    weight: float = 1.0
    tenant: str = ""
    priority: int = 0
    slo_class: str = ""
    max_tokens: MaxTokens | None = None

    def __post_init__(self) -> None:
        check_positive("weight", self.weight)
        check_priority(self.priority)

    def describe(self) -> dict[str, Any]:
        """The tags, as plain values."""
        told = {name: getattr(self, name) for name in ("weight", "tenant", "priority", "slo_class")}
        return told | ({} if self.max_tokens is None else self.max_tokens.describe())


class TagMix:
    """Several kinds of client; which one a request (or a session) is from is drawn. ValueError where there is none."""

    def __init__(self, kinds: Sequence[Tags]) -> None:
        if not kinds:
            raise ValueError("tags: must be at least one kind of client; got none")
        self.kinds = tuple(kinds)

    def draws(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[int]:
        """Numbers of kinds, without end; the same whatever the `chunk`."""
        import numpy as np

        ends = np.cumsum([float(kind.weight) for kind in self.kinds])
        ends /= ends[-1]
        while True:
            yield from np.searchsorted(ends, generator.random(chunk), side="right").tolist()


def check_priority(priority: object) -> None:
    """A whole number of 64 bits; ValueError otherwise."""
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise ValueError(f"priority: must be a whole number; got {priority!r}")
    if not -(1 << 63) <= priority < 1 << 63:
        raise ValueError(f"priority: must fit 64 bits; got {priority!r}")

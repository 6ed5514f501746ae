"""A population of clients in a few numbers, each weighted by how many requests its clients send."""

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from kvsim.workload.readers.clients.servegen import Client, Population
from kvsim.workload.statistics.lengths import Spread, weighted_spread


@dataclass(frozen=True)
class PopulationStatistics:
    """`rate_per_s` is the mean over the span of all clients together; `cv` of gaps is the median of windows by rate.

    `fields` are the laws of each field over all clients and windows; where a dictionary has no weight it is left out.
    """

    trace: str
    clients: int
    incomplete: int
    span_s: float
    rate_per_s: float
    cv: float | None
    top_share: float
    fields: dict[str, Spread]

    def record(self) -> dict[str, Any]:
        """Plain values ready for JSON."""
        return asdict(self)


class Laws:
    """Laws by field, added up over clients and windows by the requests they stand for."""

    def __init__(self) -> None:
        self._weights: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))

    def add(self, client: Client) -> None:
        """Add a client's laws, each by the requests of the arrival windows that it covers. Mutates."""
        starts = sorted(client.laws)
        requests = dict.fromkeys(starts, 0.0)
        for start_s, rate_per_s, length_s in windows(client):
            covering = max((start for start in starts if start <= start_s), default=None)
            if covering is not None:
                requests[covering] += rate_per_s * length_s
        for start in starts:
            for name, law in client.laws[start].items():
                total = sum(law.weights)
                if total > 0 and requests[start] > 0:
                    scale = requests[start] / total
                    field = self._weights[name]
                    for value, weight in zip(law.values, law.weights, strict=True):
                        field[value] += weight * scale

    def spreads(self) -> dict[str, Spread]:
        """By field, those that have any weight."""
        import numpy as np

        found = {}
        for name, field in self._weights.items():
            one = weighted_spread(np.array(list(field)), np.array(list(field.values())))
            if one is not None:
                found[name] = one
        return found

    def law(self, name: str) -> dict[float, float]:
        """Weights by value; an empty one where no client has the field."""
        return dict(self._weights[name]) if name in self._weights else {}


def windows(client: Client) -> list[tuple[float, float, float]]:
    """(start, rate, length) of the arrival windows; the last is as long as the one before."""
    found = client.windows
    lengths = [later.start_s - window.start_s for window, later in zip(found, found[1:], strict=False)]
    lengths.append(lengths[-1] if lengths else 0.0)
    return [
        (window.start_s, window.rate_per_s, max(0.0, length)) for window, length in zip(found, lengths, strict=True)
    ]


def inspect_population(population: Population) -> tuple[PopulationStatistics, Laws]:
    """Read the clients one by one; holds their laws added up."""
    import numpy as np

    laws, span_s = Laws(), 0.0
    sent: list[float] = []
    cvs: list[float] = []
    rates: list[float] = []
    for client in population:
        laws.add(client)
        spans = windows(client)
        sent.append(sum(rate * length for _, rate, length in spans))
        span_s = max(span_s, spans[-1][0] + spans[-1][2])
        for window in client.windows:
            if window.rate_per_s > 0 and window.cv > 0:
                cvs.append(window.cv)
                rates.append(window.rate_per_s)
    total = sum(sent)
    cv = weighted_spread(np.array(cvs), np.array(rates)) if cvs else None
    return (
        PopulationStatistics(
            trace=population.name,
            clients=population.clients,
            incomplete=population.incomplete,
            span_s=span_s,
            rate_per_s=total / span_s if span_s else 0.0,
            cv=None if cv is None else cv.p50,
            top_share=max(sent) / total if total else 0.0,
            fields=laws.spreads(),
        ),
        laws,
    )

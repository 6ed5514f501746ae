"""One form for what was measured on a server and for what was simulated: requests, a time series, latencies, counts.

Whatever a source does not tell is None, or NaN in a column. All times are seconds, shares fractions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from kvsim.errors import InputError

Column = npt.NDArray[np.float64]
PERCENTILES = (50, 90, 99)
LATENCIES = ("ttft_s", "tpot_s", "e2e_s")
GAUGES = ("running", "waiting", "kv_share")
"""What the server is like at a moment; `kv_share` is the engine's own gauge: blocks that live requests hold."""
RATES = ("prompt_tokens_per_s", "output_tokens_per_s")
"""Since the moment before."""
SERIES = (*GAUGES, *RATES, "hit_rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests that finished, in order of arrival; NaN where the source does not say."""

    prompt_tokens: Column
    output_tokens: Column
    arrival_s: Column
    ttft_s: Column
    e2e_s: Column

    def __len__(self) -> int:
        return len(self.prompt_tokens)

    @property
    def tpot_s(self) -> Column:
        """Time per output token after the first; NaN for a request of one token."""
        gaps = self.output_tokens - 1
        return np.where(gaps > 0, (self.e2e_s - self.ttft_s) / np.maximum(gaps, 1), np.nan)

    def latency(self, name: str) -> Column:
        """The column of that name of `LATENCIES`."""
        column: Column = getattr(self, name)
        return column


@dataclass(frozen=True, slots=True)
class Series:
    """Gauges and rates at moments since the run began; `columns` has those of `SERIES` that the source tells."""

    time_s: Column
    columns: Mapping[str, Column]

    def get(self, name: str) -> Column | None:
        """The column, None where the source does not tell it."""
        return self.columns.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What is known of one run. `latencies`: statistics by latency ("mean", "p50", ...), where only they are known."""

    source: str
    requests: Requests | None = None
    series: Series | None = None
    latencies: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    preemptions: int | None = None
    hit_rate: float | None = None
    output_tokens_per_s: float | None = None
    notes: tuple[str, ...] = ()

    def statistics(self, name: str) -> Mapping[str, float]:
        """Mean and percentiles of a latency; empty where nothing is known of it."""
        if self.requests is not None:
            values = self.requests.latency(name)
            values = values[~np.isnan(values)]
            if len(values):
                found = {"mean": float(values.mean())}
                return found | {f"p{p}": float(np.percentile(values, p)) for p in PERCENTILES}
        return self.latencies.get(name, {})

    def mean(self, name: str, queueing: bool = False, at: npt.NDArray[np.bool_] | None = None) -> float | None:
        """Mean of a gauge over the moments of the series, or over those at which somebody waits.

        `at` says for each moment whether it counts; None: all do.
        """
        values = None if self.series is None else self.series.get(name)
        if self.series is None or values is None:
            return None
        waits = self.series.get("waiting") if queueing else None
        if queueing and waits is None:
            return None
        chosen = np.ones(len(values), dtype=bool) if waits is None else waits > 0
        if at is not None and len(at) == len(values):
            chosen &= at
        values = values[chosen]
        values = values[~np.isnan(values)]
        return float(values.mean()) if len(values) else None


def together(parts: list[Measured]) -> Measured:
    """One run told by several files. Raises InputError where two tell the same."""
    first, *others = parts
    for part in others:
        for name, what in (("requests", "requests"), ("series", "a time series")):
            if getattr(first, name) is not None and getattr(part, name) is not None:
                raise InputError(f"{part.source}: tells {what}, as {first.source} does; give one of them")
        first = replace(
            first,
            source=f"{first.source}, {part.source}",
            requests=first.requests if part.requests is None else part.requests,
            series=first.series if part.series is None else part.series,
            latencies={**part.latencies, **first.latencies},
            preemptions=part.preemptions if first.preemptions is None else first.preemptions,
            hit_rate=part.hit_rate if first.hit_rate is None else first.hit_rate,
            output_tokens_per_s=(
                part.output_tokens_per_s if first.output_tokens_per_s is None else first.output_tokens_per_s
            ),
            notes=first.notes + part.notes,
        )
    return first

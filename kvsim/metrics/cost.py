"""What a run costs: its GPUs by the hour, and that over what they put out."""

from dataclasses import dataclass
from typing import Any

from kvsim.catalog.gpus import Gpu

_SECONDS_PER_HOUR = 3600
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for an hour of one GPU, as a range; `source` says who says so."""

    low_usd: float
    high_usd: float
    source: str

    @property
    def usd(self) -> float:
        """The middle of the range, by which costs are reckoned: they scale with the price."""
        return (self.low_usd + self.high_usd) / 2

    def __str__(self) -> str:
        if self.low_usd == self.high_usd:
            return f"{self.usd:.2f} US dollars a GPU-hour ({self.source})"
        span = f"the middle of {self.low_usd:.2f} to {self.high_usd:.2f}"
        return f"{self.usd:.2f} US dollars a GPU-hour, {span} ({self.source})"


def catalogue_price(card: Gpu) -> Price | None:
    """The price that the catalogue knows of a GPU; None where it knows none."""
    low = card.usd_per_hour_low
    if low is None:
        return None
    return Price(low, card.usd_per_hour_high or low, f"catalogue: {card.source_price}")


def cost(
    price: Price | None, gpus: float, *, output_tokens_per_s: float | None, requests_per_s: float | None
) -> dict[str, Any]:
    """The `cost` among the metrics of a run: of so many GPUs on average, at the middle of the price's range.

    US dollars per hour, per million output tokens and per million finished requests, at the rates of the measured
    window; None where no price is known, or nothing was put out.
    """
    per_hour = None if price is None else price.usd * gpus
    return {
        "gpus": gpus,
        "usd_per_gpu_hour_low": None if price is None else price.low_usd,
        "usd_per_gpu_hour_high": None if price is None else price.high_usd,
        "usd_per_hour": per_hour,
        "usd_per_million_output_tokens": per_million(per_hour, output_tokens_per_s),
        "usd_per_million_requests": per_million(per_hour, requests_per_s),
    }


def per_million(usd_per_hour: float | None, rate_per_s: float | None) -> float | None:
    """US dollars for a million of what comes at so many a second; None where no price is known, or nothing comes."""
    if usd_per_hour is None or not rate_per_s:
        return None
    return usd_per_hour / _SECONDS_PER_HOUR / rate_per_s * _MILLION

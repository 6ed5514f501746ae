"""The share of occupied memory that does nobody any good."""

from collections.abc import Mapping
from typing import Any


def waste_share(metrics: Mapping[str, Any]) -> float | None:
    """Share of the slots that cannot be had and hold no valid KV of a live request: 1 - used / (pool - free - cached).

    Taken over the time-weighted means of the measured window, so `reserved`, `internal`, `dead`, `moving` and
    `external` all count as waste; what is `cached` can be had at once. None where the pool is empty throughout, or
    where there is none.
    """
    share = metrics["mean_share"]
    if share is None or share["free"] is None:
        return None
    taken = sum(amount for name, amount in share.items() if name not in ("free", "cached"))
    return float(1.0 - share["used"] / taken) if taken else None

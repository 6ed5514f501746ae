"""What prefix caching adds to the `metrics` of the JSON contract; every key is there, None where nothing is cached."""

from dataclasses import dataclass
from typing import Any, Protocol

from kvsim.content import LAYERS
from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.requests import Marks
from kvsim.request import PS_PER_S


class Reuse(Protocol):
    """How far apart uses are, and how long things stay; see `Residency`."""

    reuse_distance: DurationHistogram
    reuse_gap: DurationHistogram
    idle: DurationHistogram
    lifetime: DurationHistogram


@dataclass(slots=True)
class Told:
    """What stays of the record of residency when the run is over: a few KB, whatever was cached."""

    reuse_distance: DurationHistogram
    reuse_gap: DurationHistogram
    idle: DurationHistogram
    lifetime: DurationHistogram


class Found(Protocol):
    """What was found cached; see `RequestLog`."""

    hit_layers: tuple[int, ...]
    rehit_layers: tuple[int, ...]

    def marks(self) -> Marks:
        """What is left of all records."""


def prefix_metrics(residency: Reuse | None, log: Found, inside: bytearray) -> dict[str, Any]:
    """Rates are over the prompt tokens asked by those `inside` the measured window (a byte for each of the log's marks,
    1 where it is); the rest is of the whole run.

    `regret_tokens` are those of prompts that had been cached and were computed again at first admission, since they,
    or something before them, had been evicted; None where the cache does not recall what it evicted, as a radix tree
    does not. Distances and durations count every token once for each use or eviction.
    """
    keys = ("hit_rate", "hit_tokens_by_layer", "rehit_tokens_by_layer", "regret_tokens", "regret_rate")
    spreads = ("reuse_distance_tokens", "reuse_gap_s", "idle_before_evict_s", "cached_lifetime_s")
    if residency is None:
        return dict.fromkeys((*keys, *spreads))
    marks = log.marks()
    asked, hit, regret = marks.found_tokens(inside)
    return {
        "hit_rate": hit / asked if asked else None,
        "hit_tokens_by_layer": dict(zip(LAYERS, log.hit_layers, strict=True)),
        "rehit_tokens_by_layer": dict(zip(LAYERS, log.rehit_layers, strict=True)),
        "regret_tokens": marks.regret_tokens if marks.recalls else None,
        "regret_rate": regret / asked if asked and regret is not None else None,
        "reuse_distance_tokens": residency.reuse_distance.spread(1),
        "reuse_gap_s": residency.reuse_gap.spread(PS_PER_S),
        "idle_before_evict_s": residency.idle.spread(PS_PER_S),
        "cached_lifetime_s": residency.lifetime.spread(PS_PER_S),
    }

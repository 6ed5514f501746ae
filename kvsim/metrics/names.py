"""Every number that a run can have, by dotted name: known before anything runs."""

from collections.abc import Sequence
from dataclasses import fields

from kvsim.content import LAYERS
from kvsim.metrics.histogram import PERCENTILES
from kvsim.step import CAUSES, CLASSES, ENDS, Upkeep

_PLAIN = (
    "pool_tokens", "pool_blocks", "mean_running", "max_running", "mean_waiting", "arrived", *ENDS, "preemptions",
    "lost_tokens", "recomputed_tokens", "hit_tokens", "rehit_tokens", "swapped_tokens", "copied_bytes",
    "gathered_bytes", "swapped_bytes", "padding_tokens", "padding_context_tokens", "shared_share", "saved_share",
    "duplicate_share", "fragmentation", "unusable_share", "hit_rate", "regret_tokens", "regret_rate",
    "output_tokens_per_s", "requests_per_s", "goodput_per_s", "simulated_s", "steps", "clipped_outputs", "window_s.0",
    "window_s.1", "measured_s",
)  # fmt: skip

_SPREADS = (
    "queue_s", "prefill_s", "ttft_s", "tpot_s", "itl_s", "e2e_s", "reuse_distance_tokens", "reuse_gap_s",
    "idle_before_evict_s", "cached_lifetime_s",
)  # fmt: skip

_PARTS = {
    "mean_share": CLASSES,
    "peak_share": CLASSES,
    "device_bytes": ("card", "weights", "pool", "workspace", "other", "left"),
    "upkeep": tuple(part.name for part in fields(Upkeep)),
    "blocked": CAUSES,
    "cost": (
        "gpus", "usd_per_gpu_hour_low", "usd_per_gpu_hour_high", "usd_per_hour", "usd_per_million_output_tokens",
        "usd_per_million_requests",
    ),
    "hit_tokens_by_layer": LAYERS,
    "rehit_tokens_by_layer": LAYERS,
    **dict.fromkeys(_SPREADS, ("mean", *(f"p{percent}" for percent in PERCENTILES), "max")),
}  # fmt: skip

OF_TENANTS = "tenants."
"""What the names of their numbers begin with: whose requests there are is known when they have come."""

_OF_A_CLASS = ("arrived", "finished", "met_share", "goodput_per_s")
_SPREADS_OF_A_CLASS = ("ttft_s", "tpot_s", "e2e_s")


def metric_names(slo_classes: Sequence[str] = ()) -> list[str]:
    """The numbers among the `metrics` of `summary.metrics` but those of tenants.

    `slo_classes` are those that have goals of their own.
    """
    named = [*_PLAIN, *(f"{name}.{part}" for name, parts in _PARTS.items() for part in parts)]
    for one in slo_classes:
        own = (f"{name}.{part}" for name in _SPREADS_OF_A_CLASS for part in _PARTS[name])
        named += [f"slo_classes.{one}.{name}" for name in (*_OF_A_CLASS, *own)]
    return named

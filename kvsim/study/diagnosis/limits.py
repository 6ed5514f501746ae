"""What limits a run where its memory does not: the batch, compute, or nothing but the requests that come.

With continuous batching a GPU computes whenever anybody is there, so that a busy one says little. What limits is told
by who waits: for a seat while as many run as may, for a place in a step, or nobody.
"""

from dataclasses import dataclass
from typing import Literal

from kvsim.metrics.result import Result

Limit = Literal["batch limit", "compute", "low load", "nothing ran", "not known"]

FELT = 0.05
"""What holds for less than this share of the time, or of the requests, limits nobody."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What limits, and from what that was told; None where it was not recorded.

    Shares of the measured window: the GPU computes; some request waits; one waits while as many run as may.
    `met_share` is goodput over all requests finished a second; None without goals.
    """

    limit: Limit
    max_num_seqs: int
    busy_share: float | None = None
    waiting_share: float | None = None
    batch_full_share: float | None = None
    met_share: float | None = None


def limits_of(result: Result) -> Limits:
    """What limits the run, from its steps; a fleet records none, and is not known."""
    metrics = result.metrics
    seats = int(result.scenario_resolved["engine.max_num_seqs"]["value"])
    opened_s, closes_s = metrics["window_s"]
    if closes_s <= opened_s or not metrics["steps"]:
        return Limits(limit="nothing ran", max_num_seqs=seats)
    if "steps" not in result.tables:
        return Limits(limit="not known", max_num_seqs=seats)
    busy_s = waits_s = full_s = 0.0
    steps = result.tables["steps"]
    for start_s, took_s, running, waiting in zip(
        steps["start_s"], steps["duration_s"], steps["running"], steps["waiting"], strict=True
    ):
        inside_s = max(0.0, min(start_s + took_s, closes_s) - max(start_s, opened_s))
        busy_s += inside_s
        waits_s += inside_s if waiting else 0.0
        full_s += inside_s if waiting and running >= seats else 0.0
    window_s = closes_s - opened_s
    waits, full = waits_s / window_s, full_s / window_s
    goodput, rate = metrics["goodput_per_s"], metrics["requests_per_s"]
    met = None if goodput is None or not rate else goodput / rate
    missed = met is not None and met < 1 - FELT
    limit: Limit = "batch limit" if full >= FELT else "compute" if waits >= FELT or missed else "low load"
    return Limits(
        limit=limit,
        max_num_seqs=seats,
        # Summed from floats, and so a trifle beyond one where the GPU never rests.
        busy_share=min(1.0, busy_s / window_s),
        waiting_share=waits,
        batch_full_share=full,
        met_share=met,
    )

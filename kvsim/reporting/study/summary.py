"""A study as plain values: the key `study` that a comparison with intervals has beside what it has anyway."""

from typing import Any

from kvsim.request import PS_PER_S
from kvsim.study.replication.estimates import Estimate
from kvsim.study.replication.study import Study, Variant
from kvsim.study.statistics.intervals import Interval


def study_summary(study: Study) -> dict[str, Any]:
    """Everything that a study says; numbers by their names in `metrics`, in the same units; None: not there."""
    warmup = study.warmup
    return {
        "method": study.method,
        "baseline": study.baseline,
        "level": study.level,
        "samples": study.samples,
        "seeds": list(study.seeds),
        "until_ci": study.target,
        "warmup": None
        if warmup is None
        else {"s": warmup.cut_ps / PS_PER_S, "slowest": warmup.slowest, "unsettled": list(warmup.unsettled)},
        "notes": list(study.notes),
        "variants": [_variant(variant) for variant in study.variants],
    }


def _variant(variant: Variant) -> dict[str, Any]:
    queue = variant.queue
    return {
        "name": variant.name,
        "saturated": variant.saturated,
        "queue": None if queue is None else {"growth": queue.growth, "memory": queue.memory},
        "trusted": None if queue is None else queue.forgets and not queue.saturated,
        "batch_correlation": variant.correlation,
        "metrics": {key: _estimate(estimate) for key, estimate in variant.estimates.items()},
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    difference = estimate.difference
    return {
        **_interval(estimate.interval),
        "values": list(estimate.values),
        "requests_needed": estimate.needed,
        "difference": None
        if difference is None
        else {
            **_interval(difference.interval),
            "verdict": difference.verdict,
            "variance_ratio": difference.variance_ratio,
        },
    }


def _interval(interval: Interval) -> dict[str, Any]:
    return {
        "estimate": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "samples": interval.samples,
    }

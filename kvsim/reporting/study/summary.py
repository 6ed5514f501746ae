"""A study as plain values: the key `study` that a comparison with intervals has beside what it has anyway."""

from collections.abc import Mapping
from typing import Any

from kvsim.request import PS_PER_S
from kvsim.study.replication.estimates import Estimate
from kvsim.study.replication.study import Study, Variant
from kvsim.study.replication.warmup import WarmUp
from kvsim.study.statistics.intervals import Interval
from kvsim.study.statistics.paired import Difference
from kvsim.study.statistics.saturation import Queue


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
        "queue": None
        if queue is None
        else {"growth": queue.growth, "growth_error": queue.growth_error, "memory": queue.memory},
        "trusted": variant.trusted,
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


def study_of(summary: Mapping[str, Any]) -> Study:
    """The study that such a summary was made of, but for its single runs."""
    warmup = summary["warmup"]
    return Study(
        method=summary["method"],
        baseline=summary["baseline"],
        level=summary["level"],
        samples=summary["samples"],
        seeds=summary["seeds"],
        variants=[_read_variant(variant, summary["level"]) for variant in summary["variants"]],
        target=summary["until_ci"],
        warmup=None
        if warmup is None
        else WarmUp(round(warmup["s"] * PS_PER_S), warmup["slowest"], tuple(warmup["unsettled"])),
        notes=summary["notes"],
    )


def _read_variant(variant: Mapping[str, Any], level: float) -> Variant:
    queue = variant["queue"]
    return Variant(
        name=variant["name"],
        estimates={key: _read_estimate(estimate, level) for key, estimate in variant["metrics"].items()},
        queue=None
        if queue is None
        else Queue(
            growth=queue["growth"],
            growth_error=queue["growth_error"],
            saturated=variant["saturated"],
            memory=queue["memory"],
        ),
        correlation=variant["batch_correlation"],
    )


def _read_estimate(estimate: Mapping[str, Any], level: float) -> Estimate:
    apart = estimate["difference"]
    return Estimate(
        _read_interval(estimate, level),
        tuple(estimate["values"]),
        estimate["requests_needed"],
        None if apart is None else Difference(_read_interval(apart, level), apart["verdict"], apart["variance_ratio"]),
    )


def _read_interval(interval: Mapping[str, Any], level: float) -> Interval:
    return Interval(interval["estimate"], interval["low"], interval["high"], interval["samples"], level)

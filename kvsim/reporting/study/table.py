"""The metrics of a study as rows: what each variant has, how far it is from the baseline, and what that amounts to."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kvsim.study.replication.estimates import Estimate
from kvsim.study.replication.study import Study, Variant
from kvsim.study.statistics.intervals import Interval


@dataclass(frozen=True)
class Metric:
    """A metric that people see: its name in results, its label and unit, and by what its number is multiplied."""

    key: str
    label: str
    unit: str = ""
    times: float = 1.0


METRICS = (
    Metric("mean_share.used", "memory used", "%", 100),
    Metric("waste_share", "waste", "%", 100),
    Metric("mean_running", "running"),
    Metric("mean_waiting", "waiting"),
    Metric("rejected", "rejected"),
    Metric("aborted", "aborted"),
    Metric("hit_rate", "hit rate", "%", 100),
    Metric("preemptions", "preemptions"),
    Metric("recomputed_tokens", "computed again", "tokens"),
    Metric("ttft_s.mean", "TTFT, mean", "s"),
    Metric("ttft_s.p50", "TTFT, p50", "s"),
    Metric("ttft_s.p99", "TTFT, p99", "s"),
    Metric("tpot_s.mean", "TPOT, mean", "ms", 1000),
    Metric("tpot_s.p99", "TPOT, p99", "ms", 1000),
    Metric("itl_s.p99", "ITL, p99", "ms", 1000),
    Metric("e2e_s.mean", "E2E, mean", "s"),
    Metric("e2e_s.p99", "E2E, p99", "s"),
    Metric("output_tokens_per_s", "output", "tokens/s"),
    Metric("requests_per_s", "requests", "/s"),
    Metric("goodput_per_s", "goodput", "/s"),
)
"""What the table shows, in its order; the JSON form has every number."""

DIGITS = 3
"""Digits of a number without an interval."""

TWO_DIGITS_TO = 3.5
"""Of half an interval one digit counts, or two up to 35 of them, as the Particle Data Group rounds errors: 0.35 and
0.4. The estimate is given to the same place."""


@dataclass(frozen=True)
class Row:
    """One variant under one metric, as people read it."""

    variant: str
    value: str
    difference: str = ""
    verdict: str = ""
    variance: str = ""


def rows(study: Study) -> Iterator[tuple[Metric, list[Row]]]:
    """Each metric with a row for every variant; metrics that no variant has, or that are zero in all, are left out."""
    for metric in METRICS:
        found = [variant.estimates.get(metric.key) for variant in study.variants]
        if any(estimate is not None and (estimate.interval.estimate or estimate.interval.half) for estimate in found):
            yield metric, [_row(metric, *pair) for pair in zip(study.variants, found, strict=True)]


def _row(metric: Metric, variant: Variant, estimate: Estimate | None) -> Row:
    if estimate is None:
        return Row(variant.name, "-")
    value = plus_minus(estimate.interval, metric.times)
    difference = estimate.difference
    if difference is None:
        return Row(variant.name, value)
    ratio = difference.variance_ratio
    return Row(
        variant.name,
        value,
        plus_minus(difference.interval, metric.times, signed=True),
        difference.verdict,
        "" if ratio is None else f"{ratio:.2f}" if ratio >= 0.005 else "0.00",
    )


def plus_minus(interval: Interval, times: float = 1.0, *, signed: bool = False) -> str:
    """`12.3 ± 1.4`, or `12.3 +2.1 -0.9` where the two sides differ; the number alone where there is no interval."""
    number = interval.estimate * times
    sign = "+" if signed else ""
    if interval.low is None or interval.high is None or interval.half is None:
        return _written(number, _places(abs(number), DIGITS), sign)
    above, below = (interval.high - interval.estimate) * times, (interval.estimate - interval.low) * times
    half = min(above, below) or max(above, below)
    places = _places(half, _digits(half)) if half else _places(abs(number), DIGITS)
    written = _written(number, places, sign)
    if math.isclose(above, below, rel_tol=1e-6, abs_tol=1e-12):
        return f"{written} ± {_written(above, places)}"
    return f"{written} +{_written(above, places)} -{_written(below, places)}"


def _written(number: float, places: int, sign: str = "") -> str:
    return f"{round(number, places) + 0.0:{sign},.{max(0, places)}f}"


def _digits(half: float) -> int:
    return 2 if float(f"{half:.1e}".partition("e")[0]) <= TWO_DIGITS_TO else 1


def _places(number: float, digits: int) -> int:
    """Behind the point, so that so many digits of a number count; negative before it. At most six."""
    exponent = int(f"{number:.{digits - 1}e}".partition("e")[2])  # of the rounded number: 9.99 has that of 10
    return min(6, digits - 1 - exponent)


_KEEPING_UP = {
    (True, False): "{variant} keeps up with this traffic and {baseline} does not.",
    (False, True): "{variant} does not keep up with this traffic, and {baseline} does.",
    (False, False): "Neither {variant} nor {baseline} keeps up with this traffic.",
}
"""What saturation says of two variants, of which no numbers can be compared: whether each keeps up."""


def in_short(study: Study, say: Callable[[Metric], str] = lambda metric: metric.label.replace(", ", " ")) -> list[str]:
    """What the study found, in a sentence for each variant but the baseline."""
    said = []
    for variant in study.variants:
        if variant.name == study.baseline:
            continue
        verdicts = {
            metric: estimate.difference.verdict
            for metric in METRICS
            if (estimate := variant.estimates.get(metric.key)) is not None and estimate.difference is not None
        }
        groups = {
            verdict: [say(metric) for metric, found in verdicts.items() if found == verdict]
            for verdict in ("better", "worse", "not distinguishable")
        }
        parts = [
            f"{verdict} in {', '.join(labels)}"
            if verdict != "not distinguishable"
            else f"{verdict} in {_count(len(labels), others=bool(groups['better'] + groups['worse']))}"
            for verdict, labels in groups.items()
            if labels
        ]
        keeping = (not variant.saturated, not study.variant(study.baseline).saturated)
        if keeping != (True, True):
            said.append(_KEEPING_UP[keeping].format(variant=variant.name, baseline=study.baseline))
            continue
        said.append(f"{variant.name} against {study.baseline}: {'; '.join(parts) or 'nothing to compare'}.")
    return said


def _count(number: int, *, others: bool) -> str:
    return f"{number} {'other' if others else 'metric'}{'' if number == 1 else 's'}"


def basis(study: Study) -> str:
    """What the intervals rest on, in a line."""
    level = f"{study.level:.0%} intervals"
    how = {
        "replications": f"{study.samples} replications of each variant on the same random streams",
        "batches": f"{study.samples} batches of one run of each variant",
        "sessions": f"a bootstrap of the {study.samples} sessions of one trace",
    }
    if study.method == "sessions" and any("for want of sessions" in note for note in study.notes):
        how["sessions"] = f"a bootstrap of {study.samples} blocks of one trace"
    pairs = {"replications": "run by run", "batches": "batch by batch", "sessions": "on the same draws"}
    return f"{level} from {how[study.method]}; differences are to {study.baseline}, {pairs[study.method]}"

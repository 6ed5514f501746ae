"""The score of a checked table: errors in the median and at the 90th percentile, coverage, refusals, baseline."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

from kvsim.capacity.checking.compare import Record, default_record, given_record
from kvsim.capacity.checking.rows import Row
from kvsim.capacity.overheads.releases import LARGE_CARD_BYTES
from kvsim.units import GIB

TIGHT_SHARE = 0.4
"""A card is tight where KV takes less of it than this: a small error in GiB is a large one in tokens."""
BASELINE_GIB = 3.0
"""What the baseline takes for everything but weights and KV where no other model of the release logged it."""


def check_table(rows: Sequence[Row]) -> dict[str, Any]:
    """`given` and `default`, each with `rows` and `summary`."""
    given = [given_record(row) for row in rows]
    default = [default_record(row) for row in rows]
    return {
        "given": {"rows": given, "summary": _given_summary(given)},
        "default": {"rows": default, "summary": _default_summary(default)},
    }


def quantile(values: Iterable[float], share: float) -> float | None:
    """The value below which that share of the values lies, linear between neighbours; None of no values."""
    ordered = sorted(values)
    if not ordered:
        return None
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def _given_summary(records: Sequence[Record]) -> dict[str, Any]:
    right = [record for record in records if record["consistent"] == "yes"]
    outside = [f"{record['id']} {name}" for record in right for name, good in record["inside"].items() if not good]
    inside = [good for record in right for good in record["inside"].values()]
    return {
        **_spread(_errors(right, "kv_tokens")),
        "interval_coverage": None if not inside else round(sum(inside) / len(inside), 3),
        "consistent_rows": len(right),
        "numbers_checked": len(inside),
        "outside_interval": outside,
        "kv_tokens": _spread(_errors(right, "kv_tokens")),
        "kv_memory_from_overheads": _spread(_errors(records, "kv_memory_from_overheads")),
        "kv_blocks": _spread(_errors(right, "kv_blocks")),
        "max_concurrency": _spread(_errors(right, "max_concurrency")),
        **_refusals(records),
    }


def _default_summary(records: Sequence[Record]) -> dict[str, Any]:
    """KV tokens are scored by KV memory, which more rows log: tokens are that over exact bytes.

    Scored are the rows that tell the card, the share, the weights and KV; the others follow apart.
    """
    scored = [record for record in records if "overhead_gib" in record["error"]]
    _compare_with_constants(scored)
    others = [record for record in records if "overhead_gib" not in record["error"]]
    inside = [record["inside"]["kv_memory"] for record in scored]
    roomy = [record for record in scored if not _tight(record)]
    return {
        **_spread(_votes(roomy, "kv_memory")),
        "overhead_gib": _spread(_votes(scored, "overhead_gib")),
        "kv_tokens": _spread(_votes(roomy, "kv_memory")),
        "kv_tokens_tight": _spread(_votes((r for r in scored if _tight(r)), "kv_memory")),
        "kv_tokens_rows_without_overheads": _spread(_votes(others, "kv_tokens")),
        "weights": _spread(_votes(records, "weights_gib")),
        "baseline": {
            "overhead_gib": _spread(_votes(scored, "baseline_overhead_gib")),
            "kv_tokens": _spread(_votes(roomy, "baseline_kv_memory")),
        },
        "where_the_baseline_is_weak": _weak(scored),
        "rows": len(scored),
        "interval_coverage": None if not inside else round(sum(inside) / len(inside), 3),
        "interval_median_width": quantile(map(_width, scored), 0.5),
        **_refusals(records),
    }


def _spread(errors: Sequence[float]) -> dict[str, Any]:
    sizes = [abs(error) for error in errors]
    middle, far = quantile(sizes, 0.5), quantile(sizes, 0.9)
    return {
        "n": len(sizes),
        "median": None if middle is None else round(middle, 5),
        "p90": None if far is None else round(far, 5),
    }


def _errors(records: Iterable[Record], name: str) -> list[float]:
    return [record["error"][name] for record in records if name in record["error"]]


def _votes(records: Iterable[Record], name: str) -> list[float]:
    """One error for each (engine release, model, GPU, TP): the median of its rows."""
    votes: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for record in records:
        if name in record["error"]:
            votes[_key(record)].append(abs(record["error"][name]))
    return [median(errors) for errors in votes.values()]


def _key(record: Record) -> tuple[object, ...]:
    return record["engine"], record["model"], record["gpu"], record["tp"]


def _tight(record: Record) -> bool:
    """Of a scored row, which logs both."""
    return bool(record["logged"]["kv_memory_gib"] < TIGHT_SHARE * record["logged"]["gpu_total_gib"])


def _width(record: Record) -> float:
    low, high = record["predicted"]["kv_memory_gib_interval"]
    return round(float(high - low) / float(record["predicted"]["kv_memory_gib"]), 4)


def _compare_with_constants(records: Sequence[Record]) -> None:
    """Add the baseline's errors: one constant for each engine release, the median overhead of its other models, 3 GiB
    where there is none."""
    kinds = {(record["engine"], record["model"]) for record in records}
    constants = {kind: _constant(records, *kind) for kind in kinds}
    for record in records:
        error = constants[record["engine"], record["model"]] - record["logged"]["overhead_gib"]
        record["error"]["baseline_overhead_gib"] = round(error, 3)
        record["error"]["baseline_kv_memory"] = round(-error / record["logged"]["kv_memory_gib"], 5)


def _constant(records: Sequence[Record], engine: str, model: str) -> float:
    others = [one["logged"]["overhead_gib"] for one in records if one["engine"] == engine and one["model"] != model]
    return median(others) if others else BASELINE_GIB


def _weak(records: Sequence[Record]) -> dict[str, Any]:
    """Overhead beside the baseline's, in GiB, for the kinds of starts that one constant serves badly."""
    most_logged = Counter(record["engine"] for record in records).most_common(1)[0][0] if records else ""
    kinds: dict[str, Callable[[Record], bool]] = {
        "small_cards": lambda record: record["logged"]["gpu_total_gib"] * GIB < LARGE_CARD_BYTES,
        "other_releases": lambda record: record["engine"] != most_logged,
        "several_ranks": lambda record: record["tp"] > 1,
    }
    return {
        name: {
            "overhead_gib": _spread(_votes(filter(of_kind, records), "overhead_gib")),
            "baseline": _spread(_votes(filter(of_kind, records), "baseline_overhead_gib")),
        }
        for name, of_kind in kinds.items()
    }


def _refusals(records: Iterable[Record]) -> dict[str, Any]:
    """Starts whose end was told: right where refused with the engine's class, at risk where it died later, else run."""
    right: list[str] = []
    wrong: list[str] = []
    for record in records:
        if record["predicted"] is None:
            continue
        expected, found = record["logged"]["reason_class"], record["predicted"]
        refused = found["verdict"] == "refused"
        if expected is None:
            good = not refused
        elif expected == "oom_after_kv":
            good = found["verdict"] == "at_risk"
        else:
            good = refused and found["reason_class"] == expected
        (right if good else wrong).append(record["id"])
    return {"refusals_right": len(right), "refusals_wrong": wrong}

"""The table of a comparison as plain rows, and its JSON form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kvsim.content import LAYERS
from kvsim.metrics.result import SCHEMA, Result
from kvsim.metrics.waste import waste_share as waste_share
from kvsim.reporting.replicas import SPREADS, spread, worth_telling
from kvsim.step import CAUSES, CLASSES
from kvsim.units import GIB

if TYPE_CHECKING:
    from kvsim.study.replication.study import Study

Number = int | float | None

CAUSE_LABELS = {"never": "rejected: can never fit", "outgrown": "alone and outgrown"}
"""How the table calls a cause for which an allocation failed, where the cause's own name does not tell."""

BESIDE = {
    "saved by sharing": ("saved_share", "what sequences hold in common, of the slots that they would take apart"),
    "kept twice": ("duplicate_share", "slots of a prompt that another sample of the request keeps as well"),
    "scattered, of free": ("fragmentation", "free slots outside the largest hole"),
    "too small for the head": ("unusable_share", "while requests wait, free slots in holes too small for the next"),
}
"""Rows beside the classes: label to the metric and what it is; shown where it is not zero throughout."""

_LETTERS = 24
"""Of the name of a class of service so many are shown at most: four results must stay within 80 columns."""

CACHED_SPREADS = (
    ("reuse distance", "reuse_distance_tokens", "tokens", 0),
    ("between two uses", "reuse_gap_s", "s", 1),
    ("idle before evicted", "idle_before_evict_s", "s", 1),
    ("cached until evicted", "cached_lifetime_s", "s", 1),
)
"""Rows of what is found and what is evicted: label, metric, unit, digits; shown where some result has them."""


@dataclass(frozen=True)
class Row:
    """One line of the table: its unit, and for each result one number, or those that the heading names.

    A number that does not exist is None. `digits` are shown behind the point at most; `values` are exact.
    `absent` says for each result what stands in the cell where none of its numbers exists, and why.
    """

    label: str
    unit: str
    digits: int
    values: tuple[tuple[Number, ...], ...]
    absent: tuple[str, ...] = ()

    def text(self, index: int) -> str:
        """The cell of the index-th result as people read it: three digits count, `-` where nothing is."""
        if self.absent and all(n is None for n in self.values[index]):
            return self.absent[index]
        return " / ".join("-" if n is None else _rounded(n, self.digits) for n in self.values[index])


@dataclass(frozen=True)
class Group:
    """Rows that belong together, under one heading."""

    heading: str
    rows: tuple[Row, ...]


def beside(results: Sequence[Result]) -> dict[str, tuple[str, str]]:
    """Those of `BESIDE` that say something of any of the results."""
    return {label: row for label, row in BESIDE.items() if any(result.metrics.get(row[0]) for result in results)}


def comparison_table(results: Sequence[Result]) -> list[Group]:
    """Lay the metrics of some results side by side, one column each in their order.

    Classes and causes that occur in none of them are left out, as are ends other than finished, rejected and
    aborted. Raises ValueError for an empty `results`.
    """
    if not results:
        raise ValueError("results must hold at least one result")
    every = [result.metrics for result in results]

    def row(label: str, unit: str, digits: int, *numbers: Callable[[dict[str, Any]], Number]) -> Row:
        return Row(label, unit, digits, tuple(tuple(number(m) for number in numbers) for m in every))

    def count(label: str, key: str, unit: str = "") -> Row:
        return row(label, unit, 0, _at(key))

    classes = [name for name in CLASSES if name in ("used", "free") or _occurs(every, "peak_share", name)]
    ends = ["finished", "rejected", "aborted"]
    ends += [end for end in ("cancelled", "unfinished") if any(m[end] for m in every)]
    causes = [cause for cause in CAUSES if _occurs(every, "blocked", cause)]
    memory = [count("pool", "pool_tokens", "tokens")]
    memory += [
        row(
            name,
            "%",
            1,
            _percent(_at("mean_share", name)),
            _percent(_at("peak_share", name)),
        )
        for name in classes
    ]
    memory.append(row("waste", "%", 1, _percent(waste_share)))
    memory += [row(label, "%", 1, _percent(_at(key))) for label, (key, _) in beside(results).items()]
    requests = [row("running", "", 1, _at("mean_running"), _at("max_running"))]
    requests.append(row("waiting, mean", "", 1, _at("mean_waiting")))
    requests += [count(end, end) for end in ends]
    layers = [layer for layer in LAYERS if any((m.get("hit_tokens_by_layer") or {}).get(layer) for m in every)]
    cached = (
        row("hit rate", "%", 1, _percent(_at("hit_rate"))),
        count("not computed", "hit_tokens", "tokens"),
        *(row(f"  of it {layer}", "tokens", 0, _at("hit_tokens_by_layer", layer)) for layer in layers),
        count("found again", "rehit_tokens", "tokens"),
        row("evicted", "tokens", 0, _evicted_tokens),
        count("evicted, then wanted", "regret_tokens", "tokens"),
        *(
            row(label, unit, digits, _at(key, "p50"), _at(key, "p99"))
            for label, key, unit, digits in CACHED_SPREADS
            if any(m.get(key) for m in every)
        ),
    )
    pressure = [
        count("preemptions", "preemptions"),
        count("lost", "lost_tokens", "tokens"),
        count("computed again", "recomputed_tokens", "tokens"),
    ]
    moved = (
        ("swapped", "swapped_bytes", GIB, "GiB"),
        ("copied", "copied_bytes", GIB, "GiB"),
        ("gathered", "gathered_bytes", GIB, "GiB"),
        ("padding computed", "padding_tokens", 1, "tokens"),
        ("padding read", "padding_context_tokens", 1, "tokens"),
    )
    pressure += [
        row(label, unit, 2, _times(1 / size, _at(key)) if size > 1 else _at(key))
        for label, key, size, unit in moved
        if any(m.get(key) for m in every)
    ]
    blocked = [row(CAUSE_LABELS.get(cause, cause), "", 0, _at("blocked", cause)) for cause in causes]
    latency = [
        row(label, unit, digits, _times(by, _at(key, "p50")), _times(by, _at(key, "p99")))
        for label, key, unit, digits, by in (
            ("TTFT", "ttft_s", "s", 2, 1),
            ("  of it queue", "queue_s", "s", 2, 1),
            ("  of it prefill", "prefill_s", "s", 2, 1),
            ("TPOT", "tpot_s", "ms", 1, 1000),
            ("ITL", "itl_s", "ms", 1, 1000),
        )
    ]
    rates = [
        row("output tokens", "/s", 1, _at("output_tokens_per_s")),
        row("requests", "/s", 2, _at("requests_per_s")),
        replace(row("goodput", "/s", 2, _at("goodput_per_s")), absent=tuple(_no_goodput(m) for m in every)),
    ]
    costs = (
        row("an hour", "USD", 2, _at("cost", "usd_per_hour")),
        row("a million output tokens", "USD", 2, _at("cost", "usd_per_million_output_tokens")),
        row("a million requests", "USD", 0, _at("cost", "usd_per_million_requests")),
    )
    of_service = dict.fromkeys(name for m in every for name in m.get("slo_classes") or ())
    met = tuple(
        row(name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…", "%", 1, _met(name)) for name in of_service
    )
    published = tuple(_published_rows(results))
    replicas = tuple(
        Row(label, unit, digits, tuple(spread(result, column, times) for result in results))
        for label, column, unit, digits, times in SPREADS
        if worth_telling(results, column)
    )
    return [
        *([Group("Simulated / published", published)] if published else []),
        Group("KV memory, mean / peak", tuple(memory)),
        Group("Requests, mean / max", tuple(requests)),
        *([Group("Prefixes found cached, p50 / p99", cached)] if any(m["hit_rate"] is not None for m in every) else []),
        Group("Pressure", tuple(pressure)),
        *([Group("Times blocked", tuple(blocked))] if blocked else []),
        Group("Latency, p50 / p99", tuple(latency)),
        Group("Rates", tuple(rates)),
        *([Group("Cost", costs)] if any(value != (None,) for line in costs for value in line.values) else []),
        *([Group("Goals met, by class of service", met)] if met else []),
        *([Group("Replicas, least / most", replicas)] if replicas else []),
    ]


def _published_rows(results: Sequence[Result]) -> list[Row]:
    """A row for every metric that a paper prints for any of the results: simulated / published."""
    paths = dict.fromkeys(path for result in results for path in _leaves(result.published))
    rows = []
    for path in paths:
        share = path[0].endswith("_share")
        scale = 100.0 if share else 1.0
        values = tuple(
            (_scaled(_look_up(result.metrics, path), scale), _scaled(_look_up(result.published, path), scale))
            for result in results
        )
        rows.append(Row(" ".join(path).replace("_", " "), "%" if share else "", 2 if not share else 1, values))
    return rows


def _leaves(numbers: Mapping[str, Any], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, value in numbers.items():
        found += _leaves(value, (*above, name)) if isinstance(value, Mapping) else [(*above, name)]
    return found


def _look_up(numbers: Mapping[str, Any], path: tuple[str, ...]) -> Number:
    value: Any = numbers
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) else None


def _scaled(number: Number, scale: float) -> Number:
    return None if number is None else number * scale


def comparison_summary(scenario: str, results: Sequence[Result], study: "Study | None" = None) -> dict[str, Any]:
    """The object that `kvsim compare --json` prints and the comparison's `summary.json` holds.

    With a study, `variants` are the first replication of each, and the key `study` has what all of them say.
    """
    if not results:
        raise ValueError("results must hold at least one result")
    kept = ("name", "provenance", "expected_error", "not_modelled", "notes", "published", "metrics", "pools")
    return {
        "schema": SCHEMA,
        "scenario": scenario,
        "version": results[0].version,
        "variants": [{key: result.summary[key] for key in kept if key in result.summary} for result in results],
        **_study(study),
    }


def _study(study: "Study | None") -> dict[str, Any]:
    if study is None:
        return {}
    from kvsim.reporting.study.summary import study_summary

    return {"study": study_summary(study)}


def _rounded(number: int | float, digits: int) -> str:
    if isinstance(number, int):
        return f"{number:,}"
    whole_digits = len(str(int(abs(number))))
    return f"{number:,.{min(digits, max(0, 3 - whole_digits))}f}"


def _at(key: str, inner: str | None = None) -> Callable[[dict[str, Any]], Number]:
    def number(metrics: dict[str, Any]) -> Number:
        value: Any = metrics.get(key)
        if inner is None or value is None:
            return value  # type: ignore[no-any-return]
        return value.get(inner)  # type: ignore[no-any-return]

    return number


def _met(name: str) -> Callable[[dict[str, Any]], Number]:
    """The share of a class of service that met its goals, in percent."""
    return lambda metrics: _scaled(_look_up(metrics, ("slo_classes", name, "met_share")), 100.0)


def _evicted_tokens(metrics: dict[str, Any]) -> Number:
    """What is evicted counts in blocks, or in pages."""
    evictions, blocks = _at("upkeep", "evictions")(metrics), metrics["pool_blocks"]
    return int(evictions * metrics["pool_tokens"] // blocks) if evictions is not None and blocks else None


def _times(factor: float, number: Callable[[dict[str, Any]], Number]) -> Callable[[dict[str, Any]], Number]:
    def scaled(metrics: dict[str, Any]) -> Number:
        value = number(metrics)
        return None if value is None else value * factor

    return scaled


def _percent(number: Callable[[dict[str, Any]], Number]) -> Callable[[dict[str, Any]], Number]:
    return _times(100, number)


def _no_goodput(metrics: dict[str, Any]) -> str:
    """Goodput lacks a goal, or time to measure as every rate does."""
    return "-" if metrics["requests_per_s"] is None else "no slo set"


def _occurs(every: Sequence[dict[str, Any]], key: str, name: str) -> bool:
    return any(metrics[key] and metrics[key].get(name) for metrics in every)

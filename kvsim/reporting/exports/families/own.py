"""What vLLM has no name for: kvsim's own metrics."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kvsim.metrics.result import Result
from kvsim.reporting.exports.families.interface import Family, Moments, Series, labels_of
from kvsim.step import CAUSES, CLASSES, ENDS
from kvsim.study.recorded.measured import Column
from kvsim.study.recorded.simulated import column_of

OWN: Mapping[str, tuple[str, str]] = {
    "kvsim:pool_tokens": ("gauge", "slots of the pool by class; the classes add up to the pool"),
    "kvsim:pool_share": ("gauge", "share of the pool by class, mean over the measured window"),
    "kvsim:waste_ratio": (
        "gauge",
        "of the slots neither free nor cached, the share without valid KV of a live request",
    ),
    "kvsim:fragmentation_ratio": ("gauge", "1 - largest hole / all free slots, of allocators that have holes"),
    "kvsim:unusable_ratio": (
        "gauge",
        "of all free slots the share whose holes are too small for the next in the queue",
    ),
    "kvsim:largest_hole_tokens": ("gauge", "slots of the largest hole"),
    "kvsim:host_tokens": ("gauge", "slots of host memory that swapped requests take"),
    "kvsim:inter_token_latency_quantile_seconds": (
        "gauge",
        "gaps between tokens over the measured window, by quantile",
    ),
    "kvsim:goodput_requests_per_second": ("gauge", "finished requests per second that met every goal, measured window"),
    "kvsim:requests_arrived": ("counter", "requests that arrived"),
    "kvsim:requests_ended": ("counter", "requests that ended, by how"),
    "kvsim:blocked_allocations": ("counter", "allocations that could not be met at once, by cause and outcome"),
    "kvsim:lost_tokens": ("counter", "tokens whose KV was given up at preemptions"),
    "kvsim:swapped_tokens": ("counter", "tokens whose KV was moved to host memory at preemptions"),
}
"""kvsim's own metrics: kind and meaning."""


class Own:
    """kvsim's own metrics."""

    def __init__(self, result: Result, times_s: Column) -> None:
        self.result = result
        self.moments = Moments(times_s)
        self.labels = labels_of(result)

    def families(self) -> Iterator[Family]:
        """In the order of `OWN`; those of which nothing is known are left out."""
        told = {name: list(series) for name, series in self._told()}
        for name, (kind, meaning) in OWN.items():
            known = [one for one in told.get(name, ()) if not np.isnan(one.values).all()]
            if known:
                yield Family(name, kind, meaning, known)

    def _told(self) -> Iterator[tuple[str, Iterable[Series]]]:
        result, moments = self.result, self.moments
        if result.metrics["pool_tokens"]:
            yield from self._pool()
        spread = result.metrics.get("itl_s") or {}
        yield (
            "kvsim:inter_token_latency_quantile_seconds",
            [
                self._one(moments.nowhere_but_at_the_end(spread[key]), quantile=quantile)
                for key, quantile in (("p50", "0.5"), ("p90", "0.9"), ("p99", "0.99"))
                if key in spread
            ],
        )
        goodput = result.metrics.get("goodput_per_s")
        if goodput is not None:
            yield "kvsim:goodput_requests_per_second", [self._one(moments.nowhere_but_at_the_end(goodput))]
        requests = result.tables["requests"]
        yield "kvsim:requests_arrived", [self._one(moments.sums(column_of(requests, "arrival_s")))]
        yield "kvsim:requests_ended", self._counted(column_of(requests, "end_s"), end=(requests["end"], ENDS))
        events = result.tables["events"]
        outcomes = tuple(dict.fromkeys(sorted(str(one) for one in events["outcome"])))
        yield (
            "kvsim:blocked_allocations",
            self._counted(
                column_of(events, "time_s"), cause=(events["cause"], CAUSES), outcome=(events["outcome"], outcomes)
            ),
        )
        losses = result.tables["preemptions"]
        for name in ("lost_tokens", "swapped_tokens"):
            sums = moments.sums(column_of(losses, "time_s"), column_of(losses, name))
            yield f"kvsim:{name}", [self._one(sums)]

    def _pool(self) -> Iterator[tuple[str, Iterable[Series]]]:
        result, moments = self.result, self.moments
        memory, pool = result.tables["memory"], result.metrics["pool_tokens"]
        since = column_of(memory, "time_s")
        row = np.searchsorted(since, moments.times_s, side="right") - 1
        begun = row >= 0

        def at(name: str, before: float) -> Column:
            return np.where(begun, column_of(memory, name)[np.maximum(row, 0)], before)

        slots = {name: at(name, float(pool) if name == "free" else 0.0) for name in CLASSES}
        yield "kvsim:pool_tokens", [Series({**self.labels, "class": name}, held) for name, held in slots.items()]
        shares = result.metrics.get("mean_share") or {}
        yield (
            "kvsim:pool_share",
            [
                Series({**self.labels, "class": name}, moments.nowhere_but_at_the_end(shares[name]))
                for name in CLASSES
                if shares.get(name) is not None
            ],
        )
        taken = pool - slots["free"] - slots["cached"]
        waste = np.full(len(taken), np.nan)
        np.divide(taken - slots["used"], taken, out=waste, where=taken > 0)
        yield "kvsim:waste_ratio", [self._one(waste)]
        yield "kvsim:fragmentation_ratio", [self._one(at("fragmentation", np.nan))]
        yield "kvsim:unusable_ratio", [self._one(at("unusable", np.nan))]
        yield "kvsim:largest_hole_tokens", [self._one(at("largest_hole", float(pool)))]
        yield "kvsim:host_tokens", [self._one(at("host", 0.0))]

    def _one(self, values: Column, **labels: str) -> Series:
        return Series({**self.labels, **labels}, values)

    def _counted(self, when_s: Column, **labels: tuple[Sequence[Any], Sequence[str]]) -> Iterator[Series]:
        """How many rows there were by each moment, for every combination of labels that occurs."""
        keys = list(zip(*(values for values, _ in labels.values()), strict=True))
        orders = [{name: place for place, name in enumerate(order)} for _, order in labels.values()]

        def place(key: tuple[Any, ...]) -> list[int]:
            return [order[part] for order, part in zip(orders, key, strict=True)]

        for key in sorted(set(keys), key=place):
            mine = np.array([own == key for own in keys], dtype=bool)
            yield Series({**self.labels, **dict(zip(labels, key, strict=True))}, self.moments.sums(when_s[mine]))

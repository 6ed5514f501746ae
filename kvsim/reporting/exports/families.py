"""What a run looked like to a scraper at some moments: metric families with values, counters and histograms exact.

vLLM's names are kept for what means what vLLM's mean (`data/vllm_metrics.json`); `kvsim:` names the rest. Gauges are
read as `kvsim compare-run` reads a simulated run.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.result import Result
from kvsim.request import PS_PER_S
from kvsim.step import CAUSES, CLASSES, ENDS
from kvsim.study.recorded.measured import Column
from kvsim.study.recorded.simulated import column_of, gauges, output_tokens

Labels = Mapping[str, str]
FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one metric with these labels at each moment; NaN where there is none then.

    Of a histogram, `counts` has a column for each edge and one for all, cumulative, and `values` are the sums.
    """

    labels: Labels
    values: Column
    counts: Column | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """One metric; `kind` is gauge, counter or histogram, and a counter's `name` is without `_total`."""

    name: str
    kind: str
    meaning: str
    series: Sequence[Series]
    edges: Sequence[float] = ()


def families(result: Result, times_s: Column) -> list[Family]:
    """All that the tables of a run can tell a scraper at these moments since it began, in their order, sorted."""
    return [*_Vllm(result, times_s).families(), *_Own(result, times_s).families()]


def names() -> dict[str, str]:
    """The kind of every metric that an export may hold, by name."""
    known = {name: entry[0] for name, entry in _facts()["metrics"].items()}
    return known | {name: kind for name, (kind, _) in OWN.items()}


@cache
def _facts() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(
        files("kvsim.reporting.exports").joinpath("data/vllm_metrics.json").read_text("utf-8")
    )
    return facts


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


class _Moments:
    """Sums and counts of what had happened by each of some moments."""

    def __init__(self, times_s: Column) -> None:
        self.times_s = times_s

    def sums(self, when_s: Column, amounts: Column | None = None) -> Column:
        """How much, or how many, had come by each moment; what never came has no time."""
        come = ~np.isnan(when_s)
        order = np.argsort(when_s[come], kind="stable")
        each = np.ones(len(order)) if amounts is None else amounts[come][order]
        so_far = np.concatenate([[0.0], np.cumsum(each)])
        return np.asarray(so_far[np.searchsorted(when_s[come][order], self.times_s, side="right")])

    def histogram(
        self, labels: Labels, when_s: Column, values: Column, edges: Sequence[float], times: Column | None = None
    ) -> Series:
        """Values that came, each once or so many `times`."""
        known = ~np.isnan(values) & ~np.isnan(when_s)
        when_s, values = when_s[known], values[known]
        weights = np.ones(len(values)) if times is None else times[known]
        counts = [self.sums(when_s, weights * (values <= edge)) for edge in edges]
        counts.append(self.sums(when_s, weights))
        return Series(labels, self.sums(when_s, weights * values), np.array(counts).T)

    def nowhere_but_at_the_end(self, value: float) -> Column:
        """A number that is known of the whole run alone."""
        values = np.full(len(self.times_s), np.nan)
        values[-1] = value
        return values

    def always(self, value: float) -> Column:
        """The same number at every moment."""
        return np.full(len(self.times_s), float(value))


class _Vllm:
    """vLLM's metrics."""

    def __init__(self, result: Result, times_s: Column) -> None:
        self.result = result
        self.moments = _Moments(times_s)
        self.labels = {"model_name": str(_setting(result, "model.name") or ""), "engine": "0"}

    def families(self) -> Iterator[Family]:
        """In the order of the file of facts; those of which nothing is known are left out."""
        told = dict(self._told())
        for name, (kind, meaning, *edges) in _facts()["metrics"].items():
            if name in told:
                yield Family(name, kind, meaning, told[name], self._edges(*edges))

    def _edges(self, name: str = "") -> Sequence[float]:
        if name == "lengths":
            return _one_two_five(int(_setting(self.result, "engine.max_model_len") or self._longest()))
        found: Sequence[float] = _facts()["edges"].get(name, ())
        return found

    def _longest(self) -> int:
        lengths = self._column("prompt_tokens") + self._column("generated_tokens")
        return int(lengths.max(initial=1))

    def _column(self, name: str) -> Column:
        return column_of(self.result.tables["requests"], name)

    def _told(self) -> Iterator[tuple[str, list[Series]]]:
        result, moments, labels = self.result, self.moments, self.labels
        read = gauges(result, moments.times_s)
        for name, column in (("running", "running"), ("waiting", "waiting"), ("kv_share", "kv_share")):
            metric = {"kv_share": "vllm:kv_cache_usage_perc"}.get(name, f"vllm:num_requests_{name}")
            if column in read:
                yield metric, [Series(labels, read[column])]
        yield "vllm:cache_config_info", [Series(self._pool(), moments.always(1))]
        lost_s = column_of(result.tables["preemptions"], "time_s")
        yield "vllm:num_preemptions", [Series(labels, moments.sums(lost_s))]
        first_s, prompts, hits = (self._column(name) for name in ("first_token_s", "prompt_tokens", "hit_tokens"))
        found = np.minimum(hits, prompts)
        yield "vllm:prompt_tokens", [Series(labels, moments.sums(first_s, prompts))]
        yield "vllm:prompt_tokens_cached", [Series(labels, moments.sums(first_s, found))]
        sources = (("local_compute", prompts - found), ("local_cache_hit", found))
        yield (
            "vllm:prompt_tokens_by_source",
            [Series({**labels, "source": source}, moments.sums(first_s, tokens)) for source, tokens in sources],
        )
        yield "vllm:generation_tokens", [Series(labels, output_tokens(result, moments.times_s))]
        caches = result.metrics.get("hit_rate") is not None
        admitted_s = self._column("first_scheduled_s")
        for name, tokens in (("queries", prompts), ("hits", hits)):
            yield f"vllm:prefix_cache_{name}", [Series(labels, moments.sums(admitted_s, tokens * caches))]
        yield "vllm:request_success", list(self._ends())
        yield from self._latencies()
        yield "vllm:iteration_tokens_total", [self._steps()]
        if result.gaps is not None:
            yield "vllm:inter_token_latency_seconds", [self._gaps(result.gaps)]

    def _pool(self) -> Labels:
        """The labels of vLLM's that say what the pool is."""
        blocks, caches = self.result.metrics["pool_blocks"], self.result.metrics.get("hit_rate") is not None
        told = {"enable_prefix_caching": str(caches)}
        if blocks:
            told |= {"block_size": str(self.result.metrics["pool_tokens"] // blocks), "num_gpu_blocks": str(blocks)}
        return {**self.labels, **told}

    def _ends(self) -> Iterator[Series]:
        table = self.result.tables["requests"]
        reasons: Mapping[str, str] = _facts()["finished_reasons"]
        found = np.array(
            [
                reasons.get(str(reason), "") if end == FINISHED else "abort" if end in ("cancelled", "aborted") else ""
                for end, reason in zip(table["end"], table["finish_reason"], strict=True)
            ]
        )
        for reason in ("stop", "length", "abort"):
            ended_s = self._column("end_s")[found == reason]
            yield Series({**self.labels, "finished_reason": reason}, self.moments.sums(ended_s))

    def _latencies(self) -> Iterator[tuple[str, list[Series]]]:
        """Those of a request count when it has finished, its TTFT when its first token comes."""
        names = ("end_s", "ttft_s", "tpot_s", "e2e_s", "queue_s", "prefill_s", "prompt_tokens", "generated_tokens",
                 "hit_tokens", "max_tokens", "samples")  # fmt: skip
        of = {name: self._column(name) for name in names}
        done = np.array([end == FINISHED for end in self.result.tables["requests"]["end"]], dtype=bool)
        values = {
            "request_time_per_output_token_seconds": of["tpot_s"],
            "e2e_request_latency_seconds": of["e2e_s"],
            "request_queue_time_seconds": of["queue_s"],
            "request_prefill_time_seconds": of["prefill_s"],
            "request_decode_time_seconds": of["e2e_s"] - of["ttft_s"],
            "request_inference_time_seconds": of["e2e_s"] - of["queue_s"],
            "request_prompt_tokens": of["prompt_tokens"],
            "request_generation_tokens": of["generated_tokens"],
            "request_prefill_kv_computed_tokens": np.maximum(of["prompt_tokens"] - of["hit_tokens"], 0),
            "request_params_max_tokens": of["max_tokens"],
            "request_params_n": of["samples"],
        }
        first = "vllm:time_to_first_token_seconds"
        yield first, [self._histogram(first, self._column("first_token_s"), of["ttft_s"])]
        for short, column in values.items():
            name = f"vllm:{short}"
            yield name, [self._histogram(name, of["end_s"][done], column[done])]

    def _histogram(self, name: str, when_s: Column, values: Column, times: Column | None = None) -> Series:
        edges = self._edges(_facts()["metrics"][name][2])
        return self.moments.histogram(self.labels, when_s, values, edges, times)

    def _steps(self) -> Series:
        steps = self.result.tables["steps"]
        count = column_of(steps, "steps")
        whole = count > 0
        tokens = column_of(steps, "prefill_tokens") + column_of(steps, "decode_tokens")
        ends_s = column_of(steps, "start_s") + column_of(steps, "duration_s")
        each = tokens[whole] / count[whole]
        return self._histogram("vllm:iteration_tokens_total", ends_s[whole], each, count[whole])

    def _gaps(self, gaps: DurationHistogram) -> Series:
        """At the end alone: gaps are counted as they come, and not kept. A bucket belongs where its middle lies."""
        edges = self._edges("token_gap")
        counts = np.full((len(self.moments.times_s), len(edges) + 1), np.nan)
        counts[-1] = [*(gaps.at_most(round(edge * PS_PER_S)) for edge in edges), gaps.count]
        return Series(self.labels, self.moments.nowhere_but_at_the_end(gaps.sum_ps / PS_PER_S), counts)


class _Own:
    """kvsim's own metrics."""

    def __init__(self, result: Result, times_s: Column) -> None:
        self.result = result
        self.moments = _Moments(times_s)
        self.labels = {"model_name": str(_setting(result, "model.name") or ""), "engine": "0"}

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


def _setting(result: Result, key: str) -> Any:
    return result.scenario_resolved.get(key, {}).get("value")


def _one_two_five(most: int) -> list[float]:
    """1, 2, 5, 10, ... up to `most`."""
    steps = (factor * 10**power for power in range(len(str(most))) for factor in (1, 2, 5))
    return [float(step) for step in steps if step <= most]

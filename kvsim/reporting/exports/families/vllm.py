"""The metrics that mean what vLLM's mean, under vLLM's names (`data/vllm_metrics.json`)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.result import Result
from kvsim.reporting.exports.families.interface import Family, Labels, Moments, Series, labels_of, setting
from kvsim.request import PS_PER_S
from kvsim.study.recorded.measured import Column
from kvsim.study.recorded.simulated import column_of, gauges, output_tokens

FINISHED = "finished"


@cache
def facts() -> dict[str, Any]:
    """vLLM's metrics by name, with the edges of their histograms."""
    read: dict[str, Any] = json.loads(
        files("kvsim.reporting.exports").joinpath("data/vllm_metrics.json").read_text("utf-8")
    )
    return read


class Vllm:
    """vLLM's metrics."""

    def __init__(self, result: Result, times_s: Column) -> None:
        self.result = result
        self.moments = Moments(times_s)
        self.labels = labels_of(result)

    def families(self) -> Iterator[Family]:
        """In the order of the file of facts; those of which nothing is known are left out."""
        told = dict(self._told())
        for name, (kind, meaning, *edges) in facts()["metrics"].items():
            if name in told:
                yield Family(name, kind, meaning, told[name], self._edges(*edges))

    def _edges(self, name: str = "") -> Sequence[float]:
        if name == "lengths":
            return _one_two_five(int(setting(self.result, "engine.max_model_len") or self._longest()))
        found: Sequence[float] = facts()["edges"].get(name, ())
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
        reasons: Mapping[str, str] = facts()["finished_reasons"]
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
        edges = self._edges(facts()["metrics"][name][2])
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


def _one_two_five(most: int) -> list[float]:
    """1, 2, 5, 10, ... up to `most`."""
    steps = (factor * 10**power for power in range(len(str(most))) for factor in (1, 2, 5))
    return [float(step) for step in steps if step <= most]

"""Scrapes of a server's `/metrics`: Prometheus text exposition of vLLM or SGLang, one scrape or several in a row.

A metric that comes again with the same labels begins the next scrape; in OpenMetrics that holds several, where all of a
metric stand together, the samples of one time are one scrape. The time of a scrape is that of its samples
(since 1970, behind the value), else scrapes are `interval_s` apart. Ranks of one replica (`tp_rank`,
`pp_rank`) tell the same and the first is taken. Names are those of vLLM's and SGLang's metrics, today's and older.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from kvsim.errors import InputError
from kvsim.study.recorded.measured import Measured
from kvsim.study.recorded.readers.text import number, one_of, series_of

INTERVAL_S = 15.0
"""Between scrapes without times: the interval of many set-ups, and Prometheus' own examples."""
MILLI = 1e-3

GAUGES = {
    "running": ("vllm:num_requests_running", "sglang:num_running_reqs"),
    "waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs"),
    "kv_share": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
}
COUNTERS = {
    "prompt_tokens": ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total"),
    "output_tokens": ("vllm:generation_tokens_total", "sglang:generation_tokens_total"),
    "preemptions": ("vllm:num_preemptions_total",),
    "asked": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "hit": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
}
LATENCIES = {
    "ttft_s": ("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
    "tpot_s": (
        "vllm:request_time_per_output_token_seconds", "vllm:time_per_output_token_seconds",
        "sglang:time_per_output_token_seconds", "vllm:inter_token_latency_seconds",
        "sglang:inter_token_latency_seconds",
    ),
    "e2e_s": ("vllm:e2e_request_latency_seconds", "sglang:e2e_request_latency_seconds"),
}  # fmt: skip
PREFIXES = ("vllm:", "sglang:")

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+(-?[\d.]+))?\s*$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_FIRST_RANK = ("tp_rank", "pp_rank", "moe_ep_rank")
_REPLICA = ("engine", "dp_rank")
_END = "# EOF"
"""The last line of OpenMetrics; several of them: scrapes in a row."""

Scrape = dict[str, float]


def is_scrape(text: str) -> bool:
    """Whether a text holds samples of vLLM or SGLang."""
    return any(line.startswith(PREFIXES) for line in text.splitlines())


def read(path: Path, text: str, *, interval_s: float = INTERVAL_S) -> Measured:
    """Gauges at each scrape, rates between two, mean latencies and counts from the first scrape to the last.

    Of one scrape alone, counts and latencies are those since the server began.
    """
    scrapes = list(_scrapes(path, text))
    timed = [moment for moment, _ in scrapes if moment is not None]
    if timed and len(timed) < len(scrapes):
        raise InputError(f"{path}: some scrapes have times and some have none; give all of them times, or none")
    times = [moment - timed[0] for moment in timed] if timed else [interval_s * at for at in range(len(scrapes))]
    if any(later <= sooner for sooner, later in zip(times, times[1:], strict=False)):
        raise InputError(f"{path}: scrapes are not in the order of their times; sort them")
    values = [scrape for _, scrape in scrapes]
    rows = [_gauges(path, scrape) for scrape in values]
    for at in range(1, len(values)):
        for name, counter in (("prompt_tokens_per_s", "prompt_tokens"), ("output_tokens_per_s", "output_tokens")):
            more = _grown(values[at - 1], values[at], COUNTERS[counter])
            if more is not None:
                rows[at][name] = more / (times[at] - times[at - 1])
    before: Scrape = values[0] if len(values) > 1 else {}
    last = values[-1]
    asked, hit = (_grown(before, last, COUNTERS[name]) for name in ("asked", "hit"))
    preemptions = _grown(before, last, COUNTERS["preemptions"])
    if not any(rows) and preemptions is None:
        known = ", ".join(names[0] for names in GAUGES.values())
        raise InputError(f"{path}: holds none of {known}, or SGLang's; scrape /metrics of the server itself")
    latencies = {name: _mean(before, last, names) for name, names in LATENCIES.items()}
    moments = np.array(times) if timed else np.array(times) + interval_s
    return Measured(
        source=path.name,
        series=series_of(list(zip(moments, rows, strict=True))) if any(rows) else None,
        latencies={name: {"mean": mean} for name, mean in latencies.items() if mean is not None},
        preemptions=None if preemptions is None else int(preemptions),
        hit_rate=hit / asked if asked and hit is not None else None,
        notes=() if timed else (f"{path.name}: scrapes have no times and are taken to be {interval_s:g} s apart.",),
    )


def _scrapes(path: Path, text: str) -> Iterator[tuple[float | None, Scrape]]:
    """(time, values by name) of each scrape; replicas of a server must be one."""
    together = text.count(_END) == 1
    seen: set[tuple[str, str]] = set()
    values: Scrape = {}
    moment: float | None = None
    of_time: dict[float, Scrape] = {}
    replicas: set[str] = set()
    for line, entry in enumerate(text.splitlines(), 1):
        if not entry.startswith(PREFIXES):
            continue
        sample = _SAMPLE.match(entry)
        if sample is None:
            raise InputError(f"{path}, line {line}: is no sample; it is NAME{{labels}} VALUE, as /metrics writes it")
        name, labels, value, stamp = sample.groups()
        told = dict(_LABEL.findall(labels or ""))
        if together and stamp is not None:
            moment = _time(path, line, stamp)
            values = of_time.setdefault(moment, {})
        elif (name, labels or "") in seen:
            yield moment, values
            seen, values, moment = set(), {}, None
        seen.add((name, labels or ""))
        if any(told.get(rank, "0") != "0" for rank in _FIRST_RANK) or name.endswith("_bucket"):
            continue
        replicas.update(told[key] for key in _REPLICA if key in told)
        if stamp is not None:
            moment = _time(path, line, stamp)
        if _known(name):
            values[name] = values.get(name, 0.0) + number(value, f"{path}, line {line}: {name}")
    one_of(replicas, path, "engines")
    if not seen:
        raise InputError(f"{path}: has no sample of vLLM or SGLang; scrape /metrics of the server itself")
    if of_time:
        yield from sorted(of_time.items())
    else:
        yield moment, values


def _time(path: Path, line: int, stamp: str) -> float:
    """Prometheus counts whole milliseconds, OpenMetrics seconds with a point."""
    return number(stamp, f"{path}, line {line}: the time") * (1.0 if "." in stamp else MILLI)


def _known(name: str) -> bool:
    names = {one for group in (GAUGES, COUNTERS) for several in group.values() for one in several}
    sums = {f"{one}{end}" for several in LATENCIES.values() for one in several for end in ("_sum", "_count")}
    return name in names or name in sums


def _gauges(path: Path, scrape: Scrape) -> dict[str, float]:
    told = {}
    for gauge, names in GAUGES.items():
        value = _first(scrape, names)
        if value is not None:
            told[gauge] = number(value, f"{path}: {names[0]}", most=1.0 if gauge == "kv_share" else None)
    return told


def _first(scrape: Mapping[str, float], names: tuple[str, ...]) -> float | None:
    return next((scrape[name] for name in names if name in scrape), None)


def _grown(before: Scrape, after: Scrape, names: tuple[str, ...]) -> float | None:
    """How much a counter grew; one that fell was reset by a restart and counts from 0."""
    now = _first(after, names)
    if now is None:
        return None
    then = _first(before, names) or 0.0
    return now - then if now >= then else now


def _mean(before: Scrape, after: Scrape, names: tuple[str, ...]) -> float | None:
    for name in names:
        total = _grown(before, after, (f"{name}_sum",))
        count = _grown(before, after, (f"{name}_count",))
        if total is not None and count:
            return total / count
    return None

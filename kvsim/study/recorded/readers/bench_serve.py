"""Results of `vllm bench serve --save-result`: totals, and with `--save-detailed` a list for each quantity.

Lists are seconds, statistics milliseconds. SGLang's benchmark keeps lists of the same names with `--output-details`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from kvsim.errors import InputError
from kvsim.study.recorded.measured import Column, Measured, Requests
from kvsim.study.recorded.readers.text import number

LISTS = ("input_lens", "output_lens", "ttfts", "itls")
NAMES = {"ttft_s": "ttft", "tpot_s": "tpot", "e2e_s": "e2el"}
STATISTICS = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99"}
MILLI = 1e-3
AGREE = 0.05
"""Lists and means of one file tell the same; apart by more, one of them is in another unit."""
FORM = "it is an object with duration, completed and mean_ttft_ms, as `vllm bench serve --save-result` writes it"


def is_result(text: str) -> bool:
    """Whether a JSON text may be a result."""
    return '"completed"' in text and ("_ttft_ms" in text or '"ttfts"' in text)


def read(path: Path, text: str) -> Measured:
    """Requests where the file has their lists, else the statistics. A failed request (no output) is left out."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error}); {FORM}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: holds {'a list' if isinstance(found, list) else json.dumps(found)}; {FORM}")
    latencies = {name: told for name, key in NAMES.items() if (told := _statistics(path, found, key))}
    requests = _requests(path, found) if any(found.get(name) for name in LISTS) else None
    if requests is None and not latencies:
        raise InputError(f"{path}: tells no latency; {FORM}")
    if requests is not None and "mean" in latencies.get("ttft_s", {}):
        listed_s, mean_s = float(requests.ttft_s.mean()), latencies["ttft_s"]["mean"]
        if abs(listed_s - mean_s) > AGREE * max(listed_s, mean_s):
            raise InputError(
                f"{path}: ttfts have a mean of {listed_s:g} and mean_ttft_ms is {mean_s / MILLI:g}; lists are seconds, "
                "statistics milliseconds: one of them has another unit"
            )
    rate = found.get("output_throughput")
    return Measured(
        source=path.name,
        requests=requests,
        latencies=latencies,
        output_tokens_per_s=None if rate is None else number(rate, f"{path}: output_throughput"),
    )


def _statistics(path: Path, found: dict[str, Any], key: str) -> dict[str, float]:
    told = {}
    for name, word in STATISTICS.items():
        value = found.get(f"{word}_{key}_ms")
        if value is not None:
            told[name] = MILLI * number(value, f"{path}: {word}_{key}_ms")
    return told


def _requests(path: Path, found: dict[str, Any]) -> Requests:
    lists = {}
    for name in LISTS:
        values = found.get(name)
        if not isinstance(values, list) or len(values) != len(found.get(LISTS[0]) or ()):
            raise InputError(
                f"{path}: {name} is no list as long as {LISTS[0]}; keep all of {', '.join(LISTS)} (--save-detailed)"
            )
        lists[name] = values
    prompts, outputs, ttft_s = (_numbers(path, name, lists[name]) for name in LISTS[:3])
    gaps = lists["itls"]
    for index, one in enumerate(gaps):
        if not isinstance(one, list):
            raise InputError(f"{path}: itls[{index}] is {one!r}; it is a list of seconds")
    decode_s = np.array([_numbers(path, f"itls[{index}]", one).sum() for index, one in enumerate(gaps)])
    starts = found.get("start_times")
    if starts:
        if not isinstance(starts, list) or len(starts) != len(prompts):
            raise InputError(f"{path}: start_times is no list as long as {LISTS[0]}; give each request its start")
        arrival_s = _numbers(path, "start_times", starts)
        arrival_s = arrival_s - arrival_s.min(initial=np.inf)
    else:
        arrival_s = np.full(len(prompts), np.nan)
    done = outputs > 0
    if not done.any():
        raise InputError(f"{path}: no request got any output; nothing was measured")
    order = np.flatnonzero(done)
    if not np.isnan(arrival_s).any():
        order = order[np.argsort(arrival_s[order], kind="stable")]
    return Requests(
        prompt_tokens=prompts[order],
        output_tokens=outputs[order],
        arrival_s=arrival_s[order],
        ttft_s=ttft_s[order],
        e2e_s=(ttft_s + decode_s)[order],
    )


def _numbers(path: Path, name: str, values: list[Any]) -> Column:
    return np.array([number(value, f"{path}: {name}[{index}]") for index, value in enumerate(values)], dtype=np.float64)

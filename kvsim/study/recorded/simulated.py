"""A simulated run in the form of a measured one: its requests, and what a server's gauges would have shown when."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kvsim.metrics.result import Result
from kvsim.study.recorded.measured import Column, Measured, Requests, Series

TICK_S = 1.0
"""Seconds between two looks at the gauges where the measured run has none."""


def simulated(result: Result, times_s: Column | None = None) -> Measured:
    """What `result` is as a measurement, its gauges read at `times_s` (None: each second)."""
    metrics = result.metrics
    if times_s is None:
        times_s = np.arange(TICK_S, metrics["simulated_s"] + TICK_S, TICK_S)
    asked = metrics.get("hit_rate")
    return Measured(
        source=result.name,
        requests=_requests(result.tables["requests"]),
        series=_series(result, times_s),
        preemptions=metrics["preemptions"],
        hit_rate=None if asked is None else float(asked),
        output_tokens_per_s=_rate(result),
    )


def column_of(table: Mapping[str, Sequence[Any]], name: str) -> Column:
    """A column of numbers; NaN where there is none."""
    return np.array([np.nan if value is None else float(value) for value in table[name]], dtype=np.float64)


def _requests(table: Mapping[str, Sequence[Any]]) -> Requests:
    done = np.array([end == "finished" for end in table["end"]], dtype=bool)
    columns = {name: column_of(table, name)[done] for name in ("prompt_tokens", "arrival_s", "ttft_s", "e2e_s")}
    return Requests(output_tokens=column_of(table, "generated_tokens")[done], **columns)


def _rate(result: Result) -> float | None:
    """Output tokens per second from the first arrival to the last token, as benchmark clients count."""
    table = result.tables["requests"]
    tokens, end_s = column_of(table, "generated_tokens"), column_of(table, "end_s")
    length_s = float(np.nanmax(end_s) - np.nanmin(column_of(table, "arrival_s"))) if len(end_s) else 0.0
    return float(np.nansum(tokens)) / length_s if length_s > 0 else None


def gauges(result: Result, times_s: Column) -> dict[str, Column]:
    """What the server's gauges would have shown at each moment: requests running and waiting, use of the pool.

    They hold from a row of `memory` to the next.
    """
    memory, pool = result.tables["memory"], result.metrics["pool_tokens"]
    since = column_of(memory, "time_s")
    rows = np.searchsorted(since, times_s, side="right") - 1
    over = (rows < 0) | (times_s > since[-1])
    rows = np.clip(rows, 0, len(since) - 1)
    columns = {name: np.where(over, 0.0, column_of(memory, name)[rows]) for name in ("running", "waiting")}
    if pool:
        held = pool - sum(column_of(memory, name) for name in ("free", "cached", "external"))
        columns["kv_share"] = np.where(over, 0.0, held[rows] / pool)
    return columns


def output_tokens(result: Result, times_s: Column) -> Column:
    """Output tokens that had been emitted by each moment; those of a step, or a leap, come evenly while it lasts.

    What is sampled at the end of a prompt comes with the first token, and what is sampled when a preempted request has
    computed its tokens again, which no table has, comes when it runs again.
    """
    requests, steps = result.tables["requests"], result.tables["steps"]
    start_s, duration_s = column_of(steps, "start_s"), column_of(steps, "duration_s")
    if not len(start_s):
        return np.zeros(len(times_s))
    decoded = np.concatenate([[0.0], np.cumsum(column_of(steps, "decode_tokens"))])
    knots_s = np.stack([start_s, start_s + duration_s], axis=1).ravel()
    emitted = np.interp(times_s, knots_s, np.stack([decoded[:-1], decoded[1:]], axis=1).ravel(), left=0.0)
    first_s, resumed_s = column_of(requests, "first_token_s"), column_of(result.tables["preemptions"], "resumed_s")
    begun = ~np.isnan(first_s)
    emitted = emitted + _so_far(first_s[begun], np.ones(int(begun.sum())), times_s)
    others_s = np.concatenate(
        [
            resumed_s[~np.isnan(resumed_s)],
            np.repeat(first_s[begun], (column_of(requests, "samples")[begun] - 1).astype(int)),
        ]
    )
    rest = column_of(requests, "generated_tokens").sum() - decoded[-1] - begun.sum()
    if rest > 0 and len(others_s):
        emitted = emitted + _so_far(others_s, np.full(len(others_s), rest / len(others_s)), times_s)
    return np.asarray(emitted)


def _series(result: Result, times_s: Column) -> Series:
    """Gauges, and rates as differences of what had been computed or emitted by then."""
    columns = gauges(result, times_s)
    requests = result.tables["requests"]
    first_s = column_of(requests, "first_token_s")
    begun = ~np.isnan(first_s)
    prompts = _so_far(first_s[begun], column_of(requests, "prompt_tokens")[begun], times_s)
    outputs = output_tokens(result, times_s)
    lengths_s = np.diff(times_s, prepend=0.0)
    for name, so_far in (("prompt_tokens_per_s", prompts), ("output_tokens_per_s", outputs)):
        amount = np.diff(so_far, prepend=0.0)
        columns[name] = np.divide(amount, lengths_s, out=np.zeros_like(amount), where=lengths_s > 0)
    return Series(times_s, columns)


def _so_far(when_s: Column, amount: Column, times_s: Column) -> Column:
    """The sum of the amounts that had come by each moment."""
    order = np.argsort(when_s, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(amount[order])])
    return np.asarray(sums[np.searchsorted(when_s[order], times_s, side="right")])

"""Whether the intervals of a study may be trusted, and what to say where they may not."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kvsim.study.replication.runs.replicate import Replicate
from kvsim.study.statistics.batches import CORRELATION_LIMIT
from kvsim.study.statistics.saturation import ESTIMATED_TO, MEMORY_LIMIT, Queue, queue

if TYPE_CHECKING:
    from kvsim.study.replication.asked import Method
    from kvsim.study.replication.study import Variant

SHOWN = ("ttft_s.p99", "tpot_s.p99", "e2e_s.p99")
"""Percentiles for which too few samples are told; the others need fewer."""


def judged(runs: Sequence[Replicate]) -> Queue | None:
    """What the queue of these runs did; None where their windows were not meant to show a steady state."""
    if not all(run.settles for run in runs):
        return None
    return queue(
        np.array([run.waiting for run in runs]),
        np.array([run.present for run in runs]),
        [run.arrivals for run in runs],
    )


def notes(variants: Sequence["Variant"], method: "Method") -> list[str]:
    """What the reader should know of these variants' intervals, in sentences."""
    said = [
        f"{one.name} is saturated: its queue grows by {one.queue.growth:.0%} of what arrives, so that its numbers are "
        "those of this length of run, and have no interval."
        for one in variants
        if one.queue is not None and one.saturated
    ]
    if nothing := [one.name for one in variants if one.runs and not any(run.arrivals for run in one.runs)]:
        said.append(
            f"Nothing is measured of {listed(nothing)}: no request arrives in the measured window. Simulate more "
            "requests, or leave less out (--warmup, window.warmup)."
        )
    steady = [one for one in variants if not one.saturated]
    if short := {one.name: one.queue for one in steady if one.queue is not None and not one.queue.forgets}:
        memories = {name: queue.memory for name, queue in short.items()}
        said.append(
            f"Intervals of {listed(short)} are not to be trusted: the run is short against what its queue remembers (a "
            f"twentieth of it correlates {_span(memories)} with the next; {MEMORY_LIMIT:g} at most). Simulate "
            f"{_more(short.values())} requests."
        )
    if alike := {one.name: one.correlation for one in steady if not batches_differ(one.correlation)}:
        said.append(
            f"Intervals of {listed(alike)} are not to be trusted: neighbouring batches correlate {_span(alike)} "
            f"({CORRELATION_LIMIT:g} at most). Simulate more requests, or take fewer batches."
        )
    if few := {one.name: needed for one in steady if (needed := _needed(one))}:
        said.append(
            f"Intervals of 99th percentiles of {listed(few)} rest on too few requests and are too short: with some "
            f"{max(few.values()):,} a {'batch' if method == 'batches' else 'run'}, ten beyond the percentile would not "
            "follow one another."
        )
    return said


def batches_differ(correlation: float | None) -> bool:
    """Neighbouring batches correlate little enough for an interval; so they do where there are none."""
    return correlation is None or correlation <= CORRELATION_LIMIT


def _more(short: Collection[Queue]) -> str:
    """How many times as many requests would do for all of these queues."""
    times = f"{max(queue.times_as_long for queue in short):.1f} times as many"
    return f"at least {times}" if any(queue.memory > ESTIMATED_TO for queue in short) else f"some {times}"


def listed(names: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _span(values: Mapping[str, float | None]) -> str:
    known = [value for value in values.values() if value is not None]
    low, high = f"{min(known):.2f}", f"{max(known):.2f}"
    return low if low == high else f"{low} to {high}"


def _needed(variant: "Variant") -> int | None:
    return max((variant.estimates[key].needed or 0 for key in SHOWN if key in variant.estimates), default=0) or None

"""The time to first token in its parts: waiting in the queue, loading KV, computing the prompt."""

from dataclasses import dataclass
from typing import Any

from kvsim.metrics.result import Result
from kvsim.reporting.finding import three_digits

LOAD_NOTE = "no tier that KV is loaded from is modelled in runs, so load is 0"
SWAP_NOTE = f"{LOAD_NOTE}; what is swapped back before a first token counts to prefill"


@dataclass(frozen=True)
class Part:
    """Mean and 99th percentile, seconds."""

    mean_s: float
    p99_s: float


@dataclass(frozen=True)
class TtftSplit:
    """TTFT = queue + load + prefill of every request, and so of the means; percentiles do not add up.

    The queue is arrival to the first step that computes something of the request, the prefill from there to its first
    token, with whatever happens in between: other requests' chunks, preemptions. `note` says what load is.
    """

    ttft: Part
    queue: Part
    load: Part
    prefill: Part
    note: str


def ttft_split(result: Result) -> TtftSplit | None:
    """The split over the requests that arrived in the measured window; None where none got a token.

    Where some were scheduled and never got a token, their time in the queue counts as well.
    """
    spreads = [result.metrics.get(name) for name in ("ttft_s", "queue_s", "prefill_s")]
    if not all(spreads):
        return None
    ttft, queue, prefill = (_part(spread or {}) for spread in spreads)
    return TtftSplit(ttft, queue, Part(0.0, 0.0), prefill, SWAP_NOTE if _swaps(result) else LOAD_NOTE)


def ttft_line(result: Result) -> list[str]:
    """Say it in at most one line."""
    split = ttft_split(result)
    if split is None:
        return []
    parts = {"queue": split.queue, "load": split.load, "prefill": split.prefill}
    means = " + ".join(f"{name} {_seconds(part.mean_s)}" for name, part in parts.items())
    slow = ", ".join(f"{name} {_seconds(part.p99_s)}" for name, part in parts.items())
    return [
        f"TTFT: mean {_seconds(split.ttft.mean_s)} s = {means}; p99 {_seconds(split.ttft.p99_s)} s, of the parts "
        f"{slow} ({split.note})"
    ]


def _part(spread: dict[str, Any]) -> Part:
    return Part(float(spread["mean"]), float(spread["p99"]))


def _swaps(result: Result) -> bool:
    return bool(result.scenario_resolved.get("engine.preemption", {}).get("value") == "swap")


def _seconds(time_s: float) -> str:
    return three_digits(time_s) if time_s else "0"

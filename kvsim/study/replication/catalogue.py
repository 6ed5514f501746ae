"""The numbers of a run that a study compares: by dotted name, and which direction of each is good."""

from collections.abc import Mapping
from typing import Any

from kvsim.metrics.waste import waste_share
from kvsim.study.statistics.paired import Better

WASTE = "waste_share"
"""Not among the metrics of a run, which has its parts; see `metrics.waste`."""

_BETTER: Mapping[Better, tuple[str, ...]] = {
    "lower": (
        WASTE, "mean_waiting", "rejected", "aborted", "cancelled", "unfinished", "preemptions", "lost_tokens",
        "recomputed_tokens", "swapped_tokens", "swapped_bytes", "copied_bytes", "gathered_bytes", "padding_tokens",
        "padding_context_tokens", "regret_tokens", "duplicate_share", "fragmentation", "unusable_share", "blocked",
        "queue_s", "prefill_s", "ttft_s", "tpot_s", "itl_s", "e2e_s",
    ),
    "higher": (
        "finished", "hit_rate", "hit_tokens", "saved_share", "output_tokens_per_s", "requests_per_s", "goodput_per_s",
    ),
}  # fmt: skip
"""The first word of a name to what is good; the others are neither good nor bad."""

_DIRECTION = {word: direction for direction, words in _BETTER.items() for word in words}


def better(key: str) -> Better | None:
    """Which direction of a metric is good; None where neither is."""
    return _DIRECTION.get(key.partition(".")[0])


def numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Every number of a run by dotted name, and the waste; what does not exist is left out."""
    found = dict(_leaves(metrics, ""))
    waste = waste_share(metrics) if "mean_share" in metrics else None
    return found if waste is None else {WASTE: waste, **found}


def percentile_of(key: str) -> tuple[str, int] | None:
    """The metric and the percentile that a name such as `ttft_s.p99` asks for; None where it asks for none."""
    name, _, percent = key.rpartition(".p")
    return (name, int(percent)) if name and percent.isdecimal() else None


def _leaves(values: Mapping[str, Any], above: str) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            found += _leaves(value, f"{above}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((above + name, float(value)))
    return found

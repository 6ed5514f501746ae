"""How evenly a fleet is loaded, as numbers of its least and its most loaded replica."""

from collections.abc import Sequence

from kvsim.metrics.result import Result

SPREADS = (
    ("requests served", "finished", "", 0, 1),
    ("running, mean", "mean_running", "", 1, 1),
    ("used, mean", "used_share", "%", 1, 100),
    ("cached, mean", "cached_share", "%", 1, 100),
    ("TTFT, mean", "ttft_mean_s", "s", 2, 1),
    ("preemptions", "preemptions", "", 0, 1),
)
"""Label, column of the table of replicas, unit, digits, and what the column is multiplied by."""


def spread(result: Result, column: str, times: float) -> tuple[float | None, float | None]:
    """The least and the most of a column over the replicas; None where there are none, or no such number."""
    if "replicas" not in result.tables:
        return None, None
    values = [times * value for value in result.tables["replicas"][column] if value is not None]
    return (min(values), max(values)) if values else (None, None)


def worth_telling(results: Sequence[Result], column: str) -> bool:
    """Some replica of some fleet has a number there that is not 0."""
    return any(spread(result, column, 1)[1] for result in results)

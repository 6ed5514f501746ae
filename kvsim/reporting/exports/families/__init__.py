"""What a run looked like to a scraper at some moments: metric families with values, counters and histograms exact.

vLLM's names are kept for what means what vLLM's mean; `kvsim:` names the rest. Gauges are read as `kvsim compare-run`
reads a simulated run.
"""

from kvsim.metrics.result import Result
from kvsim.reporting.exports.families.interface import Family, Series
from kvsim.reporting.exports.families.own import OWN, Own
from kvsim.reporting.exports.families.vllm import Vllm, facts
from kvsim.study.recorded.measured import Column

__all__ = ["Family", "Series", "families", "names"]


def families(result: Result, times_s: Column) -> list[Family]:
    """All that the tables of a run can tell a scraper at these moments since it began, in their order, sorted."""
    return [*Vllm(result, times_s).families(), *Own(result, times_s).families()]


def names() -> dict[str, str]:
    """The kind of every metric that an export may hold, by name."""
    known = {name: entry[0] for name, entry in facts()["metrics"].items()}
    return known | {name: kind for name, (kind, _) in OWN.items()}

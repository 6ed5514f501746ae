"""Every figure of runs, in the order in which a report shows them.

What draws them loads matplotlib when it draws, which takes most of a second.
"""

from collections.abc import Sequence

from kvsim.metrics.result import Result
from kvsim.reporting.figures.interface import FigureKind
from kvsim.reporting.figures.latency.trade_off import has_trade_off, trade_off
from kvsim.reporting.figures.memory.address_map import memory_map
from kvsim.reporting.figures.memory.over_time import memory_over_time
from kvsim.reporting.figures.memory.side_by_side import memory_side_by_side


def has_memory(result: Result) -> bool:
    """Its pool was recorded over time: it has one, time passed, and it is no fleet."""
    return bool(result.metrics["pool_tokens"] and result.metrics["simulated_s"] and "replicas" not in result.tables)


def _with_memory(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if has_memory(result)]


FIGURES: tuple[FigureKind, ...] = (
    FigureKind(
        name="memory_over_time",
        title="KV memory over time",
        caption="Whose the KV memory is, stacked to the pool, with preemptions and rejections marked; below, the "
        "requests running and waiting.",
        applies=lambda results: len(results) == 1 and has_memory(results[0]),
        draw=lambda results: memory_over_time(results[0]),
    ),
    FigureKind(
        name="comparison",
        title="KV memory side by side",
        caption="Share of the pool by class over time, one panel a variant, on the same traffic.",
        applies=lambda results: len(results) > 1 and any(map(has_memory, results)),
        draw=lambda results: memory_side_by_side(_with_memory(results)),
    ),
    FigureKind(
        name="memory_map",
        title="What lies at which address",
        caption="Addresses upwards, time to the right, coloured by class; shades of a colour tell requests apart.",
        applies=lambda results: len(results) == 1 and has_memory(results[0]) and "addresses" in results[0].tables,
        draw=lambda results: memory_map(results[0]),
    ),
    FigureKind(
        name="trade_off",
        title="Latency against the size of the pool",
        caption="Latencies of variants whose pools differ.",
        applies=has_trade_off,
        draw=trade_off,
    ),
)

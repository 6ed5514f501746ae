"""Every figure of runs, in the order in which a report shows them.

The drawing itself is imported when a figure is drawn: matplotlib takes most of a second.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.metrics.result import Result
from kvsim.reporting.figures.interface import FigureKind

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def has_memory(result: Result) -> bool:
    """Its pool was recorded over time: it has one, time passed, and it is no fleet."""
    return bool(result.metrics["pool_tokens"] and result.metrics["simulated_s"] and "replicas" not in result.tables)


def _draw_memory_over_time(results: Sequence[Result]) -> "Figure":
    from kvsim.reporting.memory_over_time import memory_over_time

    return memory_over_time(results[0])


def _draw_side_by_side(results: Sequence[Result]) -> "Figure":
    from kvsim.reporting.memory_side_by_side import memory_side_by_side

    return memory_side_by_side([result for result in results if has_memory(result)])


def _draw_map(results: Sequence[Result]) -> "Figure":
    from kvsim.reporting.memory_map import memory_map

    return memory_map(results[0])


def _draw_trade_off(results: Sequence[Result]) -> "Figure":
    from kvsim.reporting.trade_off import trade_off

    return trade_off(results)


def _has_trade_off(results: Sequence[Result]) -> bool:
    from kvsim.reporting.trade_off import has_trade_off

    return has_trade_off(results)


FIGURES: tuple[FigureKind, ...] = (
    FigureKind(
        name="memory_over_time",
        title="KV memory over time",
        caption="Whose the KV memory is, stacked to the pool, with preemptions and rejections marked; below, the "
        "requests running and waiting.",
        applies=lambda results: len(results) == 1 and has_memory(results[0]),
        draw=_draw_memory_over_time,
    ),
    FigureKind(
        name="comparison",
        title="KV memory side by side",
        caption="Share of the pool by class over time, one panel a variant, on the same traffic.",
        applies=lambda results: len(results) > 1 and any(map(has_memory, results)),
        draw=_draw_side_by_side,
    ),
    FigureKind(
        name="memory_map",
        title="What lies at which address",
        caption="Addresses upwards, time to the right, coloured by class; shades of a colour tell requests apart.",
        applies=lambda results: len(results) == 1 and has_memory(results[0]) and "addresses" in results[0].tables,
        draw=_draw_map,
    ),
    FigureKind(
        name="trade_off",
        title="Latency against the size of the pool",
        caption="Latencies of variants whose pools differ.",
        applies=_has_trade_off,
        draw=_draw_trade_off,
    ),
)

"""Every figure of runs, in the order in which a report shows them.

What draws them loads matplotlib when it draws, which takes most of a second.
"""

from collections.abc import Sequence

from kvsim.metrics.result import Result
from kvsim.reporting.figures.catalog.bytes_per_token import bytes_per_token, has_model
from kvsim.reporting.figures.catalog.concurrency import concurrency, has_pool
from kvsim.reporting.figures.catalog.kv_share import has_weights, kv_share
from kvsim.reporting.figures.interface import FigureKind, has_memory
from kvsim.reporting.figures.latency.cost import costs, has_costs
from kvsim.reporting.figures.latency.distributions import has_latencies, latencies
from kvsim.reporting.figures.latency.first_token import first_token, has_first_tokens
from kvsim.reporting.figures.latency.trade_off import has_trade_off, trade_off
from kvsim.reporting.figures.memory.address_map import memory_map
from kvsim.reporting.figures.memory.fragmentation import fragmentation, has_holes
from kvsim.reporting.figures.memory.over_time import memory_over_time
from kvsim.reporting.figures.memory.side_by_side import memory_side_by_side
from kvsim.reporting.figures.memory.strips import has_addresses, strips
from kvsim.reporting.figures.memory.waste import has_waste, waste
from kvsim.reporting.figures.prefix.tree_figure import has_prompts, prefix_tree
from kvsim.reporting.figures.requests.counts import counts
from kvsim.reporting.figures.requests.preemptions import has_preemptions, preemptions
from kvsim.reporting.figures.requests.published import has_published, published
from kvsim.reporting.figures.requests.timeline import has_timeline, timeline


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
        name="memory_strips",
        title="What lies at which address, at five moments",
        caption="Strips of the memory at the same moments, a column a variant: holes, reservations and blocks.",
        applies=has_addresses,
        draw=strips,
    ),
    FigureKind(
        name="waste",
        title="Where the KV memory goes",
        caption="Each way of keeping KV as a bar: token states, reservation, internal and external fragmentation, in "
        "the form of Fig. 2 of the PagedAttention paper; thin bars are published figures.",
        applies=has_waste,
        draw=waste,
    ),
    FigureKind(
        name="published",
        title="Published beside simulated",
        caption="What a paper prints of these runs, beside what came out.",
        applies=has_published,
        draw=published,
    ),
    FigureKind(
        name="fragmentation",
        title="Holes in the free memory",
        caption="Above, the share of the free slots that lies outside the largest hole; below, how large that hole is.",
        applies=lambda results: any(map(has_holes, results)),
        draw=fragmentation,
    ),
    FigureKind(
        name="running_and_waiting",
        title="Requests running and waiting",
        caption="How many requests run and wait over time, a line a variant.",
        applies=lambda results: len(results) > 1 and any(map(has_memory, results)),
        draw=lambda results: counts(_with_memory(results)),
    ),
    FigureKind(
        name="preemptions",
        title="Preemptions and what they cost",
        caption="How often running requests have lost their memory by each moment, and the tokens that this cost.",
        applies=has_preemptions,
        draw=preemptions,
    ),
    FigureKind(
        name="timeline",
        title="Requests from arrival to end",
        caption="Some requests, a row each: waiting, prefill, decode, preempted, and running again.",
        applies=has_timeline,
        draw=lambda results: timeline(results[0]),
    ),
    FigureKind(
        name="latencies",
        title="How long requests wait and take",
        caption="Share of the requests whose time to the first token (TTFT), time per output token after it (TPOT) and "
        "time from arrival to end (E2E) is at most so long.",
        applies=has_latencies,
        draw=latencies,
    ),
    FigureKind(
        name="first_token",
        title="What the time to the first token is made of",
        caption="Mean time to the first token, as waiting in the queue and computing the prompt.",
        applies=has_first_tokens,
        draw=first_token,
    ),
    FigureKind(
        name="cost",
        title="What tokens cost against how long people wait",
        caption="US dollars per million output tokens against the 99th percentiles of TTFT and TPOT; those that no "
        "other beats in both are joined.",
        applies=has_costs,
        draw=costs,
    ),
    FigureKind(
        name="trade_off",
        title="Latency against the size of the pool",
        caption="Latencies of variants whose pools differ.",
        applies=has_trade_off,
        draw=trade_off,
    ),
    FigureKind(
        name="prefix_tree",
        title="What prompts share",
        caption="The tree of prefixes: widths are requests, heights tokens, from the beginning of the prompts down.",
        applies=has_prompts,
        draw=lambda results: prefix_tree(results[0]),
    ),
    FigureKind(
        name="requests_at_once",
        title="Requests at once against their length",
        caption="How many requests of each length the pool holds at once, from 4K to 1M tokens.",
        applies=has_pool,
        draw=concurrency,
    ),
    FigureKind(
        name="kv_share",
        title="One request's KV against the weights",
        caption="Share of one request's KV in KV and weights together, from 4K to 1M tokens, beside other models.",
        applies=has_weights,
        draw=kv_share,
    ),
    FigureKind(
        name="bytes_per_token",
        title="KV of one token, by kind of attention",
        caption="What a token of KV takes in every model of the catalogue, a row for each kind of attention; the model "
        "of the run is marked.",
        applies=has_model,
        draw=bytes_per_token,
    ),
)

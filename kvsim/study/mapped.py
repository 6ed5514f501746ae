"""Where every slot went, recorded once it is known that a run is short enough for it."""

from collections.abc import Sequence

from kvsim.engine.addresses import can_follow
from kvsim.metrics.result import Result
from kvsim.scenario.build import build
from kvsim.scenario.resolve import Scenario
from kvsim.study.reporter import Progress
from kvsim.study.side_by_side import part_of
from kvsim.study.single import run

MOST_TOKENS = 250_000
"""Output tokens of a run whose addresses are worth recording: one to two changes each, some 70 bytes a change."""


def has_addresses(scenario: Scenario, seed: int | None = None) -> bool:
    """Its slots can be followed: it is one replica, and keeps regions or blocks."""
    simulation = build(scenario, scenario.seed if seed is None else seed)
    return simulation.routing is None and can_follow(simulation.scheduler.allocator)


def with_addresses(
    variants: Sequence[tuple[str, Scenario]],
    results: Sequence[Result],
    *,
    seed: int | None = None,
    progress: Progress | None = None,
    most_tokens: int | None = MOST_TOKENS,
) -> list[Result]:
    """The same results with their addresses, where they can be recorded and the run is short (None: however long it
    is): it is run again, step by step, and gives the same. The others are returned as they are."""
    found = []
    for index, ((name, scenario), result) in enumerate(zip(variants, results, strict=True)):
        short = most_tokens is None or _output_tokens(result) <= most_tokens
        if short and result.metrics["pool_tokens"] and has_addresses(scenario, seed):
            share = None if progress is None else part_of(progress, index, len(variants), f"{name}, its addresses")
            result = run(scenario, seed=seed, addresses=True, progress=share)
            result.name = name
        found.append(result)
    return found


def _output_tokens(result: Result) -> int:
    return int(sum(result.tables["requests"]["generated_tokens"]))

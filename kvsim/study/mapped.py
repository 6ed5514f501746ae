"""Where every slot went, and what prompts share, recorded once it is known that a run is short enough for it."""

from collections.abc import Sequence

from kvsim.metrics.result import Result
from kvsim.scenario.build import build
from kvsim.scenario.resolve import Scenario
from kvsim.study.reporter import Progress
from kvsim.study.side_by_side import part_of
from kvsim.study.single import run

MOST_TOKENS = 250_000
"""Output tokens of a run whose addresses are worth recording: one to two changes each, six in a radix tree whose slots
are used again and again, some 70 bytes a change."""


def recordable(scenario: Scenario, seed: int | None = None) -> tuple[bool, bool]:
    """Whether it can be said where slots go, and what prompts share (prefixes are cached); neither of a fleet."""
    simulation = build(scenario, scenario.seed if seed is None else seed)
    if simulation.routing is not None:
        return False, False
    return True, simulation.scheduler.allocator.caches


def with_addresses(
    variants: Sequence[tuple[str, Scenario]],
    results: Sequence[Result],
    *,
    prompts: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
    most_tokens: int | None = MOST_TOKENS,
) -> list[Result]:
    """The same results with their addresses, and with `prompts` what those share, as far as that can be recorded and
    the run is short (None: however long it is): it is run again, step by step, and gives the same. The others are
    returned as they are."""
    found = []
    for index, ((name, scenario), result) in enumerate(zip(variants, results, strict=True)):
        short = most_tokens is None or _output_tokens(result) <= most_tokens
        where, shared = recordable(scenario, seed) if short and result.metrics["pool_tokens"] else (False, False)
        if where or (prompts and shared):
            share = None if progress is None else part_of(progress, index, len(variants), f"{name}, its addresses")
            result = run(scenario, seed=seed, addresses=where, prompts=prompts and shared, progress=share)
            result.name = name
        found.append(result)
    return found


def _output_tokens(result: Result) -> int:
    return int(sum(result.tables["requests"]["generated_tokens"]))

"""The three pressures of a run in one measure: shares of the slots that are taken, which add up to one.

Of the slots that are neither free nor cached,
- *organisation* has those that hold no valid KV (`waste_share`);
- *reuse* has, of the others, as much as the KV computed has of tokens that an unbounded prefix cache would have found;
- *representation* has the rest: KV that is valid and needed, and only takes less where a token takes fewer bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import model
from kvsim.metrics.result import Result
from kvsim.metrics.waste import waste_share
from kvsim.scenario.resolve import Scenario

REPRESENTATION, ORGANISATION, REUSE = "representation", "organisation", "reuse"
PRESSURES = (REPRESENTATION, ORGANISATION, REUSE)

FULL_CAUSES = ("capacity", "fragmentation", "outgrown")
"""Causes of a failed allocation by which the pool was short."""

REGRET = 0.01
"""Where fewer prompt tokens than this share are computed again since they were evicted, the cache is large enough."""


@dataclass(frozen=True)
class Shortage:
    """How often the pool was short: failed allocations by cause, preemptions, prompts that never fit, and prompt tokens
    computed again since they had been evicted (None: not counted, as under a radix tree)."""

    blocked: Mapping[str, int]
    preemptions: int
    never_fit: int
    regret_tokens: int | None
    regret_rate: float | None
    """Those over the prompt tokens asked."""

    @property
    def of_live_kv(self) -> bool:
        """Some request could not have the room that it needed."""
        return bool(any(self.blocked.values()) or self.preemptions or self.never_fit)

    @property
    def any(self) -> bool:
        """KV memory was short at least once, be it of room for prefixes that were wanted again."""
        return self.of_live_kv or (self.regret_rate or 0.0) >= REGRET


@dataclass(frozen=True, kw_only=True)
class Pressures:
    """What was measured; None where it cannot be. The shares of the three are of the slots taken, and add up to one."""

    kv_dtype: str
    kv_bytes_per_token: int
    """On one rank, over all its layers."""
    representation: float | None
    organisation: float | None
    reuse: float | None
    taken_share: float | None
    """Slots neither free nor cached, over the pool, mean over the measured window."""
    lost: Mapping[str, float | None]
    """The classes that hold no valid KV, over the pool."""
    fragmentation: float | None
    duplicate_share: float | None
    """Slots whose content another live sample also holds, over the pool; None where prefixes are cached."""
    hit_rate: float | None
    """Prompt tokens found, over those asked; None where nothing is cached."""
    unbounded_hit_rate: float | None
    """The same with prefix caching and a pool that forgets nothing."""

    @property
    def dominant(self) -> str | None:
        """The largest of the three; None where nothing was taken."""
        shares = {REPRESENTATION: self.representation, ORGANISATION: self.organisation, REUSE: self.reuse}
        known = {name: share for name, share in shares.items() if share is not None}
        return max(known, key=known.__getitem__) if known else None


def shortage_of(result: Result) -> Shortage:
    """How often the pool of a run was short."""
    metrics, pool = result.metrics, result.metrics["pool_tokens"] or 0
    blocked = {cause: metrics["blocked"][cause] for cause in FULL_CAUSES}
    # A prompt that leaves no room for an answer in max_model_len is refused as well, by no fault of the pool.
    greatest = result.refusals.greatest if result.refusals else None
    never = metrics["blocked"]["never"] if greatest is not None and greatest.need_tokens > pool else 0
    # Where nothing is cached nothing is evicted.
    caches = metrics["hit_tokens_by_layer"] is not None
    regret = (metrics["regret_tokens"], metrics["regret_rate"]) if caches else (0, 0.0)
    return Shortage(blocked, metrics["preemptions"], never, *regret)


def pressures_of(scenario: Scenario, result: Result, unbounded: Mapping[str, Any] | None) -> Pressures:
    """The pressures of a run; `unbounded` are the metrics of the same traffic with prefix caching and room for all.

    Where that could not be run, what repeats is not known and counts as none.
    """
    metrics = result.metrics
    waste, share = waste_share(metrics), metrics["mean_share"]
    found, ideal = metrics["hit_rate"], None if unbounded is None else unbounded["hit_rate"]
    repeated = _repeated(result, found or 0.0, ideal or 0.0)
    held = None if waste is None else 1 - waste
    settings = scenario.settings
    footprint = Footprint(
        model(scenario.model), tensor_parallel=settings.tensor_parallel, kv_dtype=settings.model.kv_dtype
    )
    return Pressures(
        kv_dtype=settings.model.kv_dtype,
        kv_bytes_per_token=footprint.kv_bytes_per_token,
        representation=None if held is None else held * (1 - repeated),
        organisation=waste,
        reuse=None if held is None else held * repeated,
        taken_share=None if waste is None else 1 - share["free"] - share["cached"],
        lost={name: share[name] for name in ("reserved", "internal", "dead", "moving", "external")},
        fragmentation=metrics["fragmentation"],
        duplicate_share=metrics["duplicate_share"],
        hit_rate=found,
        unbounded_hit_rate=ideal,
    )


def _repeated(result: Result, found: float, ideal: float) -> float:
    """Share of the KV computed that an unbounded cache would have found: prompt tokens over prompt and output ones."""
    requests = result.tables["requests"]
    served = [
        (prompt, output)
        for prompt, output, started in zip(
            requests["prompt_tokens"], requests["generated_tokens"], requests["first_scheduled_s"], strict=True
        )
        if started is not None
    ]
    prompt_tokens = sum(prompt for prompt, _ in served)
    computed = prompt_tokens * (1 - found) + sum(output for _, output in served)
    return max(0.0, ideal - found) * prompt_tokens / computed if computed else 0.0

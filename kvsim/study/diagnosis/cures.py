"""The known cures of each pressure, as changes to a scenario; all else stays as it is, the bytes of the pool too."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kvsim.catalog.engines import profile
from kvsim.catalog.weights import dtype_bits
from kvsim.scenario.deployment import chosen
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.schema.serving import PagedSettings, RadixSettings, ReserveSettings, VirtualSettings
from kvsim.study.diagnosis.pressures import ORGANISATION, REPRESENTATION, REUSE

UNBOUNDED, UNBOUNDED_CACHE = "no bound on the pool", "no bound, prefix caching"

SMALL_KV = "fp8"
"""The narrowest KV that vLLM and SGLang ship kernels for on every recent GPU."""

SMALLEST_PAGE = "64KiB"
"""vAttention's smallest page."""

LARGEST_BLOCK = 256
"""Slots of the largest block of `paged` (`PagedSettings.block_size`)."""

_SPARE = 2
"""A pool without bounds has so many times the slots that all requests take together: buddies round up to twice."""


@dataclass(frozen=True)
class Cure:
    """One change: what it is called, the pressure it cures ("" for a yardstick that nobody can buy), and its keys."""

    name: str
    pressure: str
    changes: Mapping[str, Any]


def cures(scenario: Scenario, *, pool_tokens: int) -> Iterator[Cure]:
    """Every cure that this scenario does not have yet; whether the engine can have it, building it shows."""
    settings = scenario.settings
    rules, allocator = profile(settings.engine.profile), settings.allocator
    bits = dtype_bits(settings.model.kv_dtype)
    if bits > dtype_bits(SMALL_KV):
        yield Cure(f"{SMALL_KV} KV", REPRESENTATION, {"model.kv_dtype": SMALL_KV, **_wider(scenario, bits)})
    # Blocks of another size, or none, would be another amount of memory where the pool is so many blocks.
    same = {} if settings.pool is None or settings.pool.blocks is None else {"pool": {"tokens": pool_tokens}}
    if not isinstance(allocator, PagedSettings | RadixSettings):
        yield Cure("paged", ORGANISATION, {"allocator": {"name": "paged", "prefix_caching": False}, **same})
    elif isinstance(allocator, RadixSettings):
        if allocator.page_size > 1:
            yield Cure("pages of 1", ORGANISATION, {"allocator.page_size": 1, **same})
    elif chosen(allocator.block_size, rules.block_size) > 1:
        yield Cure("blocks of 1", ORGANISATION, {"allocator.block_size": 1, **same})
    if isinstance(allocator, VirtualSettings):
        yield Cure(f"pages of {SMALLEST_PAGE}", ORGANISATION, {"allocator.page": SMALLEST_PAGE, **same})
    if not caches(scenario):
        blocks = isinstance(allocator, PagedSettings | RadixSettings)
        yield Cure("prefix caching" if blocks else "paged, prefix caching", REUSE, {**_caching(scenario), **same})
        if not isinstance(allocator, RadixSettings):
            yield Cure("radix tree", REUSE, {"allocator": {"name": "radix"}, **same})


def yardsticks(scenario: Scenario, *, pool_tokens: int) -> Iterator[Cure]:
    """What memory alone can do: a pool that holds every request at once, and one that also forgets no prefix."""
    yield Cure(UNBOUNDED, "", {"pool": {"tokens": pool_tokens}})
    if not caches(scenario):
        yield Cure(UNBOUNDED_CACHE, "", {**_caching(scenario), "pool": {"tokens": pool_tokens}})


def caches(scenario: Scenario) -> bool:
    """Prefixes that were computed once can be found again."""
    settings = scenario.settings
    allocator = settings.allocator
    if isinstance(allocator, RadixSettings):
        return allocator.prefix_caching
    if isinstance(allocator, PagedSettings):
        return chosen(allocator.prefix_caching, profile(settings.engine.profile).prefix_caching)
    return False


def room_for_all(scenario: Scenario, requests: Mapping[str, Any], max_model_len: int) -> int:
    """Slots that hold all requests of a run (its table) at once, whatever the allocator rounds up."""
    settings = scenario.settings
    longest = max_model_len if isinstance(settings.allocator, ReserveSettings) else 0
    slots = 0
    for prompt, output, samples in zip(
        requests["prompt_tokens"], requests["output_tokens"], requests["samples"], strict=True
    ):
        slots += samples * (max(prompt, longest) + LARGEST_BLOCK) + output
    return _SPARE * slots


def _caching(scenario: Scenario) -> dict[str, Any]:
    """Keep the allocator where it can cache, else take the one that does."""
    if isinstance(scenario.settings.allocator, PagedSettings | RadixSettings):
        return {"allocator.prefix_caching": True}
    return {"allocator": {"name": "paged", "prefix_caching": True}}


def _wider(scenario: Scenario, bits: int) -> dict[str, Any]:
    """The pool of the same bytes where it is given in tokens, or in blocks of so many; a page has its bytes anyhow."""
    pool, times = scenario.settings.pool, bits // dtype_bits(SMALL_KV)
    if pool is None or pool.memory is not None:
        return {}
    if pool.tokens is not None:
        return {"pool": {"tokens": pool.tokens * times}}
    if isinstance(scenario.settings.allocator, VirtualSettings):
        return {}
    return {"pool": {"blocks": (pool.blocks or 0) * times}}

"""Which policies of an engine go together: scheduler, kernel, allocator, preemption and samples."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kvsim.scenario.messages import MISSING, Mistake
from kvsim.scenario.reading.loading import Plain

if TYPE_CHECKING:
    from kvsim.catalog.engines import Profile


def engine_policies(engine: Plain, rules: "Profile", data: Plain) -> Iterator[Mistake]:
    """Yield what does not go together in `engine` (its profile is `rules`) and the rest of the scenario."""
    scheduler = engine.get("scheduler", rules.scheduler)
    followed = isinstance(scheduler, str) and scheduler in FOLLOWED
    kernel = engine.get("kernel", rules.kernel)
    preemption = engine.get("preemption", rules.preemption)
    if followed:
        yield from _followed(str(scheduler), engine, rules, data)
    elif scheduler != "continuous" and engine.get("chunked_prefill") is True:
        problem = f"is on, but the {scheduler} scheduler computes prompts whole"
        yield Mistake("engine.chunked_prefill", True, problem, "remove it, or set engine.scheduler: continuous")
    if scheduler == "static" and kernel == "ragged":
        key = "engine.kernel" if "kernel" in engine else "engine.scheduler"
        problem = "a static batch computes every row as long as the longest, but engine.kernel is ragged"
        yield Mistake(key, MISSING, problem, "set engine.kernel: padded")
    if preemption == "swap":
        if scheduler == "static":
            remedy = "write recompute, abort or never"
            yield Mistake("engine.preemption", preemption, "cannot be done in a static batch", remedy)
        elif not (engine.get("swap_space") or rules.swap_space_bytes):
            remedy = "give it, for example engine.swap_space: 4GiB"
            yield Mistake("engine.swap_space", MISSING, "is missing: swapped requests wait in host memory", remedy)
    allocator = data.get("allocator")
    nothing_kept = isinstance(allocator, dict) and allocator.get("name") == "no-cache"
    for key in ("async_scheduling", "policy"):
        asked = engine.get(key)
        if not followed and asked is not None and asked is not False and asked != "fcfs":
            problem = f"is for engines whose requests are followed one by one, but engine.scheduler is {scheduler}"
            yield Mistake(f"engine.{key}", asked, problem, "use a profile such as vllm@0.33 or sglang@0.5.23")
    if not followed:
        yield from _unknown_rules((key for keys in _RULES.values() for key in keys), str(scheduler), engine)
    if nothing_kept and not followed and (scheduler, kernel) != ("continuous", "ragged"):
        problem = "computes everything again in each step, which only continuous batching with ragged kernels does"
        yield Mistake("allocator.name", "no-cache", problem, "leave engine.scheduler and engine.kernel out")
    radix = isinstance(allocator, dict) and allocator.get("name") == "radix"
    caches = isinstance(allocator, dict) and allocator.get("prefix_caching", rules.prefix_caching) is True
    if radix and scheduler != "continuous" and not followed:
        problem = f"finds the beginnings of prompts computed, but the {scheduler} scheduler computes every prompt whole"
        yield Mistake("allocator.name", "radix", problem, "set engine.scheduler: continuous, or use allocator: paged")
    elif caches and not followed:
        yield from _prefix_caching(engine, rules, scheduler)
    yield from _placement(data)
    stages = data.get("pipeline_parallel", 1)
    if isinstance(stages, int) and stages > 1 and (scheduler not in ("continuous", "vllm") or nothing_kept):
        able = scheduler in ("continuous", "vllm")
        who = "allocator no-cache" if able else f"the {scheduler} scheduler"
        other = "allocator: paged" if able else "a profile such as vllm@0.33"
        problem = f"deals a step over stages, which {who} cannot"
        yield Mistake("pipeline_parallel", stages, problem, f"use {other}, or leave it out")
    samples = _whole(data.get("workload"), "samples", 1)
    seats = engine.get("max_num_seqs", rules.max_num_seqs)
    workload = data.get("workload")
    if isinstance(workload, dict) and workload.get("beam") is not None:
        shares = allocator is None or not isinstance(allocator, dict) or allocator.get("name", "paged") == "paged"
        if not shares or caches or scheduler == "static" or followed:
            problem = (
                "is given, but its candidates fork, which only allocator paged without prefix_caching can, and no "
                f"{scheduler if followed else 'static'} batch"
            )
            yield Mistake("workload.beam", MISSING, problem, "use allocator: paged, or leave it out")
        if samples < 2:
            yield Mistake("workload.samples", samples, "is no beam", "ask for at least 2 candidates")
    if isinstance(seats, int) and samples > seats:
        problem = f"is more than the {seats} sequences that run at once (engine.max_num_seqs)"
        yield Mistake("workload.samples", samples, problem, f"ask for at most {seats}")


def _placement(data: Plain) -> Iterator[Mistake]:
    """Only slots that block tables or trees lead to can lie in two places."""
    placement, allocator = data.get("placement"), data.get("allocator")
    share = placement.get("host_share") if isinstance(placement, dict) else None
    name = allocator.get("name", "paged") if isinstance(allocator, dict) else "paged"
    if share and name not in ("paged", "radix"):
        problem = f"puts a part of each request's KV on the host, which allocator {name} cannot"
        yield Mistake("placement.host_share", share, problem, "use allocator: paged or radix, or leave it out")


FOLLOWED = {"vllm": "paged", "sglang": "radix"}
"""Schedulers that follow their requests one by one, and the allocator that each drives itself."""

_POLICIES = {
    "vllm": ("fcfs", "priority"),
    "sglang": ("fcfs", "lpm", "dfs-weight", "lof", "random", "hrrn", "shortest-prefill-first"),
}

_RULES = {
    "vllm": ("prefill_schedule_interval",),
    "sglang": ("max_prefill_tokens", "mixed_chunk", "schedule_conservativeness"),
}
"""Keys of `engine` that only these schedulers know."""

_OTHERS = {
    "vllm": _RULES["sglang"],
    "sglang": (*_RULES["vllm"], "long_prefill_token_threshold", "reserve_full_isl"),
}
"""Keys of `engine` that they do not know."""


def _unknown_rules(keys: Iterable[str], scheduler: str, engine: Plain) -> Iterator[Mistake]:
    """Those of `keys` that say something; a scenario that is written out holds their defaults too."""
    from kvsim.scenario.schema import EngineSettings

    for key in keys:
        if engine.get(key) not in (None, EngineSettings.model_fields[key].default):
            problem = f"is given, but the {scheduler} scheduler has no such rule"
            yield Mistake(f"engine.{key}", engine[key], problem, "leave it out")


def _followed(scheduler: str, engine: Plain, rules: "Profile", data: Plain) -> Iterator[Mistake]:
    """What such a scheduler cannot be told."""
    mine, allocator = FOLLOWED[scheduler], data.get("allocator")
    name = allocator.get("name", "paged") if isinstance(allocator, dict) else allocator
    if name is not None and name != mine:
        problem = f"is given, but the {scheduler} scheduler drives the allocator {mine} itself"
        yield Mistake("allocator.name", name, problem, f"use {mine}, or engine.profile: vllm@0.33-sync for any other")
    for key, only in (("preemption", "recompute"), ("victim", "last"), ("kernel", "ragged")):
        value = engine.get(key, getattr(rules, key, only))
        if value != only:
            problem = f"is none of the {scheduler} scheduler's rules"
            yield Mistake(f"engine.{key}", value, problem, f"leave it out, or set engine.{key}: {only}")
    policy = engine.get("policy")
    if policy is not None and policy not in _POLICIES[scheduler]:
        known = ", ".join(_POLICIES[scheduler])
        yield Mistake("engine.policy", policy, f"is none of the {scheduler} scheduler's", f"use one of {known}")
    yield from _unknown_rules(_OTHERS[scheduler], scheduler, engine)
    if scheduler == "sglang" and engine.get("chunked_prefill", rules.chunked_prefill) is True:
        yield from _whole_pages(engine, rules, allocator)


def _whole_pages(engine: Plain, rules: "Profile", allocator: Any) -> Iterator[Mistake]:
    """SGLang does not start with chunks that are not whole pages (ServerArgs.check_server_args)."""
    key, page = "max_num_batched_tokens", _whole(allocator, "page_size", 1)
    chunk = _whole(engine, key, rules.max_num_batched_tokens)
    if page > 0 and chunk % page:
        problem = f"is not a multiple of the page of {page} slots (allocator.page_size), by which prompts are cut"
        more = -(-chunk // page) * page
        remedy = f"set engine.{key} to {more}, or another multiple of {page}"
        yield Mistake(f"engine.{key}", chunk, problem, remedy)


def _prefix_caching(engine: Plain, rules: "Profile", scheduler: object) -> Iterator[Mistake]:
    key = "allocator.prefix_caching"
    if scheduler != "continuous":
        problem = f"is on, but the {scheduler} scheduler computes every prompt whole"
        yield Mistake(key, True, problem, "set engine.scheduler: continuous, or leave it out")
    victim = engine.get("victim", "last")
    if engine.get("preemption", rules.preemption) in ("recompute", "swap") and victim != "last":
        # Whoever is chosen may have stored blocks in this very step that are then never computed.
        problem = f"is on, but with engine.victim: {victim} others would find blocks that were never computed"
        yield Mistake(key, True, problem, "set engine.victim: last, or leave it out")


def _whole(part: Any, key: str, default: int) -> int:
    value = part.get(key, default) if isinstance(part, dict) else default
    return value if isinstance(value, int) and not isinstance(value, bool) else default

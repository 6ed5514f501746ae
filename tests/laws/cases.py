"""Runs a generated case (`strategies.scenarios`) on the product's engine, stepwise or leaping."""

from statistics import median_low
from typing import Any

from kvsim.engine.run import RunLog, simulate
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.host import HostPool
from kvsim.memory.interface import Allocator
from kvsim.memory.no_cache import NoCacheAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.memory.radix.allocator import RadixAllocator
from kvsim.memory.radix.interface import NoTree
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.tree import RadixTree
from kvsim.memory.reserve import ReserveAllocator
from kvsim.memory.virtual import VirtualAllocator
from kvsim.metrics.histogram import DurationHistogram
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.scheduling.interface import Scheduler
from kvsim.scheduling.prefill_first import PrefillFirstScheduler
from kvsim.scheduling.sglang.serving import SglangServing
from kvsim.scheduling.sglang.settings import Settings
from kvsim.scheduling.static import StaticScheduler
from kvsim.scheduling.vllm import Rules
from kvsim.scheduling.vllm.serving import VllmScheduler
from kvsim.step import Upkeep
from kvsim.timing.interface import Anew, Line

WHOLE_PROMPTS = {"prefill-first": PrefillFirstScheduler, "static": StaticScheduler}
"""The schedulers that know no chunks."""

Case = dict[str, Any]


class CaseTiming:
    """The linear step time of `strategies.linear_step_ps`, in the engine's own form."""

    provenance = "made up"
    fitted = None

    def __init__(self, step_time: dict[str, int]) -> None:
        self._base, self._token = step_time["base_ps"], step_time["token_ps"]
        self._context, self._copied = step_time["context_ps"], step_time["copied_ps"]
        self._mapped = step_time.get("mapped_ps", 0)
        self._pair = step_time.get("pair_ps", 0)

    def decode(self, rows, context=0):
        return Line(self._base + self._token * rows, self._context)

    def anew(self, rows, tokens):
        """Cheaper for each token beyond a hundred, as a roofline that bends (a break point for leaps)."""
        base = self._base + self._token * rows
        bend = 100
        if tokens < bend:
            return Anew(base, 2 * self._context, self._pair, bend)
        return Anew(base + self._context * bend, self._context, self._pair)

    def step_ps(self, plan):
        moved = self._copied * (plan.copied_slots + plan.gathered_slots + plan.swapped_slots)
        if plan.pairs:
            tokens = plan.computed_anew
            base, token, pair, _ = self.anew(plan.rows.height + len(plan.chunks), tokens)
            return base + token * tokens + pair * plan.pairs + moved
        computed = plan.rows.height + sum(tokens for tokens, _ in plan.padded_chunks)
        read = plan.context + sum(written for _, written in plan.padded_chunks)
        return self._base + self._token * computed + self._context * read + moved + self._mapped * plan.mapped_pages


CACHES = ("prefix", "radix")
"""The allocators that keep contents."""


def allocator_of(case: Case) -> Allocator:
    if case.get("scheduler") == "sglang":
        return scheduler_of(case).allocator
    if case["allocator"] == "no-cache":
        return NoCacheAllocator()
    if case["allocator"] == "paged":
        return PagedAllocator(case["pool_slots"], block_size=case["block_size"], watermark=case["watermark"])
    if case["allocator"] == "prefix":
        options = {"block_size": case["block_size"], "watermark": case["watermark"]}
        ahead = int(case.get("async_scheduling", False))
        return PrefixAllocator(case["pool_slots"], **options, caching=case.get("caching", True), ahead=ahead)
    if case["allocator"] == "radix":
        eviction = case.get("eviction", "lru")
        return RadixAllocator(case["pool_slots"], page_size=case["block_size"], eviction=eviction)
    if case["allocator"] == "virtual":
        options = {"row_pages": 64, "mapped_ahead": case["mapped_ahead"]}
        return VirtualAllocator(case["pool_slots"], page_tokens=case["block_size"], **options)
    if case["allocator"] == "contiguous":
        return ContiguousAllocator(case["pool_slots"], **{"chunk": case["chunk"]} | case.get("options", {}))
    return ReserveAllocator(case["pool_slots"], max_model_len=case["max_model_len"], **case.get("options", {}))


def scheduler_of(case: Case, allocator: Allocator | None = None) -> Scheduler:
    if case.get("scheduler") == "sglang":
        return sglang_of(case)
    allocator = allocator or allocator_of(case)
    if case.get("scheduler") == "vllm":
        return VllmScheduler(allocator, vllm_rules(case, allocator))
    limits = {key: case[key] for key in ("max_num_seqs", "max_num_batched_tokens", "max_model_len")}
    rules = {key: case[key] for key in ("preemption", "victim", "workspace_tokens", "kernel") if key in case}
    if rules.get("preemption") == "swap":
        rules["host"] = HostPool(case["host_slots"])
    kind = WHOLE_PROMPTS.get(case.get("scheduler", "continuous"))
    if kind:
        return kind(allocator, **limits, **rules)
    return ContinuousScheduler(
        allocator,
        long_prefill_token_threshold=case["long_prefill_token_threshold"],
        chunked_prefill=case["chunked_prefill"],
        reserve_full_isl=case["reserve_full_isl"],
        **limits,
        **rules,
    )


def vllm_rules(case: Case, allocator: PrefixAllocator) -> Rules:
    same = (
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_model_len",
        "long_prefill_token_threshold",
        "reserve_full_isl",
    )
    return Rules(
        **{key: case[key] for key in same},
        enable_chunked_prefill=case["chunked_prefill"],
        watermark_blocks=allocator.watermark_blocks,
        **{key: case[key] for key in ("async_scheduling", "policy", "prefill_schedule_interval") if key in case},
    )


def sglang_of(case: Case) -> SglangServing:
    pool = SlotPool(case["pool_slots"], page_size=case["block_size"])
    tree = RadixTree(pool, eviction=case["eviction"]) if case.get("caching", True) else NoTree(pool)
    flags = ("max_running_requests", "chunked_prefill_size", "schedule_policy", "enable_mixed_chunk", "overlap")
    rules = Settings(**{flag: case[flag] for flag in flags}, max_prefill_tokens=case["max_num_batched_tokens"])
    return SglangServing(tree, rules, max_model_len=case["max_model_len"], eviction=case["eviction"])


def reference_need(case: Case) -> int:
    """What the engine takes for the need where nothing waits: the median request's, as the allocator rounds it."""
    return allocator_of(case).capacity(median_low(r.prompt_tokens for r in case["requests"][:1000]))


def run_case(case: Case, *, stepwise: bool, check: bool = True, **options: Any) -> RunLog:
    return simulate(
        iter(case["requests"]),
        scheduler_of(case),
        CaseTiming(case["step_time"]),
        max_model_len=case["max_model_len"],
        horizon_ps=case["horizon_ps"],
        stepwise=stepwise,
        check=check,
        **options,
    )


def everything(log: RunLog) -> dict[str, Any]:
    """All that must be the same to the bit whether the engine leaps or not."""
    recording = log.recording
    memory, requests = recording.memory, recording.requests
    sums = {
        name: None if t is None else {slot: getattr(t, slot) for slot in t.__slots__}
        for name, t in (("whole", memory.totals), ("to the last arrival", memory.closed))
    }
    return {
        "requests": requests.ended,
        "events": requests.events,
        "losses": requests.losses,
        "sums": sums,
        "steps": memory.steps,
        "gaps": {slot: getattr(recording.gaps.histogram, slot) for slot in DurationHistogram.__slots__},
        "stay": recording.occupancy.stay_ps,
        "rests": memory.rests,
        "moved": (recording.copied_slots, recording.gathered_slots, recording.swapped_slots),
        "padding": (recording.padding_tokens, recording.padding_context_tokens),
        "duplicates": recording.duplicates.slots,
        "upkeep": {slot: getattr(recording.upkeep, slot) for slot in Upkeep.__slots__},
        "times": (log.end_ps, log.last_arrival_ps, memory.opened_ps),
    }

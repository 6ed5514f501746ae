"""Runs a generated case (`strategies.scenarios`) on the product's engine, stepwise or leaping."""

from statistics import median_low
from typing import Any

from kvsim.engine.run import RunLog, simulate
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.interface import Allocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.memory.virtual import VirtualAllocator
from kvsim.scheduling.continuous import ContinuousScheduler

Case = dict[str, Any]


class CaseTiming:
    """The linear step time of `strategies.linear_step_ps`, in the engine's own form."""

    provenance = "made up"

    def __init__(self, step_time: dict[str, int]) -> None:
        self._base, self._token = step_time["base_ps"], step_time["token_ps"]
        self._context, self._copied = step_time["context_ps"], step_time["copied_ps"]
        self._mapped = step_time.get("mapped_ps", 0)

    def decode(self, rows):
        return self._base + self._token * rows, self._context

    def step_ps(self, plan):
        computed = plan.rows.height + sum(tokens for tokens, _ in plan.padded_chunks)
        read = plan.context + sum(written for _, written in plan.padded_chunks)
        memory = self._copied * (plan.copied_slots + plan.gathered_slots) + self._mapped * plan.mapped_pages
        return self._base + self._token * computed + self._context * read + memory + self._copied * plan.swapped_slots


def allocator_of(case: Case) -> Allocator:
    if case["allocator"] == "paged":
        return PagedAllocator(case["pool_slots"], block_size=case["block_size"], watermark=case["watermark"])
    if case["allocator"] == "virtual":
        options = {"row_pages": 64, "mapped_ahead": case["mapped_ahead"]}
        return VirtualAllocator(case["pool_slots"], page_tokens=case["block_size"], **options)
    if case["allocator"] == "contiguous":
        return ContiguousAllocator(case["pool_slots"], **{"chunk": case["chunk"]} | case.get("options", {}))
    return ReserveAllocator(case["pool_slots"], max_model_len=case["max_model_len"], **case.get("options", {}))


def scheduler_of(case: Case, allocator: Allocator | None = None) -> ContinuousScheduler:
    return ContinuousScheduler(
        allocator or allocator_of(case),
        max_num_seqs=case["max_num_seqs"],
        max_num_batched_tokens=case["max_num_batched_tokens"],
        long_prefill_token_threshold=case["long_prefill_token_threshold"],
        chunked_prefill=case["chunked_prefill"],
        reserve_full_isl=case["reserve_full_isl"],
    )


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
    memory, requests = log.recording.memory, log.recording.requests
    sums = {
        name: None if t is None else {slot: getattr(t, slot) for slot in t.__slots__}
        for name, t in (("whole", memory.totals), ("to the last arrival", memory.closed))
    }
    return {
        "requests": requests.ended,
        "events": requests.events,
        "preemptions": requests.preemptions,
        "sums": sums,
        "steps": memory.steps,
        "gaps": (
            log.recording.gaps.histogram.counts,
            log.recording.gaps.histogram.sum_ps,
            log.recording.gaps.histogram.max_ps,
        ),
        "stay": log.recording.occupancy.stay_ps,
        "copied": log.recording.copied_slots,
        "times": (log.end_ps, log.last_arrival_ps, memory.opened_ps),
    }

"""Drives the scheduler and the allocator through a case, step by step and without a clock."""

from collections.abc import Iterator

from kvsim.engine.replay.case import Record, Truth
from kvsim.errors import InputError
from kvsim.memory.paged import PagedAllocator
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.step import StepPlan


class Replay:
    """One case in progress."""

    def __init__(self, settings: Record, truths: list[Truth]) -> None:
        size = settings["block_size"]
        self.allocator = PagedAllocator(
            (settings["num_blocks"] - 1) * size, block_size=size, watermark=settings["watermark"]
        )
        self.scheduler = ContinuousScheduler(
            self.allocator,
            # Every running request takes a token of the budget, so no more of them than that can ever run.
            max_num_seqs=min(settings["max_num_seqs"], settings["max_num_batched_tokens"]),
            max_num_batched_tokens=settings["max_num_batched_tokens"],
            long_prefill_token_threshold=settings["long_prefill_token_threshold"],
            chunked_prefill=settings["enable_chunked_prefill"],
            reserve_full_isl=settings["reserve_full_isl"],
        )
        self.max_steps = settings["max_steps"]
        self.truths = truths
        self.aborts = [truth for truth in truths if truth.abort_step is not None]
        self.sched_tokens = 0
        self.peak_used = 0

    def records(self) -> Iterator[Record]:
        """A record for each step, then the summary."""
        coming = sorted(self.truths, key=lambda truth: truth.arrival)
        step, steps, at = 0, 0, 0
        while steps < self.max_steps:
            if not (self.scheduler.running_count or self.scheduler.waiting_count):
                if at == len(coming):
                    break
                step = max(step, coming[at].arrival)
            while at < len(coming) and coming[at].arrival <= step:
                self.scheduler.submit(coming[at].sequence)
                at += 1
            self._abort(step)
            yield self._step(step)
            step += 1
            steps += 1
        yield {
            "summary": {
                "steps": steps,
                "sched_tokens": self.sched_tokens,
                "preemptions": sum(truth.preempted for truth in self.truths),
                "evicted": 0,
                "stored": 0,
                "hit_tokens": 0,
                "peak_used": self.peak_used,
            },
            "requests": {truth.name: truth.record() for truth in self.truths},
        }

    def _abort(self, step: int) -> None:
        """Clients that give up before this step is scheduled."""
        here = {sequence.id for sequence in self.scheduler.live()} if self.aborts else ()
        for truth in [truth for truth in self.aborts if truth.abort_step is not None and truth.abort_step <= step]:
            self.aborts.remove(truth)
            if truth.sequence.id in here:
                self.scheduler.leave(truth.sequence)

    def _step(self, step: int) -> Record:
        scheduler, allocator, truths = self.scheduler, self.allocator, self.truths
        plan = scheduler.plan()
        if plan.aborted:
            names = ", ".join(repr(truths[sequence.id].name) for sequence in plan.aborted)
            raise InputError(f"step {step}: request {names} can never have its blocks; the case needs a larger pool")
        scheduled = self._scheduled(plan)
        for truth, tokens in scheduled:
            if truth.first_sched is None:
                truth.first_sched = step
            truth.computed += tokens
            self.sched_tokens += tokens
        for sequence in plan.admitted:
            truths[sequence.id].admissions += 1
        for victim in plan.preempted:
            truths[victim.sequence.id].preempted += 1
        free = allocator.free_blocks
        used = allocator.blocks - free
        self.peak_used = max(self.peak_used, used)
        record: Record = {
            "step": step,
            "sched": [[truth.name, tokens] for truth, tokens in scheduled],
            "hits": [[truths[sequence.id].name, 0] for sequence in plan.admitted],
            "preempted": [[truths[v.sequence.id].name, v.lost_tokens] for v in plan.preempted],
            "running": [truths[id_].name for id_ in scheduler.running],
            "waiting": [truths[s.id].name for s in scheduler.live() if s.id not in scheduler.running],
            "used_after_schedule": used,
            "free_after_schedule": free,
        }
        decoding = [truth for truth, _ in scheduled if truth.sequence.decoding]
        sampled = {sequence.id for sequence in scheduler.complete(plan)}
        finished = []
        for truth, _ in scheduled:
            if truth in decoding or truth.sequence.id in sampled:
                truth.output += 1
                if truth.first_tok is None:
                    truth.first_tok = step
                if truth.output == truth.allowed:
                    truth.done = step
                    scheduler.leave(truth.sequence)
                    finished.append(truth.name)
        free = allocator.free_blocks
        record |= {
            "finished": finished,
            "free_after_step": free,
            "usage": round(1 - free / allocator.blocks, 6),
            "cached_hashes": 0,
            "stored": 0,
            "evicted": 0,
        }
        return record

    def _scheduled(self, plan: StepPlan) -> list[tuple[Truth, int]]:
        """Who computes how many tokens, in scheduling order: the running ones as admitted, new ones last."""
        chunks = {chunk.sequence.id: chunk.tokens for chunk in plan.chunks}
        return [
            (self.truths[sequence.id], 1 if sequence.decoding else chunks[sequence.id])
            for sequence in self.scheduler.running.values()
            if sequence.decoding or sequence.id in chunks
        ]

"""Replay of a recorded engine run: the same workload, step by step and without a clock, in the recording's own form.

A case (JSON) names the engine's settings and its requests by arrival *step*; what the real engine did is one JSON line
a step and a summary line. Here the scheduler and the allocator are driven exactly as a replica drives them, so that
the seam between them is judged by an engine that nobody here wrote.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from kvsim.errors import InputError
from kvsim.memory.paged import PagedAllocator
from kvsim.request import Sequence
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.step import StepPlan

Record = dict[str, Any]

IGNORED = ("engine", "version", "core", "tree")
"""Fields that name what ran."""

_DEFAULTS: Record = {
    "max_num_seqs": 256,
    "max_num_batched_tokens": 2048,
    "max_model_len": 8192,
    "enable_prefix_caching": True,
    "enable_chunked_prefill": True,
    "long_prefill_token_threshold": 0,
    "watermark": 0,
    "reserve_full_isl": True,
    "max_steps": 20000,
}
_ONLY: Record = {
    "max_num_active_seqs": None,
    "long_prefill_adaptive": False,
    "policy": "fcfs",
    "async_scheduling": False,
    "prefill_schedule_interval": 1,
    "groups": [{"kind": "full"}],
    "retention_interval": 0,
    "spec": None,
}
"""Settings that are understood but modelled with this one value only."""


def replay(case: Record) -> Iterator[Record]:
    """Yield a record for every step of `case`, then the summary.

    Raises InputError when the case lacks something, or asks for a rule that is not modelled yet.
    """
    try:
        made = _Replay(_settings(case), case["requests"])
    except (TypeError, ValueError) as error:
        raise InputError(f"the case cannot be replayed: {error}") from error
    return made.records()


def compare_records(ours: Iterator[Record], recorded: Iterator[Record]) -> tuple[int, str | None]:
    """(records compared, None), or up to the first that differs with a description of the difference."""
    count = 0
    for ours_line, recorded_line in zip_longest(ours, recorded):
        if ours_line is None or recorded_line is None:
            ended = "the replay" if ours_line is None else "the recording"
            text = f"{ended} ends after record {count}, the other goes on"
            return count, f"{text}\n  ours:     {ours_line}\n  recorded: {recorded_line}"
        keys = [key for key in {**recorded_line, **ours_line} if key not in IGNORED]
        for key in keys:
            if ours_line.get(key, _MISSING) != recorded_line.get(key, _MISSING):
                where = f"step {ours_line['step']}" if "step" in ours_line else "the summary"
                return count, (
                    f"{where}, field {key!r}: ours {ours_line.get(key, _MISSING)}, "
                    f"recorded {recorded_line.get(key, _MISSING)}\n  ours:     {ours_line}\n  recorded: {recorded_line}"
                )
        count += 1
    return count, None


def _settings(case: Record) -> Record:
    if (
        not isinstance(case, dict)
        or not isinstance(case.get("config"), dict)
        or not isinstance(case.get("requests"), list)
    ):
        raise InputError("not a recorded case: it needs a `config` object and a `requests` list")
    config = case["config"]
    if "page_size" in config or "max_total_num_tokens" in config or "mode" in config:
        raise InputError("this is a case of SGLang's radix tree; only vLLM's paged manager can be replayed so far")
    for key in ("num_blocks", "block_size"):
        if not isinstance(config.get(key), int) or config[key] < 2 - (key == "block_size"):
            raise InputError(f"config.{key} is {config.get(key)!r}; a case needs it as a positive integer")
    unknown = sorted(set(config) - set(_DEFAULTS) - set(_ONLY) - {"num_blocks", "block_size"})
    if unknown:
        raise InputError(f"config has unknown settings: {', '.join(unknown)}")
    for key, only in _ONLY.items():
        if config.get(key, only) != only:
            raise InputError(f"config.{key} is {config[key]!r}; so far only {only!r} can be replayed")
    settings = {**_DEFAULTS, **config}
    if settings["enable_prefix_caching"]:
        raise InputError(
            "config.enable_prefix_caching is true; so far only cases with prefix caching off can be replayed"
        )
    return settings


class _Truth:
    """What the recording will tell of one request."""

    def __init__(self, entry: Record, index: int, max_model_len: int) -> None:
        try:
            self.name = entry["id"]
            self.arrival = int(entry["arrival_step"])
            self.prompt = sum(len(part["ids"]) if "ids" in part else int(part["n"]) for part in entry["prompt"])
            wanted = int(entry["output_len"])
            if wanted < 1 or self.prompt < 1:
                raise ValueError("a prompt or an output of less than one token")
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"request {index} of the case cannot be read: {error!r} is missing or wrong") from error
        if self.prompt >= max_model_len:
            raise InputError(
                f"request {self.name!r} has {self.prompt} prompt tokens; max_model_len {max_model_len} leaves no room "
                f"for an output"
            )
        self.allowed = min(wanted, max_model_len - self.prompt)
        self.sequence = Sequence(index, self.prompt, None)
        self.first_sched: int | None = None
        self.first_tok: int | None = None
        self.done: int | None = None
        self.admissions = 0
        self.preempted = 0
        self.computed = 0
        self.output = 0

    def record(self) -> Record:
        return {
            "arrival": self.arrival,
            "prompt": self.prompt,
            "first_sched": self.first_sched,
            "first_tok": self.first_tok,
            "done": self.done,
            "hits": [0] * self.admissions,
            "preempt": self.preempted,
            "computed": self.computed,
            "output": self.output,
        }


class _Replay:
    def __init__(self, settings: Record, requests: list[Record]) -> None:
        size = settings["block_size"]
        self.allocator = PagedAllocator(
            (settings["num_blocks"] - 1) * size, block_size=size, watermark=settings["watermark"]
        )
        self.scheduler = ContinuousScheduler(
            self.allocator,
            max_num_seqs=settings["max_num_seqs"],
            max_num_batched_tokens=settings["max_num_batched_tokens"],
            long_prefill_token_threshold=settings["long_prefill_token_threshold"],
            chunked_prefill=settings["enable_chunked_prefill"],
            reserve_full_isl=settings["reserve_full_isl"],
        )
        self.max_steps = settings["max_steps"]
        self.truths = [_Truth(entry, index, settings["max_model_len"]) for index, entry in enumerate(requests)]
        self.sched_tokens = 0
        self.peak_used = 0

    def records(self) -> Iterator[Record]:
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

    def _scheduled(self, plan: StepPlan) -> list[tuple[_Truth, int]]:
        """Who computes how many tokens, in scheduling order: the running ones as admitted, new ones last."""
        chunks = {chunk.sequence.id: chunk.tokens for chunk in plan.chunks}
        return [
            (self.truths[sequence.id], 1 if sequence.decoding else chunks[sequence.id])
            for sequence in self.scheduler.running.values()
            if sequence.decoding or sequence.id in chunks
        ]


_MISSING = "(missing)"

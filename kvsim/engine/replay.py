"""Replay of a recorded engine run: the same workload, step by step and without a clock, in the recording's own form.

A case (JSON) names the engine's settings and its requests by arrival *step*; what the real engine did is one JSON line
a step and a summary line. Here the scheduler and the allocator are driven exactly as a replica drives them, so that
the seam between them is judged by an engine that nobody here wrote.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, TypeGuard

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

_MOST = 1 << 53
"""The largest whole number that every reader of JSON keeps apart from its neighbours."""

_RANGES = {
    "num_blocks": (2, _MOST),
    "block_size": (1, 256),
    "max_num_seqs": (1, _MOST),
    "max_num_batched_tokens": (1, _MOST),
    "max_model_len": (2, _MOST),
    "long_prefill_token_threshold": (0, _MOST),
    "max_steps": (0, _MOST),
}
"""Setting to the least and the most that it may be; one block is the null block."""

_REQUEST = {
    "id": "a text, another for each request",
    "arrival_step": "a whole number, 0 or more",
    "prompt": "a list of segments",
    "output_len": "a whole number, 1 or more",
}
"""What a request needs, and in what form."""


def replay(case: Record) -> Iterator[Record]:
    """Yield a record for every step of `case`, then the summary.

    Raises InputError, which names the setting or the request, when the case lacks something, holds a value that cannot
    be, or asks for a rule that is not modelled yet.
    """
    settings = _settings(case)
    truths = _truths(case["requests"], settings["max_model_len"])
    try:
        made = _Replay(settings, truths)
    except ValueError as error:
        raise InputError(f"config: {error}") from error
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
    unknown = sorted(map(str, set(config) - set(_DEFAULTS) - set(_ONLY) - {"num_blocks", "block_size"}))
    if unknown:
        raise InputError(f"config has unknown settings: {', '.join(unknown)}")
    for key, only in _ONLY.items():
        if config.get(key, only) != only:
            raise InputError(f"config.{key} is {_shown(config[key])}; so far only {only!r} can be replayed")
    settings: Record = {"num_blocks": None, "block_size": None, **_DEFAULTS, **config}
    for key, value in settings.items():
        if key not in _ONLY:
            _check(key, value)
    if settings["enable_prefix_caching"]:
        raise InputError(
            "config.enable_prefix_caching is true; so far only cases with prefix caching off can be replayed"
        )
    return settings


def _check(key: str, value: object) -> None:
    """Refuse a setting of the wrong type or out of its range."""
    if key in _RANGES:
        least, most = _RANGES[key]
        right, form = _whole(value, least, most), f"a whole number from {least:,} to {most:,}"
    elif key == "watermark":
        right = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1
        form = "a share of the blocks, from 0 to below 1"
    else:
        right, form = isinstance(value, bool), "true or false"
    if not right:
        raise InputError(f"config.{key} is {_shown(value)}; it must be {form}")


def _whole(value: object, least: int, most: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _truths(requests: list[Any], max_model_len: int) -> list["_Truth"]:
    truths = [_Truth(entry, index, max_model_len) for index, entry in enumerate(requests)]
    names: dict[str, int] = {}
    for index, truth in enumerate(truths):
        first = names.setdefault(truth.name, index)
        if first != index:
            raise InputError(
                f"request {index} of the case: id is {_shown(truth.name)}, which request {first} has already"
            )
    return truths


def _prompt_tokens(prompt: object, where: str) -> int:
    """Length of a prompt: a list of segments, each `n` tokens or a list of `ids`."""
    form = 'a prompt is a list of segments such as {"s": 1, "n": 100} or {"ids": [1, 2]}'
    if not isinstance(prompt, list) or not prompt:
        raise InputError(f"{where}: prompt is {_shown(prompt)}; {form}")
    return sum(
        _segment_tokens(segment, f"{where}: prompt has the segment {_shown(segment)}; {form}") for segment in prompt
    )


def _segment_tokens(segment: object, wrong: str) -> int:
    if not isinstance(segment, dict):
        raise InputError(wrong)
    if "ids" in segment:
        if not isinstance(segment["ids"], list):
            raise InputError(wrong)
        return len(segment["ids"])
    tokens = segment.get("n")
    if not _whole(tokens, 0, _MOST):
        raise InputError(wrong)
    return tokens


class _Truth:
    """What the recording will tell of one request."""

    def __init__(self, entry: object, index: int, max_model_len: int) -> None:
        where = f"request {index} of the case"
        if not isinstance(entry, dict):
            raise InputError(f"{where} is {_shown(entry)}; it must be an object with {', '.join(_REQUEST)}")
        for key, form in _REQUEST.items():
            if key not in entry:
                raise InputError(f"{where}: {key} is missing; it must be {form}")
        for key, least in (("arrival_step", 0), ("output_len", 1)):
            if not _whole(entry[key], least, _MOST):
                raise InputError(f"{where}: {key} is {_shown(entry[key])}; it must be {_REQUEST[key]}")
        self.name = entry["id"]
        if not isinstance(self.name, str):
            raise InputError(f"{where}: id is {_shown(self.name)}; it must be {_REQUEST['id']}")
        self.arrival = entry["arrival_step"]
        wanted = entry["output_len"]
        self.prompt = _prompt_tokens(entry["prompt"], where)
        if self.prompt < 1:
            raise InputError(f"{where}: prompt has no tokens; it must have at least one")
        if self.prompt >= max_model_len:
            raise InputError(
                f"{where}: prompt has {self.prompt:,} tokens; max_model_len {max_model_len:,} leaves no "
                "room for an output"
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
    def __init__(self, settings: Record, truths: list[_Truth]) -> None:
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
        self.truths = truths
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


def _shown(value: object) -> str:
    """Return a value cut to a readable length."""
    if isinstance(value, int) and value.bit_length() > 2000:  # Python refuses to write much longer ones as digits
        return f"a number of {value.bit_length():,} bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_MISSING = "(missing)"

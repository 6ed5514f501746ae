"""An independent judge: one engine with its pool, per request and per token, as literal as it can be.

It shares no code with the product's engine, keeps no aggregates and never leaps: what is free is found by
walking the running requests. Sizes are slots, times picoseconds. `tests/laws/strategies.py` describes a case.
"""

from collections import namedtuple
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from kvsim.request import Request

CLASSES = ("used", "reserved", "internal", "dead", "moving", "cached", "external", "free")
ARRIVAL, CANCEL, STEP_END = range(3)  # the order within one moment; the next step is planned after them
Event = namedtuple("Event", "time_ps id cause outcome need_slots free_slots largest_hole_slots")
Ended = namedtuple("Ended", "admitted_ps token_ps end_ps end reason generated preemptions lost recomputed")
Outcome = namedtuple("Outcome", "requests events integrals peaks gaps steps max_running stay_ps end_ps")


class Life:
    def __init__(self, request: Request, max_model_len: int) -> None:
        self.id, self.arrival, self.tokens = request.id, request.arrival_ps, request.prompt_tokens
        room, asked = max_model_len - request.prompt_tokens, request.max_tokens or max_model_len
        limits = [(request.output_tokens, "eos"), (asked, "max_tokens"), (room, "max_model_len")]
        self.output, self.reason = min(limits, key=lambda limit: limit[0])
        self.written, self.to_write = 0, request.prompt_tokens + self.output - 1
        self.decoding, self.cancelled, self.open_cause = False, False, ""
        self.regions = list[tuple[int, int]]()  # (address, slots); in a copy the old one first; blocks: one
        self.admissions, self.token_times, self.losses, self.positions = (list[int]() for _ in range(4))


class Engine:
    def __init__(self, case: dict[str, Any]) -> None:
        self.case, self.paged = SimpleNamespace(**case), case["allocator"] in ("paged", "virtual")
        self.waiting, self.running, self.ended = list[Life](), list[Life](), dict[int, Ended]()
        self.scheduled = list[tuple[Life, int]]()  # the step in progress: who computes how many tokens
        self.events, self.batches, self.now = list[Event](), list[int](), 0
        self.history = [(0, self.levels())]

    def capacity(self, tokens: int) -> int:
        unit: int = self.case.block_size if self.paged else self.case.chunk
        return int(self.case.max_model_len) if self.case.allocator == "reserve" else -(-tokens // unit) * unit

    def free(self) -> int:
        return int(self.case.pool_slots) - sum(slots for life in self.running for _, slots in life.regions)

    def holes(self) -> list[tuple[int, int]]:
        """Free runs of slots as (address, slots), lowest first; blocks fit anywhere: what is free is one."""
        edges = [(0, 0), *sorted(r for life in self.running for r in life.regions), (self.case.pool_slots, 0)]
        holes = [(at + slots, following - at - slots) for (at, slots), (following, _) in pairwise(edges)]
        return [(0, self.free())] if self.paged else holes

    def acquire(self, life: Life, tokens: int) -> int:
        """Room for `tokens` in all, in place or else in the lowest hole; the need that is not met, else 0."""
        start, slots = life.regions[-1] if life.regions else (-1, 0)
        goal = max(slots, self.capacity(tokens))
        if goal - slots <= (self.free() if self.paged else dict(self.holes()).get(start + slots, -1)):
            life.regions = [(start, goal)]
            return 0
        fitting = [(address, goal) for address, length in self.holes() if length >= goal and not self.paged]
        life.regions += fitting[:1]
        return 0 if fitting else goal - slots if self.paged else goal

    def admit(self, head: Life, chunk: int) -> int:
        """The blocks of the first chunk, behind the gates of admission; the need that is not met, else 0."""
        block, share = self.case.block_size, self.case.watermark if self.running else 0
        spare = int(share * (self.case.pool_slots // block + 1)) * block  # of all blocks, the null block too
        need = self.capacity(max(chunk, head.tokens if self.case.reserve_full_isl else 0)) + spare
        return need if need > self.free() else self.acquire(head, chunk)

    def levels(self) -> dict[str, int]:
        """Slots by class of the accounting identity, as they stand until the end of the step just planned."""
        level = dict.fromkeys(CLASSES, 0)
        for life in self.running:
            *old, slots = [slots for _, slots in life.regions]
            level["used"] += life.written
            level["moving"] += life.written * len(old)
            level["reserved"] += sum(min(life.to_write, slots) - life.written for slots in [*old, slots])
            level["internal"] += max(0, slots - life.to_write)
        need = self.capacity(self.waiting[0].tokens) if self.waiting else self.case.reference_need_slots
        level["external"] = sum(slots for _, slots in self.holes() if slots < min(need, self.free()))
        return level | {"free": self.case.pool_slots - sum(level.values())}

    def blocked(self, life: Life, outcome: str, need: int) -> None:
        """An allocation that cannot be met; retries that fail for the same cause are no new event."""
        free, largest = self.free(), max(slots for _, slots in self.holes())
        short = "capacity" if free < need else "fragmentation"
        cause = {"reject": "never", "abort": "outgrown"}.get(outcome, short)
        if cause != life.open_cause:
            self.events.append(Event(self.now, life.id, cause, outcome, need, free, largest))
        life.open_cause = cause

    def leave(self, life: Life, end: str) -> None:
        (self.waiting if life in self.waiting else self.running).remove(life)
        admitted, first_token = (times[0] if times else None for times in (life.admissions, life.token_times))
        recomputed, preemptions = len(life.positions) - len(set(life.positions)), len(life.losses)
        counts = (len(life.token_times), preemptions, sum(life.losses), recomputed)
        reason = life.reason if end == "finished" else None
        self.ended[life.id] = Ended(admitted, first_token, self.now, end, reason, *counts)

    def want(self, life: Life, budget: int) -> int:
        threshold = self.case.long_prefill_token_threshold if len(self.running) + len(self.waiting) > 1 else 0
        return min(life.tokens - life.written, threshold or life.tokens, budget)

    def plan(self) -> None:
        budget, preempted = self.case.max_num_batched_tokens, False
        for life in list(self.running):
            while life in self.running and (want := self.want(life, budget)):
                if not (need := self.acquire(life, life.written + want)):
                    self.scheduled.append((life, want))
                    life.open_cause, budget = "", budget - want
                    break
                self.blocked(life, "preempt" if self.running[1:] else "abort", need)
                if self.running == [life]:
                    self.leave(life, "aborted")
                else:
                    preempted = True
                    self.waiting.insert(0, victim := self.running.pop())
                    victim.losses.append(victim.written)
                    victim.written, victim.regions, victim.decoding = 0, [], False
        while self.waiting and budget and len(self.running) < self.case.max_num_seqs and not preempted:
            head, whole = self.waiting[0], self.capacity(self.waiting[0].tokens)
            want = self.want(head, budget if self.case.chunked_prefill else head.tokens)
            if whole > self.case.pool_slots:
                self.blocked(head, "abort", whole)
                self.leave(head, "aborted")
                continue
            if want > budget:
                break
            if need := self.admit(head, want) if self.paged else self.acquire(head, head.tokens):
                self.blocked(head, "wait", need)
                break
            self.running.append(self.waiting.pop(0))
            self.scheduled.append((head, want))
            head.admissions.append(self.now)
            head.open_cause, budget = "", budget - want
        self.history.append((self.now, self.levels()))

    def end_step(self) -> None:
        for life, tokens in self.scheduled:
            life.regions = life.regions[-1:]
            life.positions += range(life.written, life.written + tokens)
            life.written += tokens
            if life.written == life.tokens:
                life.tokens, life.decoding = life.tokens + 1, True
                life.token_times.append(self.now)
            if len(life.token_times) == life.output:
                self.leave(life, "finished")
        for life in [life for life in self.running if life.cancelled]:
            self.leave(life, "cancelled")
        self.scheduled = []
        self.history.append((self.now, self.levels()))


def simulate(case: dict[str, Any], step_ps: Callable[..., int], watch: Callable[..., Any] = id) -> Outcome:
    """Run a case; `step_ps(decodes, context, chunks, copied_slots)` times a step, `watch` sees it start."""
    engine, limit, horizon = Engine(case), case["max_model_len"], case["horizon_ps"]
    requests = [r for r in case["requests"] if horizon is None or r.arrival_ps <= horizon]
    lives = [Life(request, limit) for request in requests]
    agenda = [(r.arrival_ps, ARRIVAL, r.id) for r in requests]
    agenda += [(r.arrival_ps + r.patience_ps, CANCEL, r.id) for r in requests if r.patience_ps is not None]
    while agenda and len(engine.ended) < len(lives) and (horizon is None or min(agenda)[0] <= horizon):
        agenda.remove(event := min(agenda))
        engine.now, kind, life = event[0], event[1], lives[event[2]]
        if kind == STEP_END:
            engine.end_step()
        elif kind == CANCEL:
            life.cancelled = True
            if life in engine.waiting:
                engine.leave(life, "cancelled")
        else:
            engine.waiting.append(life)
            if life.tokens >= limit or engine.capacity(life.tokens) > case["pool_slots"]:
                engine.blocked(life, "reject", engine.capacity(life.tokens))
                engine.leave(life, "rejected")
        due = all(time > engine.now for time, _, _ in agenda) and engine.now != horizon
        while due and not engine.scheduled and (engine.running or engine.waiting):
            engine.plan()
        if engine.scheduled and all(kind != STEP_END for _, kind, _ in agenda):
            watch(engine)
            engine.batches.append(len(engine.running))
            decodes = [life.written + 1 for life, _ in engine.scheduled if life.decoding]
            chunks = [(tokens, life.written) for life, tokens in engine.scheduled if not life.decoding]
            copied = sum(life.written for life in engine.running if len(life.regions) > 1)
            agenda.append((engine.now + step_ps(len(decodes), sum(decodes), chunks, copied), STEP_END, 0))
    engine.now = engine.now if horizon is None or len(engine.ended) == len(case["requests"]) else horizon
    for life in [life for life in lives if life.id not in engine.ended]:
        engine.leave(life, "unfinished")
    engine.history.append((engine.now, {}))
    spans = [(until - since, level) for (since, level), (until, _) in pairwise(engine.history)]
    integrals = {name: sum(level[name] * span for span, level in spans) for name in CLASSES}
    peaks = {name: max((level[name] for span, level in spans if span), default=0) for name in CLASSES}
    gaps = sorted(b - a for life in lives for a, b in pairwise(life.token_times))
    steps = len(engine.batches) - bool(engine.scheduled)  # one that the horizon cuts is none
    stay = sum(ended.end_ps for ended in engine.ended.values()) - sum(life.arrival for life in lives)
    totals = (steps, max(engine.batches, default=0), stay, engine.now)
    return Outcome(engine.ended, engine.events, integrals, peaks, gaps, *totals)

"""What a candidate could bear at best, from its pool and its step times alone: no run, some milliseconds.

A saturated engine decodes as many requests as its pool and its batch limit hold, and computes the prompts of those that
come as others leave. Per request that takes its share of the decode steps, `output tokens x step / batch`, and what the
chunks of its prompt add to the steps they ride in; the rate is one over the sum. Queues, bursts, preemption and found
prefixes are left to the simulation: the number says where to begin, and what is hopeless.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Literal

from kvsim.catalog.engines import profile
from kvsim.request import PS_PER_S, Request, Sequence
from kvsim.scenario.build import Simulation, build
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.schema.serving import ReserveSettings
from kvsim.step import Chunk, Rows, StepPlan

SAMPLE = 1000
"""Requests from which mean lengths are taken."""

GAIN = 1.1
"""A limit on the batch binds where twice the batch would bear this many times the rate."""

Bound = Literal["KV memory", "batch limit", "compute", "bandwidth"]


@dataclass(frozen=True)
class Screened:
    """One candidate. `at_once` requests decode together when it is saturated, `by_memory` as many as the pool holds.

    `rate_per_s` is what all replicas bear together; `binds` what would have to grow first; `prefill_share` the part of
    the engine's time that prompts take, `prompt_share` the part of the KV that is theirs, on average.
    """

    pool_tokens: int
    at_once: int
    by_memory: int
    rate_per_s: float
    binds: Bound
    prefill_share: float
    prompt_share: float


def screen(scenario: Scenario, seed: int | None = None) -> Screened | None:
    """Screen one candidate; None where this arithmetic does not apply: nothing is kept, or requests come by answers.

    Raises what `build` raises: DoesNotFitError where there is no room for KV, InputError where settings do not go
    together.
    """
    simulation = build(scenario, scenario.seed if seed is None else seed)
    allocator = simulation.scheduler.allocator
    if not allocator.keeps or simulation.workload.closed:
        return None
    requests = list(islice(simulation.workload, SAMPLE))
    if not requests:
        return None
    load = _Load.of(scenario, simulation, requests)
    by_memory = max(1, int(allocator.pool_slots / load.held_tokens))
    engine = scenario.settings.engine
    most = engine.max_num_seqs or profile(engine.profile).max_num_seqs
    at_once = min(by_memory, max(1, most // load.samples))
    time_ps, prefill_ps = load.request_ps(at_once)
    binds: Bound = "compute" if prefill_ps > time_ps / 2 else "bandwidth"
    if time_ps > GAIN * load.request_ps(2 * at_once)[0]:
        binds = "KV memory" if by_memory <= at_once else "batch limit"
    return Screened(
        pool_tokens=allocator.pool_slots * simulation.replicas,
        at_once=at_once,
        by_memory=by_memory,
        rate_per_s=simulation.replicas * PS_PER_S / time_ps,
        binds=binds,
        prefill_share=prefill_ps / time_ps,
        prompt_share=load.prompt_tokens / (load.prompt_tokens + load.output_tokens / 2),
    )


@dataclass(frozen=True)
class _Load:
    """The mean request of a candidate, and what it takes."""

    simulation: Simulation
    prompt_tokens: float
    output_tokens: float
    """Of all its samples together."""
    samples: int
    held_tokens: float
    """Slots that it holds, on average over the time it runs."""
    budget: int

    @classmethod
    def of(cls, scenario: Scenario, simulation: Simulation, requests: list[Request]) -> "_Load":
        count = len(requests)
        limit = simulation.max_model_len
        outputs = [[request.output_tokens, *request.more_outputs] for request in requests]
        prompt = sum(min(request.prompt_tokens, limit) for request in requests) / count
        output = sum(map(sum, outputs)) / count
        block = simulation.block_size or 1
        samples = max(map(len, outputs))
        pairs = zip(requests, outputs, strict=True)
        held = [_held(scenario, request.prompt_tokens, of, limit, block) for request, of in pairs]
        # Who runs longer is met more often.
        steps = [max(of) for of in outputs]
        mean_held = sum(tokens * stays for tokens, stays in zip(held, steps, strict=True)) / sum(steps)
        return cls(simulation, prompt, output, samples, mean_held, scenario.token_budget)

    def request_ps(self, at_once: int) -> tuple[float, float]:
        """Engine time that one request takes when so many run at once, and the part that is its prompt's."""
        timing = self.simulation.timing
        rows = at_once * self.samples
        context = self.prompt_tokens + self.output_tokens / self.samples / 2
        decoding = Rows(rows, int(rows * context))
        alone_ps = timing.step_ps(StepPlan(decodes=rows, rows=decoding))
        prefill_ps, written = 0.0, 0
        prompt = max(1, round(self.prompt_tokens))
        piece = max(1, self.budget - rows)
        while written < prompt:
            tokens = min(piece, prompt - written)
            sequence = Sequence(id=0, prompt_tokens=prompt, max_tokens=None)
            plan = StepPlan(chunks=[Chunk(sequence, tokens, written)], decodes=rows, rows=decoding)
            prefill_ps += timing.step_ps(plan) - alone_ps
            written += tokens
        return self.output_tokens * alone_ps / rows + prefill_ps, prefill_ps


def _held(scenario: Scenario, prompt: int, outputs: list[int], limit: int, block: int) -> float:
    allocator = scenario.settings.allocator
    longest = min(limit, prompt + max(outputs))
    if isinstance(allocator, ReserveSettings):
        if allocator.size == "max":
            return limit
        return 1 << (longest - 1).bit_length() if allocator.size == "pow2" else longest
    return prompt + sum(outputs) / 2 + len(outputs) * (block - 1) / 2

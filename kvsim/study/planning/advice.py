"""What keeps a candidate from bearing more, and what to change next, from the runs in which it bore no more."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kvsim.catalog.engines import profile
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.catalog.weights import dtype_bits
from kvsim.metrics.waste import waste_share
from kvsim.scenario.resolve import Scenario
from kvsim.study.planning.rates.screen import GAIN, Bound, Screened
from kvsim.study.planning.rates.sustained import Trial, mean
from kvsim.study.planning.reuse import repeated_share

BLOCKED_SHARE = 0.01
"""KV memory binds where more than this share of the requests found no room at some time."""

MORE: dict[Bound, str] = {
    "KV memory": "More memory: a larger card, more of it (capacity.gpu_memory_utilization), or a higher TP.",
    "batch limit": "Organisation: raise engine.max_num_seqs.",
    "compute": "More compute: a faster card, a higher TP, or one replica more.",
    "bandwidth": "More bandwidth: a card with faster memory, a higher TP, or one replica more.",
}
"""What to change where neither representation, nor organisation, nor reuse has something left to give."""


@dataclass(frozen=True)
class Advice:
    """What binds, and the change that promises most, in a sentence."""

    binds: Bound
    next_change: str


@dataclass(frozen=True)
class _Change:
    """By how much a change stretches what binds, and what it is."""

    factor: float
    text: str


def advice(scenario: Scenario, screened: Screened | None, trial: Trial) -> Advice:
    """What binds the scenario in this trial, at best the first rate that it does not bear, and what to change next.

    The promise of a change is arithmetic, not a run: what it would give is another plan's question.
    """
    binds = binding(scenario, screened, trial)
    best = max(_CHANGES[binds](scenario, screened, trial), key=lambda one: one.factor, default=None)
    return Advice(binds, best.text if best is not None and best.factor >= GAIN else MORE[binds])


def binding(scenario: Scenario, screened: Screened | None, trial: Trial) -> Bound:
    """What is exhausted first: slots, seats in the batch, or else the GPU, by what takes most of its time."""
    settings = scenario.settings
    arrived = sum(run["arrived"] for run in trial.runs)
    blocked = sum(run["blocked"]["capacity"] + run["blocked"]["fragmentation"] for run in trial.runs)
    if blocked > BLOCKED_SHARE * arrived:
        return "KV memory"
    replicas = 1 if settings.fleet is None else settings.fleet.replicas
    seats = replicas * (settings.engine.max_num_seqs or profile(settings.engine.profile).max_num_seqs)
    if all(run["max_running"] >= seats for run in trial.runs):
        return "batch limit"
    return "compute" if screened is None or screened.prefill_share > 0.5 else "bandwidth"


def _for_memory(scenario: Scenario, screened: Screened | None, trial: Trial) -> Iterator[_Change]:
    bits = dtype_bits(scenario.settings.model.kv_dtype)
    if bits > 8:
        factor = bits / 8
        yield _Change(
            factor,
            f"Representation: KV in fp8 (model.kv_dtype: fp8), with which the pool holds {factor:g} x the tokens.",
        )
    waste = mean([waste_share(run) for run in trial.runs])
    if waste is not None and waste < 1:
        name = scenario.settings.allocator.name
        how = "smaller blocks (allocator.block_size)" if name == "paged" else "blocks (allocator: paged)"
        yield _Change(
            1 / (1 - waste), f"Organisation: {how}; {waste:.0%} of the slots that are taken hold no KV of anybody."
        )
    yield from _reuse(scenario, 1.0 if screened is None else screened.prompt_share)


def _for_compute(scenario: Scenario, screened: Screened | None, trial: Trial) -> Iterator[_Change]:
    yield from _reuse(scenario, 1.0 if screened is None else screened.prefill_share)
    card, dtype = gpu(scenario.settings.gpu), scenario.settings.model.weights_dtype
    faster = card.flops_per_s("fp8") / card.flops_per_s(dtype)
    yield _Change(
        faster,
        f"Representation: weights in fp8 (model.weights_dtype: fp8), which the card multiplies {faster:.2g} x as fast.",
    )


def _for_bandwidth(scenario: Scenario, screened: Screened | None, trial: Trial) -> Iterator[_Change]:
    """By the bytes that a decode step reads: the weights once, and the KV of all that run."""
    settings = scenario.settings
    numbers = settings.model
    footprint = Footprint(
        model(scenario.model),
        tensor_parallel=settings.tensor_parallel,
        kv_dtype=numbers.kv_dtype,
        weights_dtype=numbers.weights_dtype,
    )
    replicas = 1 if settings.fleet is None else settings.fleet.replicas
    used = (trial.mean("pool_tokens") or 0.0) * (trial.mean("mean_share", "used") or 0.0) / replicas
    weights, kv = float(footprint.weight_bytes), used * footprint.kv_bytes_per_token
    for bytes_read, dtype, what in (
        (weights, numbers.weights_dtype, "weights in fp8 (model.weights_dtype: fp8)"),
        (kv, numbers.kv_dtype, "KV in fp8 (model.kv_dtype: fp8)"),
    ):
        saved = bytes_read * (1 - 8 / dtype_bits(dtype))
        share = saved / (weights + kv)
        if saved > 0:
            yield _Change(1 / (1 - share), f"Representation: {what}, with which a step reads {share:.0%} fewer bytes.")


def _for_batch(scenario: Scenario, screened: Screened | None, trial: Trial) -> Iterator[_Change]:
    if screened is not None and screened.by_memory > screened.at_once:
        yield _Change(
            screened.by_memory / screened.at_once,
            f"Organisation: raise engine.max_num_seqs; the pool of a replica holds {screened.by_memory:,} such "
            f"requests, and {screened.at_once:,} may run.",
        )


def _reuse(scenario: Scenario, of_whole: float) -> Iterator[_Change]:
    """Prompts that have come before, where prompts are so much of what binds."""
    share = repeated_share(scenario)
    if share * of_whole > 0:
        yield _Change(
            1 / (1 - min(share * of_whole, 0.99)),
            f"Reuse: prefix caching (allocator.prefix_caching: true); {share:.0%} of prompt tokens have come before.",
        )


_CHANGES: dict[Bound, Callable[[Scenario, Screened | None, Trial], Iterator[_Change]]] = {
    "KV memory": _for_memory,
    "batch limit": _for_batch,
    "compute": _for_compute,
    "bandwidth": _for_bandwidth,
}

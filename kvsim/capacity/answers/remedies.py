"""The nearest settings that fit: each remedy changes one thing and is planned again, nothing is extrapolated."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.overheads.releases import overheads
from kvsim.capacity.plan import Plan
from kvsim.capacity.planner import plan
from kvsim.capacity.weights.quantization import scheme
from kvsim.errors import KvsimError
from kvsim.units import GIB

UTILIZATIONS = (0.92, 0.95, 0.97)
"""Shares that are tried, up to what leaves a few hundred MiB of a common card to the driver."""
MOST_RANKS = 64
FEWER_SEQUENCES = 256
"""vLLM's default on small cards."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One changed setting, as the engine's flag says it, and the pool it gives."""

    flag: str
    kv_tokens: int
    max_concurrency: float


def remedies(made: Plan) -> list[Remedy]:
    """What would make a refused plan fit: a shorter context, more ranks, fp8 KV, a higher share, smaller steps.

    The smallest change of each kind, in the engine's own flags.
    """
    if made.verdict.runs:
        return []
    flags: dict[str, str] = overheads()["flags"][made.deployment.engine.engine]
    found: dict[str, Remedy] = {}
    for setting, value, changed in _changes(made):
        if setting in flags and (setting not in found or setting == "quantization"):
            tried = _tried(changed)
            if tried is not None and tried.verdict.runs and tried.blocks.best >= 1:
                key = setting if setting != "quantization" else f"{setting} {value}"
                remedy = Remedy(f"{flags[setting]} {value}", int(tried.tokens.best), round(tried.concurrency.best, 2))
                found[key] = remedy
    return list(found.values())


Change = tuple[str, str | int | float, dict[str, Any]]
"""A setting, its value as a flag has it, and the fields of the deployment that it changes."""


def _changes(made: Plan) -> Iterator[tuple[str, str | int | float, Deployment]]:
    asked = made.deployment
    for setting, value, fields in (*_of_the_pool(made), *_of_the_card(made)):
        try:
            yield setting, value, replace(asked, **fields)
        except KvsimError:
            continue


def _of_the_pool(made: Plan) -> Iterator[Change]:
    """Changes that hold whatever the card is: what a request takes."""
    asked = made.deployment
    longest = made.layout.longest(int(made.blocks.best), asked.step_tokens, asked.longest)
    longest *= asked.decode_context_parallel
    if 0 < longest < asked.longest:
        yield "max_model_len", longest, {"max_model_len": longest}
    if asked.cache_dtype not in ("fp8", "int8", "int4"):
        yield "kv_dtype", "fp8", {"kv_dtype": "fp8"}


def _of_the_card(made: Plan) -> Iterator[Change]:
    """Changes of what is left for KV; where that is given there are none."""
    asked, given = made.deployment, made.deployment.given
    if given.kv_memory is not None or given.num_gpu_blocks is not None:
        return
    for share in UTILIZATIONS:
        if share > asked.share:
            yield "utilization", share, {"utilization": share}
    if given.activation is None and asked.sequences > FEWER_SEQUENCES:
        yield "max_num_seqs", FEWER_SEQUENCES, {"max_num_seqs": FEWER_SEQUENCES}
    if given.weights is not None:
        return
    for ranks in range(asked.tensor_parallel + 1, MOST_RANKS + 1):
        if not asked.model.heads % ranks:
            yield "tensor_parallel", ranks, {"tensor_parallel": ranks}
    if asked.scheme is None:
        for name in ("fp8", "awq"):
            yield "quantization", name, {"scheme": scheme(name)}
    shape = made.layout
    needed = shape.request_blocks(asked.longest, asked.step_tokens) * shape.block_bytes - made.stage.kv.best
    if 0 < needed < made.stage.weights.best:
        gib = ceil(needed / GIB)
        yield "offload", gib, {"offload_bytes": asked.offload_bytes + gib * GIB}


def _tried(changed: Deployment) -> Plan | None:
    try:
        return plan(changed)
    except KvsimError:
        return None

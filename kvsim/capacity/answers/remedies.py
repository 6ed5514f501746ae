"""The nearest settings that fit: each remedy changes one thing and is planned again, nothing is extrapolated."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.plan import Plan
from kvsim.capacity.planner import plan
from kvsim.capacity.span import GIB
from kvsim.errors import KvsimError

UTILIZATIONS = (0.92, 0.95, 0.97)
"""Shares that are tried, up to what leaves a few hundred MiB of a common card to the driver."""
MOST_RANKS = 64


@dataclass(frozen=True, slots=True)
class Remedy:
    """One changed setting, as the engine's flag says it, and the pool it gives."""

    flag: str
    kv_tokens: int
    max_concurrency: float


def remedies(made: Plan) -> list[Remedy]:
    """What would make a refused plan fit: a shorter context, more ranks, fp8 KV, a higher share, smaller steps."""
    if made.verdict.runs:
        return []
    found = []
    for flag, changed in _changes(made):
        try:
            tried = plan(changed)
        except KvsimError:
            continue
        if tried.verdict.runs:
            found.append(Remedy(flag, int(tried.tokens.best), round(tried.concurrency.best, 2)))
    return _nearest(found)


def _changes(made: Plan) -> Iterator[tuple[str, Deployment]]:
    asked = made.deployment
    longest = made.layout.longest(int(made.blocks.best), asked.step_tokens, asked.longest)
    longest *= asked.decode_context_parallel
    if 0 < longest < asked.longest:
        yield f"--max-model-len {longest}", replace(asked, max_model_len=longest)
    if asked.cache_dtype not in ("fp8", "int8", "int4"):
        yield "--kv-cache-dtype fp8", replace(asked, kv_dtype="fp8")
    if asked.given.kv_memory is None and asked.given.num_gpu_blocks is None:
        for share in UTILIZATIONS:
            if share > asked.share:
                yield f"--gpu-memory-utilization {share}", replace(asked, utilization=share)
        for ranks in range(asked.tensor_parallel + 1, MOST_RANKS + 1):
            if not asked.model.heads % ranks and asked.given.weights is None:
                changed = _ranks(asked, ranks)
                if changed is not None:
                    yield f"--tensor-parallel-size {ranks}", changed
        if asked.engine.engine == "vllm":
            offload = _offload_bytes(made)
            if asked.given.weights is None and 0 < offload < made.stage.weights.best:
                gib = ceil(offload / GIB)
                yield f"--cpu-offload-gb {gib}", replace(asked, offload_bytes=asked.offload_bytes + gib * GIB)
        if asked.sequences > 256 and asked.given.activation is None:
            yield "--max-num-seqs 256", replace(asked, max_num_seqs=256)
        if asked.scheme is None and asked.given.weights is None:
            from kvsim.capacity.weights.quantization import scheme

            for name in ("fp8", "awq"):
                yield f"--quantization {name}", replace(asked, scheme=scheme(name))


def _offload_bytes(made: Plan) -> float:
    """Weights that would have to leave the card for one request of max_model_len to fit."""
    asked, stage = made.deployment, made.stage
    return stage.layout.request_blocks(asked.longest, asked.step_tokens) * stage.layout.block_bytes - stage.kv.best


def _ranks(asked: Deployment, ranks: int) -> Deployment | None:
    try:
        return replace(asked, tensor_parallel=ranks)
    except KvsimError:
        return None


def _nearest(found: list[Remedy]) -> list[Remedy]:
    """The first of each flag: the smallest change of its kind."""
    kept: dict[str, Remedy] = {}
    for remedy in found:
        flag = remedy.flag if remedy.flag.startswith("--quantization") else remedy.flag.partition(" ")[0]
        kept.setdefault(flag, remedy)
    return list(kept.values())

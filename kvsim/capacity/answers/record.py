"""A plan as one object for machines: the contract of `kvsim capacity --json`."""

from dataclasses import asdict
from typing import Any

from kvsim.capacity.answers.expected import expected_error
from kvsim.capacity.answers.pressure import pressure
from kvsim.capacity.answers.remedies import remedies
from kvsim.capacity.plan import Plan, StageMemory
from kvsim.capacity.span import Span
from kvsim.catalog.footprint import Footprint
from kvsim.metrics.cost import catalogue_price
from kvsim.units import GIB


def record(made: Plan, *, lengths: dict[str, int] | None = None, shared_tokens: int = 0) -> dict[str, Any]:
    """Everything that the plan says, sizes in GiB on one rank.

    `lengths`: tokens of a request by name (`mean`, `p95`), for how many run at once.
    """
    asked, stage = made.deployment, made.stage
    lengths = lengths or {}
    typical = lengths.get("mean", asked.longest)
    return {
        "model": asked.model.name,
        "gpu": asked.gpu.name if asked.gpu is not None else None,
        "engine": asked.engine.name,
        "verdict": made.verdict.word,
        "reason_class": made.verdict.reason_class,
        "reason": made.verdict.reason,
        "kv_tokens": int(made.tokens.best),
        "kv_tokens_interval": [int(made.tokens.low), int(made.tokens.high)],
        "kv_blocks": int(made.blocks.best),
        "kv_blocks_interval": [int(made.blocks.low), int(made.blocks.high)],
        "block_size": made.layout.block,
        "cpu_blocks": asked.swap_bytes // made.layout.block_bytes,
        "kv_memory_gib": stage.kv.gib,
        "kv_memory_gib_interval": _interval(stage.kv),
        "kv_bytes_per_token": made.kv_bytes_per_token,
        "max_concurrency": round(made.concurrency.best, 2),
        "max_concurrency_interval": [round(made.concurrency.low, 2), round(made.concurrency.high, 2)],
        "max_model_len": asked.longest,
        "binding_rank": stage.name,
        "breakdown_gib": breakdown_gib(made),
        "stages": [_stage(one) for one in made.stages],
        "groups": [asdict(group) for group in made.layout.groups],
        "forced_block": made.layout.forced or None,
        "as_allocated_bytes": _as_allocated(made),
        "minimum_bytes": _minimum(made),
        "engine_lines": made.lines,
        "requests_at_once": {name: round(made.requests_at_once(tokens), 2) for name, tokens in lengths.items()},
        "remedies": [asdict(remedy) for remedy in remedies(made)],
        "pressure": asdict(pressure(made, request_tokens=typical, shared_tokens=min(shared_tokens, typical))),
        "settings": settings(made),
        "cost": _cost(made),
        "provenance": made.provenance,
        "expected_error": expected_error(made),
        "not_modelled": list(made.not_modelled),
    }


def breakdown_gib(made: Plan) -> dict[str, float]:
    """Parts of one card of the stage that decides; they add up to `total`. `left` is what nothing takes."""
    stage, asked = made.stage, made.deployment
    parts = {
        "weights": stage.weights.best,
        "activation": stage.activation.best,
        "non_torch": stage.non_torch.best,
        "cuda_graphs": stage.cuda_graphs.best,
        "kv": float(made.kv_taken_bytes),
    }
    shown = {name: round(size / GIB, 3) for name, size in parts.items()}
    total = round(asked.total.best / GIB, 3)
    usable = round(asked.total.best * asked.share / GIB, 3)
    return {"total": total, "usable": usable, **shown, "left": round(total - sum(shown.values()), 3)}


def settings(made: Plan) -> dict[str, Any]:
    """The settings that the plan holds for, defaults filled in."""
    asked = made.deployment
    return {
        "tensor_parallel": asked.tensor_parallel,
        "pipeline_parallel": asked.pipeline_parallel,
        "data_parallel": asked.data_parallel,
        "gpu_memory_utilization": asked.share,
        "max_model_len": asked.longest,
        "max_num_seqs": asked.sequences,
        "max_num_batched_tokens": asked.step_tokens,
        "dtype": asked.dtype,
        "quantization": asked.scheme.name if asked.scheme is not None else None,
        "kv_cache_dtype": asked.cache_dtype,
    }


def _cost(made: Plan) -> dict[str, Any]:
    """GPUs of all ranks, stages and replicas, and US dollars an hour at the middle of the catalogue's range."""
    asked = made.deployment
    gpus = asked.tensor_parallel * asked.pipeline_parallel * asked.data_parallel
    price = None if asked.gpu is None else catalogue_price(asked.gpu)
    said = "not known" if price is None else str(price)
    return {"gpus": gpus, "usd_per_hour": None if price is None else price.usd * gpus, "price": said}


def _stage(stage: StageMemory) -> dict[str, Any]:
    parts = {
        "weights": stage.weights,
        "activation": stage.activation,
        "non_torch": stage.non_torch,
        "cuda_graphs": stage.cuda_graphs,
        "kv": stage.kv,
    }
    spans = {f"{name}_gib": span.gib for name, span in parts.items()}
    return {"name": stage.name, **spans, "kv_blocks": int(stage.blocks.best)}


def _interval(span: Span) -> list[float]:
    return [round(span.low / GIB, 3), round(span.high / GIB, 3)]


def _as_allocated(made: Plan) -> int:
    """Bytes on a rank that one request of max_model_len takes, in the blocks of the engine."""
    asked = made.deployment
    return made.layout.request_blocks(asked.longest, asked.step_tokens) * made.layout.block_bytes


def _minimum(made: Plan) -> int:
    """Bytes on a rank that one request of max_model_len needs: what its layers look at, and not a slot more."""
    asked = made.deployment
    return Footprint(asked.model, asked.attention_ranks, asked.cache_dtype, state_dtype=asked.dtype).sequence_bytes(
        asked.longest
    )

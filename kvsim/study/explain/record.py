"""The walk through a request as plain values: what `--json` prints."""

from dataclasses import asdict
from typing import Any

import numpy as np

from kvsim.study.explain.attention import Array
from kvsim.study.explain.cost import total
from kvsim.study.explain.example import Step, Walk
from kvsim.study.explain.memory import Life
from kvsim.study.explain.request_bytes import RequestBytes
from kvsim.version import __version__


def record(walk: Walk, request: RequestBytes) -> dict[str, Any]:
    """Everything about the example and the request sized; a masked score is null."""
    given = walk.example
    return {
        "version": __version__,
        "example": {
            "source": given.source,
            "tokens": list(given.tokens),
            "prompt_tokens": given.prompt_tokens,
            "embeddings": given.embeddings.tolist(),
            "candidates": given.candidates,
            "next_token": walk.next_token,
            "last_token": given.last,
            "prefill": _step(walk.prefill),
            "decode": [_step(step) for step in walk.decodes],
            "prefill_behind_hit": _step(walk.hit_prefill),
            "memory": {
                "pool_slots": given.pool_blocks * given.block_size,
                "block_size": given.block_size,
                "paged": [_life(life) for life in walk.uncached],
                "paged_prefix_caching": [_life(life) for life in walk.cached],
            },
        },
        "request": request.to_dict(),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "tokens": list(step.tokens),
        "cached_tokens": step.cached,
        "scores": _rows(step.attended.scores[0]),
        "weights": _rows(step.attended.weights[0]),
        "outputs": _rows(step.attended.outputs),
        "off_recomputed": step.off_recomputed,
        "operators": [
            {
                "name": kept.name,
                "flops": kept.flops,
                "bytes": kept.bytes,
                "flops_without_cache": again.flops,
                "bytes_without_cache": again.bytes,
            }
            for kept, again in zip(
                [*step.with_cache, total(step.with_cache)],
                [*step.without_cache, total(step.without_cache)],
                strict=True,
            )
        ],
    }


def _life(life: Life) -> dict[str, Any]:
    return {
        "request": life.request,
        "hit_tokens": life.hit_tokens,
        "moments": [asdict(moment) for moment in life.moments],
    }


def _rows(matrix: Array) -> list[list[float | None]]:
    return [[float(value) if np.isfinite(value) else None for value in row] for row in matrix]

"""A hit curve as plain values: what `--json` prints and the folder keeps."""

from collections.abc import Mapping
from typing import Any

from kvsim.study.hits.curve import HitCurve, Rate
from kvsim.units import SIZE_UNITS
from kvsim.version import __version__

KNEES = (0.5, 0.9, 0.99)
"""Shares of the ideal whose sizes are told."""


def record(curve: HitCurve, *, model: str | None = None, bytes_per_token: int | None = None) -> dict[str, Any]:
    """Everything about a curve; sizes also in GiB where a token's bytes are known (bf16, on one GPU), else null."""
    prefixes = curve.prefixes
    ideal = curve.lru.ideal

    def size(blocks: int) -> dict[str, Any]:
        tokens = blocks * prefixes.block_tokens
        gib = None if bytes_per_token is None else tokens * bytes_per_token / SIZE_UNITS["GiB"]
        return {"blocks": blocks, "tokens": tokens, "gib": gib}

    def point(at: int, blocks: int) -> dict[str, Any]:
        return {"size": size(blocks), "policies": {name: _of(rates[at], ideal) for name, rates in curve.rates.items()}}

    knees = {share: curve.lru.smallest(share) for share in KNEES}
    return {
        "version": __version__,
        "trace": prefixes.trace,
        "format": prefixes.format,
        "prefix_identity": "prefixes" if prefixes.other_ways == 0 else "contents",
        "block_tokens": prefixes.block_tokens,
        "counted": "full blocks" if curve.full_blocks else "all blocks",
        "requests": len(prefixes.tokens),
        "prompt_tokens": sum(prefixes.tokens),
        "blocks": sum(map(len, prefixes.blocks)),
        "distinct_blocks": prefixes.distinct_blocks,
        "rows_dropped": prefixes.rows_dropped,
        "model": model,
        "kv_bytes_per_token": bytes_per_token,
        "ideal": _of(ideal, ideal),
        "ideal_full_blocks": curve.ideal_full_blocks and _of(curve.ideal_full_blocks, curve.ideal_full_blocks),
        "lru_needs": {f"{share:g}": None if blocks is None else size(blocks) for share, blocks in knees.items()},
        "points": [point(at, blocks) for at, blocks in enumerate(curve.sizes_blocks)],
        "notes": notes(curve),
    }


def notes(curve: HitCurve) -> list[str]:
    """What a reader of the rates should know, in sentences."""
    prefixes = curve.prefixes
    size = prefixes.block_tokens
    said = [
        f"The trace tells prompts apart by blocks of {size:,} tokens: up to {size - 1:,} shared tokens a prompt are "
        "not seen, nor what a cache of smaller blocks would find beyond this.",
        "One cache for all, requests one by one in file order, prompts alone: running requests hold nothing, times do "
        "not matter, outputs are not cached.",
    ]
    if prefixes.other_ways:
        said.insert(
            0,
            f"{prefixes.other_ways:,} blocks stand behind another block than where they were first seen, so the ids "
            "name contents or parts of prompts, not prefixes. Only unbroken heads of prompts count as found.",
        )
    partly = sum(tokens < len(blocks) * size for tokens, blocks in zip(prefixes.tokens, prefixes.blocks, strict=True))
    if partly and not curve.full_blocks:
        said.append(
            f"{partly:,} of {len(prefixes.tokens):,} prompts end in a partly filled block, which engines do not share; "
            "--full-blocks leaves those out."
        )
    if prefixes.rows_dropped:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in prefixes.rows_dropped.items())
        dropped = sum(prefixes.rows_dropped.values())
        said.append(f"{dropped:,} of {prefixes.rows_read:,} rows of the trace were dropped ({reasons}).")
    return said


def _of(rate: Rate, ideal: Rate) -> Mapping[str, Any]:
    return {
        "hit_rate_blocks": rate.blocks,
        "hit_rate_tokens": rate.tokens,
        "share_of_ideal": rate.blocks / ideal.blocks if ideal.blocks else None,
    }

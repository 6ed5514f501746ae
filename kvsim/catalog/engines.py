"""Engine profiles: the scheduling and memory rules of one release of a serving engine, as data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kvsim.catalog.names import DATA, key, unknown


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The rules and defaults of one engine release, as kvsim runs them.

    `scheduler` says who is in a step (continuous, prefill-first, static), `kernel` how attention reads sequences of
    unequal length (ragged, padded), `allocator` how memory is given out, in the keys of a scenario.
    `pipeline_depth` is the number of batches in flight (1: a step is planned after the last one's result).
    Sizes are tokens (`block_size`, `max_num_batched_tokens`, `long_prefill_token_threshold`, 0 for none) and
    sequences (`max_num_seqs`). `reserve_full_isl`: admit only if the blocks of all current tokens fit now.
    `watermark`: share of the pool's blocks that admission leaves untouched. `gpu_memory_utilization`: share
    of the GPU's total memory for everything. `preemption`: what happens to a victim's KV; `swap_space_bytes`: host
    memory for it on each GPU. Where prompts are not chunked the token budget is at least the longest context.
    `known_deviations` says in sentences where kvsim differs from the release. What a start takes of a card beside
    weights and KV is the start-up planner's to say.
    """

    name: str
    engine: str
    version: str
    scheduler: str
    pipeline_depth: int
    kernel: str = "ragged"
    allocator: Mapping[str, Any] = field(default_factory=dict)
    block_size: int
    max_num_seqs: int
    max_num_batched_tokens: int
    chunked_prefill: bool
    long_prefill_token_threshold: int
    reserve_full_isl: bool
    watermark: float
    gpu_memory_utilization: float
    preemption: str
    swap_space_bytes: int = 0
    prefix_caching: bool
    description: str
    source: str
    known_deviations: tuple[str, ...] = ()


def profile(name: str) -> Profile:
    """Return the profile of that name, such as "vllm@0.33-sync"; case and punctuation do not matter.

    Raises InputError with the closest names.
    """
    for known in profiles():
        if key(known.name) == key(name):
            return known
    names = [known.name for known in profiles()]
    raise unknown("engine profile", name, names, "`kvsim engines` lists all")


@cache
def profiles() -> tuple[Profile, ...]:
    """Return every profile, in the order of the data file."""
    entries = json.loads((DATA / "engines.json").read_bytes())["profiles"]
    return tuple(Profile(**{**entry, "known_deviations": tuple(entry["known_deviations"])}) for entry in entries)

"""The three-token example worked through: what each phase computes, what it costs, and where its KV lies."""

import json
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from kvsim.memory.paged import PagedAllocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.study.explain.attention import Array, Attended, Layer, caches_of, forward
from kvsim.study.explain.cost import Operator, Shape, step_cost
from kvsim.study.explain.memory import Life, lives


@dataclass(frozen=True, eq=False)
class Example:
    """What is given: tokens with embeddings (tokens x width), the candidates after the prompt, and the pool.

    The model is one layer of one head whose projections are the identity, so that q = k = v = x.
    """

    source: str
    tokens: tuple[str, ...]
    """Prompt and decoded tokens, each of which has an embedding; `last` is sampled and never computed."""
    prompt_tokens: int
    embeddings: Array
    candidates: dict[str, float]
    last: str
    pool_blocks: int
    block_size: int

    @property
    def output_tokens(self) -> int:
        """Those decoded, and the last one."""
        return len(self.tokens) - self.prompt_tokens + 1

    @cached_property
    def layers(self) -> list[Layer]:
        """Its one layer."""
        return [Layer.identity(self.embeddings.shape[1])]

    @property
    def shape(self) -> Shape:
        """The sizes of the model, in float64."""
        width = self.embeddings.shape[1]
        return Shape(layers=1, hidden=width, heads=1, kv_heads=1, head_dim=width)


def example() -> Example:
    """Read the example that comes with kvsim."""
    text = (files("kvsim.study.explain") / "data" / "three_tokens.json").read_text(encoding="utf-8")
    given = json.loads(text)
    every = [*given["prompt"], *given["decoded"]]
    return Example(
        source=given["source"],
        tokens=tuple(one["token"] for one in every),
        prompt_tokens=len(given["prompt"]),
        embeddings=np.array([one["embedding"] for one in every], dtype=np.float64),
        candidates=given["candidates"],
        last=given["last"],
        pool_blocks=given["pool"]["blocks"],
        block_size=given["pool"]["block_size"],
    )


@dataclass(frozen=True, eq=False)
class Step:
    """One forward pass: the tokens computed, what attention made of them, and its cost with and without a cache."""

    tokens: tuple[str, ...]
    cached: int
    """Tokens whose keys and values were there already."""
    attended: Attended
    with_cache: list[Operator]
    without_cache: list[Operator]
    off_recomputed: float
    """The largest difference of its outputs from those of computing every token so far again."""


@dataclass(frozen=True, eq=False)
class Walk:
    """The whole way of one request, and of a second one with the same prompt where prefixes are cached."""

    example: Example
    prefill: Step
    decodes: list[Step]
    hit_prefill: Step
    """The prefill of the second request, behind what it finds cached."""
    uncached: list[Life]
    """Where blocks are given back as they are (`paged`): one request."""
    cached: list[Life]
    """Where blocks keep their contents (`paged` with prefix caching): the same request twice."""

    @property
    def next_token(self) -> str:
        """Greedy: the likeliest candidate."""
        return max(self.example.candidates, key=self.example.candidates.__getitem__)


def walk(given: Example | None = None) -> Walk:
    """Work the example through: attention in float64, memory by the real allocators."""
    given = given or example()
    pool_slots, size = given.pool_blocks * given.block_size, given.block_size
    outputs, prompt = given.output_tokens, given.prompt_tokens
    cached = lives(PrefixAllocator(pool_slots, block_size=size), prompt, outputs, requests=2)
    caches = caches_of(given.layers)
    prefill = _step(given, caches, 0, prompt)
    decodes = [_step(given, caches, at, at + 1) for at in range(prompt, len(given.tokens))]
    hit = cached[1].hit_tokens
    behind = caches_of(given.layers)
    forward(given.layers, given.embeddings[:hit], behind)
    return Walk(
        example=given,
        prefill=prefill,
        decodes=decodes,
        hit_prefill=_step(given, behind, hit, prompt),
        uncached=lives(PagedAllocator(pool_slots, block_size=size), prompt, outputs, requests=1),
        cached=cached,
    )


def _step(given: Example, caches: Any, first: int, end: int) -> Step:
    """Compute tokens `first` to `end` - 1 behind what is cached. Mutates the caches."""
    attended = forward(given.layers, given.embeddings[first:end], caches)[-1]
    again = forward(given.layers, given.embeddings[:end], caches_of(given.layers))[-1]
    return Step(
        tokens=given.tokens[first:end],
        cached=first,
        attended=attended,
        with_cache=step_cost(given.shape, new=end - first, cached=first),
        without_cache=step_cost(given.shape, new=end, cached=0),
        off_recomputed=float(np.abs(attended.outputs - again.outputs[first:]).max()),
    )

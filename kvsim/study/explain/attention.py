"""Causal attention with a KV cache, in float64 and as plainly as it can be written: the ground of every number shown.

Layers stand directly on each other. What lies between them in a real model (norms, MLPs, residuals) looks at one
position at a time: it changes the numbers, and nothing about what a cache saves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Layer:
    """The projections of one attention layer.

    `w_q` is hidden x (heads x head_dim), `w_k` and `w_v` hidden x (kv_heads x head_dim), `w_o` (heads x head_dim) x
    hidden; heads stand side by side in the columns. Each KV head serves heads / kv_heads query heads (GQA).
    """

    w_q: Array
    w_k: Array
    w_v: Array
    w_o: Array
    heads: int
    kv_heads: int

    @classmethod
    def identity(cls, width: int) -> "Layer":
        """One head whose projections change nothing: q = k = v = x."""
        one = np.eye(width)
        return cls(one, one, one, one, heads=1, kv_heads=1)


class LayerCache:
    """The keys and values that one layer has computed, tokens x kv_heads x head_dim. There is one for each layer."""

    def __init__(self, layer: Layer) -> None:
        empty = np.empty((0, layer.kv_heads, layer.w_k.shape[1] // layer.kv_heads))
        self.keys: Array = empty
        self.values: Array = empty

    @property
    def tokens(self) -> int:
        """Tokens whose keys and values it has."""
        return len(self.keys)

    def append(self, keys: Array, values: Array) -> None:
        """Write those of new tokens behind the others. Mutates."""
        self.keys = np.concatenate([self.keys, keys])
        self.values = np.concatenate([self.values, values])


@dataclass(frozen=True, eq=False)
class Attended:
    """What one layer computed for new tokens, the keys and values of all tokens so far at hand.

    `queries` is new x heads x head_dim, `scores` and `weights` heads x new x context (scores -inf where the causal mask
    hides a later token), `outputs` new x hidden.
    """

    queries: Array
    scores: Array
    weights: Array
    outputs: Array


def attend(layer: Layer, inputs: Array, cache: LayerCache) -> Attended:
    """Attend from new tokens (new x hidden) to all cached ones and to themselves; their K and V are cached. Mutates.

    Queries are used once and thrown away: only keys and values of a token are ever asked for again.
    """
    new, before = len(inputs), cache.tokens
    queries = (inputs @ layer.w_q).reshape(new, layer.heads, -1)
    keys = (inputs @ layer.w_k).reshape(new, layer.kv_heads, -1)
    values = (inputs @ layer.w_v).reshape(new, layer.kv_heads, -1)
    cache.append(keys, values)

    sharing = layer.heads // layer.kv_heads
    all_keys, all_values = (np.repeat(one, sharing, axis=1) for one in (cache.keys, cache.values))
    scores = np.einsum("ihd,jhd->hij", queries, all_keys) / sqrt(queries.shape[2])
    # Token `before + i` sees the tokens up to itself; one new token alone sees all, and needs no mask.
    later = np.arange(cache.tokens) > before + np.arange(new)[:, None]
    scores[:, later] = -np.inf
    weights = softmax(scores)
    mixed = np.einsum("hij,jhd->ihd", weights, all_values)
    return Attended(queries, scores, weights, mixed.reshape(new, -1) @ layer.w_o)


def softmax(scores: Array) -> Array:
    """Each row as shares of one: exp(score) over the sum of them, the largest taken off first."""
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Array = raised / raised.sum(axis=-1, keepdims=True)
    return shares


def caches_of(layers: Iterable[Layer]) -> list[LayerCache]:
    """An empty cache for each layer."""
    return [LayerCache(layer) for layer in layers]


def forward(layers: Sequence[Layer], inputs: Array, caches: Sequence[LayerCache]) -> list[Attended]:
    """Send new tokens (new x hidden) through all layers behind what their caches hold. Mutates the caches."""
    steps = []
    for layer, cache in zip(layers, caches, strict=True):
        steps.append(attend(layer, inputs, cache))
        inputs = steps[-1].outputs
    return steps

"""FLOPs and bytes of one step by operator, with a KV cache and without one: closed forms.

Every multiplication, addition, division and exponential counts as one FLOP (a dot product of n is 2n), and every
operator reads each of its inputs once and writes its output once. The LM head, the same in both cases, is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The sizes of a model of equal attention layers; `element_bytes` is the size of one number."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    element_bytes: int = 8

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of K and V of one token over all layers."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.element_bytes


@dataclass(frozen=True)
class Operator:
    """What one operator takes in a step, over all layers."""

    name: str
    flops: int
    bytes: int


def step_cost(shape: Shape, *, new: int, cached: int) -> list[Operator]:
    """What it takes to compute `new` tokens behind `cached` ones, operator by operator.

    Without a cache a step computes all tokens so far as new ones: `new` is the context, `cached` 0.
    """
    queries, keys, context = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim, cached + new
    # Token i of the new ones meets the cached ones, those before it and itself.
    scores = shape.heads * (new * cached + new * (new + 1) // 2)

    def projection(name: str, inner: int, outer: int) -> Operator:
        return operator(name, 2 * new * inner * outer, new * inner + inner * outer + new * outer)

    def operator(name: str, flops: int, elements: int) -> Operator:
        return Operator(name, shape.layers * flops, shape.layers * elements * shape.element_bytes)

    return [
        projection("Q projection", shape.hidden, queries),
        projection("K projection", shape.hidden, keys),
        projection("V projection", shape.hidden, keys),
        # Each score is a dot product and is scaled.
        operator("scores Q K^T", scores * (2 * shape.head_dim + 1), new * queries + context * keys + scores),
        # Less the largest, exponential, sum, quotient.
        operator("softmax", scores * 4, 2 * scores),
        operator("weights V", scores * 2 * shape.head_dim, scores + context * keys + new * queries),
        projection("output projection", queries, shape.hidden),
    ]


def total(operators: Sequence[Operator]) -> Operator:
    """All of them together."""
    return Operator("all", sum(one.flops for one in operators), sum(one.bytes for one in operators))

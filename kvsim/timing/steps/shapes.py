"""The kernels of one forward pass of a model on one GPU of a group: their shapes and how often each runs."""

from dataclasses import dataclass
from functools import cached_property

from kvsim.catalog.models import Model
from kvsim.catalog.weights import count

EXPERTS_ALONE = frozenset({"fp4", "int4"})
"""Published 4-bit checkpoints of MoE models quantise the experts and leave the rest at 16 bits (DeepSeek-R1-FP4,
Kimi-K2.5, gpt-oss model cards)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a model is spread: `tensor_parallel` GPUs share the attention of a batch, `data_parallel` such groups have a
    batch each, experts are cut over `expert_tensor` x `expert_parallel` GPUs. All GPUs step together."""  # fmt: skip

    tensor_parallel: int = 1
    data_parallel: int = 1
    expert_tensor: int = 1
    expert_parallel: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of the replica."""
        return self.tensor_parallel * self.data_parallel


@dataclass(frozen=True, slots=True)
class Matrix:
    """A linear layer of `n` outputs and `k` inputs on one GPU, `times` a pass; `groups`: the batch of all groups."""

    n: float
    k: float
    times: int
    dtype: str
    all_groups: bool = False


@dataclass(frozen=True, slots=True)
class Attention:
    """`layers` layers that attend with these heads of one GPU, to at most `window` tokens (None: to all)."""

    heads: float
    kv_heads: float
    head_dim: float
    kv_elements: float
    layers: int
    window: int | None = None


@dataclass(frozen=True)
class Shapes:
    """Kernels of `model` under `layout`, with weights of type `dtype` (bf16, fp8, int8, int4 or fp4)."""

    model: Model
    layout: Layout
    dtype: str = "bf16"

    @cached_property
    def dense_dtype(self) -> str:
        """The type of the weights outside the experts."""
        return "bf16" if self.dtype in EXPERTS_ALONE and self.model.moe_layers else self.dtype

    @cached_property
    def attention(self) -> tuple[Attention, ...]:
        """Attention by kind of layer; a latent cache is one KV head that every GPU holds whole."""
        model, ranks = self.model, self.layout.tensor_parallel
        heads = max(1.0, model.heads / ranks)
        if model.kv_lora_rank is not None:
            width = model.kv_lora_rank + (model.qk_rope_head_dim or 0)
            return (Attention(heads, 1, width, width, model.full_attn_layers),)
        kinds = []
        if model.full_attn_layers and model.full_kv_heads:
            kinds.append(
                self._grouped(heads, model.full_kv_heads, model.full_head_dim, model.full_v_head_dim,
                              model.full_attn_layers, None)
            )  # fmt: skip
        if model.window_layers and model.window_kv_heads:
            kinds.append(
                self._grouped(heads, model.window_kv_heads, model.window_head_dim, model.window_v_head_dim,
                              model.window_layers, model.window_tokens)
            )  # fmt: skip
        return tuple(kinds)

    def _grouped(
        self, heads: float, kv_heads: int, k_dim: int | None, v_dim: int | None, layers: int, window: int | None
    ) -> Attention:
        elements = (k_dim or 0) + (v_dim or 0)
        return Attention(
            heads, max(1.0, kv_heads / self.layout.tensor_parallel), elements / 2, elements, layers, window
        )

    @cached_property
    def matrices(self) -> tuple[Matrix, ...]:
        """All linear layers of a pass but the routed experts and the LM head."""
        model, ranks, dtype = self.model, self.layout.tensor_parallel, self.dense_dtype
        hidden = model.hidden
        found = []
        for kind in self.attention:
            if model.kv_lora_rank is not None:
                found += self._latent(kind)
                continue
            outputs = kind.heads * kind.head_dim + kind.kv_heads * kind.kv_elements
            found.append(Matrix(outputs, hidden, kind.layers, dtype))
            found.append(Matrix(hidden, kind.heads * kind.head_dim, kind.layers, dtype))
        dense_layers = model.layers - model.moe_layers
        wide = 2 if model.gated_mlp else 1
        if dense_layers and model.intermediate:
            width = model.intermediate / ranks
            found += [Matrix(wide * width, hidden, dense_layers, dtype), Matrix(hidden, width, dense_layers, dtype)]
        if model.moe_layers:
            found.append(Matrix(model.experts, hidden, model.moe_layers, "bf16"))
            if model.shared_experts:
                width = model.shared_experts * (model.moe_intermediate or 0) / ranks
                found += [
                    Matrix(wide * width, hidden, model.moe_layers, dtype),
                    Matrix(hidden, width, model.moe_layers, dtype),
                ]
        return (*found, *self._state_layers(found))

    def _latent(self, kind: Attention) -> list[Matrix]:
        """Multi-head latent attention with absorbed projections (DeepSeek-V2 section 2.1)."""
        model, dtype = self.model, self.dense_dtype
        heads, rank, rope = kind.heads, model.kv_lora_rank or 0, model.qk_rope_head_dim or 0
        per_head = (model.qk_nope_head_dim or 0) + rope
        down = rank + rope + (model.q_lora_rank or 0)
        found = [Matrix(down, model.hidden, kind.layers, dtype)]
        inputs = model.q_lora_rank or model.hidden
        found.append(Matrix(heads * per_head, inputs, kind.layers, dtype))
        found.append(Matrix(heads * ((model.qk_nope_head_dim or 0) + model.v_head_dim), rank, kind.layers, dtype))
        found.append(Matrix(model.hidden, heads * model.v_head_dim, kind.layers, dtype))
        return found

    def _state_layers(self, others: list[Matrix]) -> list[Matrix]:
        """What the published count leaves for layers with a state: two projections of equal size each."""
        model = self.model
        if not model.state_layers or not model.weights_known:
            return []
        ranks = self.layout.tensor_parallel
        weights = count(model)
        routed = model.experts_active * weights.expert if model.moe_layers else 0
        counted = sum(one.n * one.k * one.times for one in others) * ranks + routed
        left = max(0.0, weights.linear - counted) / model.state_layers / model.hidden / ranks
        if left < 1:
            return []
        return [
            Matrix(left * 2 / 3, model.hidden, model.state_layers, self.dense_dtype),
            Matrix(model.hidden, left / 3, model.state_layers, self.dense_dtype),
        ]

    @cached_property
    def head(self) -> Matrix:
        """The LM head, at 16 bits as published checkpoints leave it."""
        return Matrix(self.model.vocab / self.layout.tensor_parallel, self.model.hidden, 1, "bf16")

    @property
    def experts_family(self) -> str:
        """The family of the routed experts; published 8-bit checkpoints keep a scale for each block of numbers."""
        return f"moe:{'fp8_block' if self.dtype == 'fp8' else self.dtype}"

    @property
    def state_bytes_per_sequence(self) -> float:
        """Bytes of state that a step reads and writes again for each sequence on one GPU, at 16 bits."""
        elements = self.model.state_layers * (self.model.state_elements_per_layer or 0)
        return 2 * 2 * elements / self.layout.tensor_parallel

"""The footprint of a model on one rank: bytes of KV per token and sequence, bytes of weights, work per token.

Exact integer arithmetic throughout. Bytes are those of one rank of `tensor_parallel`; parameters and FLOPs
are those of the whole model, of which a rank does 1 / tensor_parallel.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import index as whole
from typing import SupportsIndex

from kvsim.catalog.models import Model
from kvsim.catalog.weights import EMBEDDING_BITS, Weights, count, dtype_bits


@dataclass(frozen=True)
class BatchBytes:
    """KV bytes of a batch on one rank: after `prefill` of all prompts, `growth` by the outputs, `total`."""

    prefill: int
    growth: int
    total: int


@dataclass(frozen=True)
class Footprint:
    """What `model` costs on one rank when its tensors are split over `tensor_parallel` ranks.

    `kv_dtype` is the type of the KV cache, apart from `weights_dtype`; `state_dtype` that of the fixed state
    of linear attention and Mamba layers (engines choose bf16 or fp32). KV heads on a rank are max(1, KV heads
    / tensor_parallel); a latent (MLA) and an indexer's key are held whole by every rank. `tensor_parallel`
    must divide the heads, and divide or be a multiple of the KV heads. Raises ValueError naming the argument.
    """

    model: Model
    tensor_parallel: int = 1
    kv_dtype: str = "bf16"
    weights_dtype: str = "bf16"
    state_dtype: str = "bf16"

    def __post_init__(self) -> None:
        ranks = positive("tensor_parallel", self.tensor_parallel)
        for argument in ("kv_dtype", "weights_dtype", "state_dtype"):
            dtype_bits(getattr(self, argument), argument)
        if self.model.heads % ranks:
            raise ValueError(
                f"tensor_parallel: {ranks} does not divide the {self.model.heads} heads of {self.model.name}"
            )
        for kv_heads in (self.model.full_kv_heads, self.model.window_kv_heads):
            if kv_heads and kv_heads % ranks and ranks % kv_heads:
                raise ValueError(
                    f"tensor_parallel: {ranks} neither divides nor is a multiple of the {kv_heads} KV heads "
                    f"of {self.model.name}"
                )

    # KV

    @cached_property
    def kv_bytes_per_token(self) -> int:
        """Bytes that one more token adds on this rank while the sequence is shorter than every window."""
        return self.full_kv_bytes_per_token + self.window_kv_bytes_per_token

    @property
    def kv_bytes_per_token_far(self) -> int:
        """Bytes that one more token adds on this rank once every window is full."""
        return self.full_kv_bytes_per_token

    @cached_property
    def full_kv_bytes_per_token(self) -> int:
        """Bytes per token of the layers that keep every token, on this rank."""
        model = self.model
        if model.kv_lora_rank is not None:
            per_layer = model.kv_lora_rank + (model.qk_rope_head_dim or 0)
        else:
            per_layer = self._kv_elements(model.full_kv_heads, model.full_head_dim, model.full_v_head_dim)
        per_layer += model.index_head_dim or 0
        return _bytes(model.kv_caching_full_layers * per_layer, self.kv_dtype)

    @cached_property
    def window_kv_bytes_per_token(self) -> int:
        """Bytes per token of the window layers, on this rank; they keep at most `window_tokens` tokens."""
        model = self.model
        per_layer = self._kv_elements(model.window_kv_heads, model.window_head_dim, model.window_v_head_dim)
        return _bytes(model.kv_caching_window_layers * per_layer, self.kv_dtype)

    @cached_property
    def state_bytes(self) -> int:
        """Bytes of fixed state per sequence, whatever its length, on this rank; the ranks share it evenly."""
        elements = self.model.state_layers * (self.model.state_elements_per_layer or 0)
        return _bytes(-(-elements // self.tensor_parallel), self.state_dtype)

    def sequence_bytes(self, tokens: SupportsIndex) -> int:
        """KV and state bytes of one sequence of `tokens` tokens on this rank.

        Full layers hold every token, window layers min(tokens, window_tokens), state layers a fixed cost.
        Layers that cross-attend hold image tokens only and so add nothing for text. ValueError unless
        `tokens` is positive.
        """
        n = positive("tokens", tokens)
        in_window = min(n, self.model.window_tokens) if self.model.window_tokens else 0
        return self.state_bytes + n * self.full_kv_bytes_per_token + in_window * self.window_kv_bytes_per_token

    def batch(self, prompts: Iterable[SupportsIndex], outputs: Iterable[SupportsIndex]) -> BatchBytes:
        """KV bytes of a ragged batch on this rank: the sum over requests of prompt + output, no padding.

        `prompts` and `outputs` are tokens, one each per request, all positive. ValueError naming the
        argument.
        """
        prompt_tokens = [positive("prompts", n) for n in prompts]
        output_tokens = [positive("outputs", n) for n in outputs]
        if len(prompt_tokens) != len(output_tokens):
            raise ValueError(f"outputs: {len(output_tokens)} given for {len(prompt_tokens)} prompts; one each")
        prefill = sum(map(self.sequence_bytes, prompt_tokens))
        total = sum(self.sequence_bytes(p + o) for p, o in zip(prompt_tokens, output_tokens, strict=True))
        return BatchBytes(prefill, total - prefill, total)

    def blocks(self, tokens: SupportsIndex, block_size: SupportsIndex) -> tuple[int, int]:
        """Blocks that `tokens` tokens take, and the slots lost in the last one."""
        return blocks(tokens, block_size)

    def tokens_in(self, size_bytes: SupportsIndex) -> int:
        """Length of the longest single sequence whose KV and state fit in `size_bytes` on this rank, or 0.

        ValueError if `size_bytes` is not positive, or if length costs nothing once the windows are full.
        """
        room = positive("size_bytes", size_bytes) - self.state_bytes
        if room < self.kv_bytes_per_token:
            return 0
        window = self.model.window_tokens or 0
        if room < window * self.kv_bytes_per_token:
            return room // self.kv_bytes_per_token
        beyond = room - window * self.window_kv_bytes_per_token
        if not self.full_kv_bytes_per_token:
            raise ValueError(f"size_bytes: {self.model.name} holds any length in it, all its layers forget")
        return beyond // self.full_kv_bytes_per_token

    # Weights and work

    @cached_property
    def weights(self) -> Weights:
        """The parameters of the whole model by what they are for."""
        return count(self.model)

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of the weights on this rank: 1 / tensor_parallel of the model's, rounded up.

        Engines' own figures differ by under 1 % (norms, and what every rank holds whole). Embedding and LM
        head stay at 16 bits when `weights_dtype` is narrower, as in published quantised checkpoints.
        """
        weights, bits = self.weights, dtype_bits(self.weights_dtype)
        tables = weights.embedding + (0 if weights.tied else weights.lm_head)
        total_bits = (weights.total - tables) * bits + tables * max(bits, EMBEDDING_BITS)
        return -(-total_bits // (8 * self.tensor_parallel))

    @property
    def parameters(self) -> int:
        """Parameters of the whole model, tied tables once."""
        return self.weights.total

    @property
    def active_parameters(self) -> int:
        """Parameters of the whole model that one token passes, embedding and LM head included."""
        return self.weights.active

    @property
    def linear_parameters(self) -> int:
        """Active parameters without embedding and LM head: each costs a token 2 FLOPs."""
        return self.weights.linear

    @property
    def lm_head_parameters(self) -> int:
        """Parameters of the LM head, tied or not: each costs a sampled token 2 FLOPs."""
        return self.weights.lm_head

    @property
    def expert_parameters(self) -> int:
        """Parameters of one expert, over all MoE layers (0 for a dense model)."""
        return self.weights.expert

    @property
    def experts(self) -> int:
        """Routed experts of each MoE layer (0 for a dense model)."""
        return self.model.experts

    @property
    def experts_active(self) -> int:
        """Routed experts that each token passes in each MoE layer (0 for a dense model)."""
        return self.model.experts_active

    @cached_property
    def attention_flops_per_pair(self) -> int:
        """FLOPs of one query token against one context token, over all layers that attend in full.

        2 x heads x (head_dim + v_head_dim) a layer, scores and values; for latent attention in its absorbed
        form 2 x heads x (2 x kv_lora_rank + qk_rope_head_dim) (DeepSeek-V2 section 2.1.2). A sparse indexer
        is not taken into account: its model is counted as attending in full.
        """
        model = self.model
        if model.kv_lora_rank is not None:
            width = 2 * model.kv_lora_rank + (model.qk_rope_head_dim or 0)
        else:
            width = (model.full_head_dim or 0) + (model.full_v_head_dim or 0)
        return 2 * model.full_attn_layers * model.heads * width

    @cached_property
    def window_attention_flops_per_pair(self) -> int:
        """The same over all window layers, where a query meets at most `window_tokens` context tokens."""
        model = self.model
        width = (model.window_head_dim or 0) + (model.window_v_head_dim or 0)
        return 2 * model.window_layers * model.heads * width

    def _kv_elements(self, kv_heads: int | None, k_dim: int | None, v_dim: int | None) -> int:
        """Elements of K and V of one token in one layer on this rank."""
        if not kv_heads:
            return 0
        return max(1, kv_heads // self.tensor_parallel) * ((k_dim or 0) + (v_dim or 0))


def blocks(tokens: SupportsIndex, block_size: SupportsIndex) -> tuple[int, int]:
    """Blocks that `tokens` tokens take and the slots lost in the last one: 4,096 by 128 are 32 and 0."""
    n, size = positive("tokens", tokens), positive("block_size", block_size)
    taken = -(-n // size)
    return taken, taken * size - n


def kv_bytes(
    layers: SupportsIndex,
    kv_heads: SupportsIndex,
    head_dim: SupportsIndex,
    tokens: SupportsIndex,
    batch: SupportsIndex = 1,
    dtype: str = "bf16",
) -> int:
    """The plain formula: 2 (K and V) x layers x KV heads x head dimension x tokens x batch x bytes each.

    ValueError naming the argument that is not a positive whole number.
    """
    elements = 2
    for argument, value in (
        ("layers", layers),
        ("kv_heads", kv_heads),
        ("head_dim", head_dim),
        ("tokens", tokens),
        ("batch", batch),
    ):
        elements *= positive(argument, value)
    return _bytes(elements, dtype)


def positive(argument: str, value: SupportsIndex) -> int:
    """Return `value` as an int; ValueError naming `argument` unless it is a positive whole number."""
    try:
        number = whole(value)
    except TypeError:
        number = 0
    if number <= 0 or isinstance(value, bool):
        raise ValueError(f"{argument}: {value!r} is impossible; must be a positive whole number")
    return number


def _bytes(elements: int, dtype: str) -> int:
    return -(-elements * dtype_bits(dtype) // 8)

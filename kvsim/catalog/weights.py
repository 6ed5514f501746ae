"""How many weights a model has, which of them a token passes, and how many bits a number takes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvsim.errors import InputError

if TYPE_CHECKING:
    from kvsim.catalog.models import Model

DTYPE_BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}
"""Bits of one number by type. The scales that quantised formats keep beside the numbers are not counted."""

EMBEDDING_BITS = 16
"""Published quantised checkpoints leave the embedding tables and the LM head at 16 bits."""


@dataclass(frozen=True)
class Weights:
    """Parameters of the whole model, in numbers (not bytes), over all layers and ranks.

    `total`: all, tied tables once. `active`: those a token passes. `embedding`: the input tables (tokens and
    learned positions). `lm_head`: the output projection, a table of its own or the input table when `tied`.
    `linear`: what a token multiplies with apart from embedding and LM head: attention projections, MLP or
    active experts, shared experts, router. `expert`: one expert, over all MoE layers. Norms and biases, under
    0.1 %, are left out.
    """

    total: int
    active: int
    embedding: int
    lm_head: int
    tied: bool
    linear: int
    expert: int


def dtype_bits(dtype: str, argument: str = "dtype") -> int:
    """Bits of one number of `dtype`; ValueError naming `argument` for a type not known."""
    try:
        return DTYPE_BITS[dtype]
    except (KeyError, TypeError):
        raise ValueError(f"{argument}: unknown type {dtype!r}; must be one of {', '.join(DTYPE_BITS)}") from None


def weight_bytes(parameters: int, dtype: str = "bf16") -> int:
    """Bytes of `parameters` numbers of `dtype`, rounded up to a whole byte: 4e9 of bf16 are 7.45 GiB."""
    if parameters <= 0:
        raise ValueError(f"parameters: {parameters} is impossible; must be positive")
    return -(-int(parameters) * dtype_bits(dtype) // 8)


def count(model: "Model") -> Weights:
    """Count the weights of `model`.

    From the architecture where it describes all of them; otherwise total and active are the published counts
    and `linear` is what they leave (InputError when the counts are not known; see `Model.weights_known`).
    """
    embedding = (model.vocab + model.learned_positions) * model.hidden
    lm_head = model.vocab * model.hidden
    tables = embedding + (0 if model.tied_embeddings else lm_head)
    expert = _mlp(model, model.moe_intermediate or 0) * model.moe_layers
    resting = (model.experts - model.experts_active) * expert
    if model.parameters_from == "published":
        total = _published(model, "params_total_b")
        active = _published(model, "params_active_b")
    else:
        total = tables + _attention(model) + _mlps(model, expert)
        active = total - resting
    return Weights(total, active, embedding, lm_head, model.tied_embeddings, active - tables, expert)


def _published(model: "Model", field: str) -> int:
    value: float | None = getattr(model, field)
    if value is None:
        raise InputError(
            f"model {model.name}: {field} is not known, and its fields do not describe all weights; "
            "its KV can be sized, its weights and step times cannot"
        )
    return round(value * 1e9)


def _mlp(model: "Model", width: int) -> int:
    """One feed-forward block: up and down, and a gate where there is one."""
    return (3 if model.gated_mlp else 2) * model.hidden * width


def _mlps(model: "Model", expert: int) -> int:
    dense = (model.layers - model.moe_layers) * _mlp(model, model.intermediate or 0)
    router = model.moe_layers * model.hidden * model.experts
    return dense + router + (model.experts + model.shared_experts) * expert


def _attention(model: "Model") -> int:
    if model.is_mla:
        return model.full_attn_layers * (_latent_attention(model) + _indexer(model))
    full = _grouped_attention(model, model.full_kv_heads, model.full_head_dim, model.full_v_head_dim)
    window = _grouped_attention(model, model.window_kv_heads, model.window_head_dim, model.window_v_head_dim)
    return (
        model.full_attn_layers * full[0]
        + model.kv_caching_full_layers * full[1]
        + model.window_layers * window[0]
        + model.kv_caching_window_layers * window[1]
    )


def _grouped_attention(model: "Model", kv_heads: int | None, k_dim: int | None, v_dim: int | None) -> tuple[int, int]:
    """One layer's query and output projections, and key and value projections if it owns a cache."""
    per_head = model.hidden * ((k_dim or 0) + (v_dim or 0))
    return model.heads * per_head, (kv_heads or 0) * per_head


def _latent_attention(model: "Model") -> int:
    """DeepSeek-V2 section 2.1: queries through an optional low rank, keys and values through the latent."""
    assert model.kv_lora_rank is not None
    assert model.qk_nope_head_dim is not None
    assert model.qk_rope_head_dim is not None
    hidden, heads = model.hidden, model.heads
    per_head = model.qk_nope_head_dim + model.qk_rope_head_dim
    if model.q_lora_rank is None:
        query = hidden * heads * per_head
    else:
        query = hidden * model.q_lora_rank + model.q_lora_rank * heads * per_head
    down = hidden * (model.kv_lora_rank + model.qk_rope_head_dim)
    up = model.kv_lora_rank * heads * (model.qk_nope_head_dim + model.v_head_dim)
    return query + down + up + heads * model.v_head_dim * hidden


def _indexer(model: "Model") -> int:
    """DeepSeek-V3.2's lightning indexer: its queries from the low rank, one key head, one weight per head."""
    if not model.index_head_dim or not model.index_heads:
        return 0
    query = (model.q_lora_rank or model.hidden) * model.index_heads * model.index_head_dim
    return query + model.hidden * (model.index_head_dim + model.index_heads)

"""What one layer of a model holds on a rank: numbers of weights by part, with what tensor parallelism does to each."""

from dataclasses import dataclass

from kvsim.catalog.models import Model
from kvsim.catalog.weights import count


@dataclass(frozen=True, slots=True)
class Split:
    """Over how many ranks the tensors of a layer are split.

    `ranks` share MLP and experts, `attention_ranks` the heads (1 where attention runs data-parallel).
    """

    ranks: int = 1
    attention_ranks: int = 1


def layer_weights(model: Model, layer: int, split: Split, pad: tuple[int, int] | None = None) -> dict[str, int]:
    """Weights of one layer on a rank: `attention`, `mlp`, `experts` (routed), `whole` (router, never quantised).

    Where the model's fields do not describe all weights, each layer has an even share of the published total. `pad`
    gives multiples for a rank's expert width and for the hidden size. Norms and biases, under 0.1 %, are left out.
    """
    if model.parameters_from == "published":
        weights = count(model)
        tables = weights.embedding + (0 if weights.tied else weights.lm_head)
        share = -(-(weights.total - tables) // (model.layers * split.ranks))
        return {"attention": 0, "mlp": share, "experts": 0, "whole": 0}
    parts = {"attention": _attention(model, layer, split.attention_ranks), "mlp": 0, "experts": 0, "whole": 0}
    if layer < model.layers - model.moe_layers:
        parts["mlp"] = _mlp(model, model.intermediate or 0, split.ranks)
    else:
        width = model.moe_intermediate or 0
        parts["experts"] = model.experts * _mlp(model, width, split.ranks, pad)
        parts["mlp"] = model.shared_experts * _mlp(model, width, split.ranks)
        parts["whole"] = model.hidden * model.experts
    return parts


def kind_of(model: Model, layer: int) -> str:
    """`window`, `state`, `cross` or `full`: kinds are spread evenly, the last layer of each period attends in full."""
    others = (("window", model.window_layers), ("state", model.state_layers), ("cross", model.cross_attn_layers))
    kind, layers = max(others, key=lambda other: other[1])
    full = model.layers - layers
    if full and (layer + 1) * full // model.layers > layer * full // model.layers:
        return "full" if model.full_attn_layers else kind
    return kind if layers else "full"


def _mlp(model: Model, width: int, ranks: int, pad: tuple[int, int] | None = None) -> int:
    hidden, narrow = model.hidden, -(-width // ranks)
    if pad is not None:
        narrow, hidden = -(-narrow // pad[0]) * pad[0], -(-hidden // pad[1]) * pad[1]
    return (3 if model.gated_mlp else 2) * hidden * narrow


def _attention(model: Model, layer: int, ranks: int) -> int:
    if model.is_mla:
        return _latent(model, ranks)
    if kind_of(model, layer) == "window":
        kv_heads, k_dim, v_dim = model.window_kv_heads, model.window_head_dim, model.window_v_head_dim
        owners, layers = model.kv_caching_window_layers, model.window_layers
    else:
        kv_heads, k_dim, v_dim = model.full_kv_heads, model.full_head_dim, model.full_v_head_dim
        owners, layers = model.kv_caching_full_layers, model.full_attn_layers
    per_head = model.hidden * ((k_dim or 0) + (v_dim or 0))
    own = max(1, (kv_heads or 0) // ranks) * per_head
    return -(-model.heads * per_head // ranks) + own * owners // max(1, layers)


def _latent(model: Model, ranks: int) -> int:
    """DeepSeek-V2 section 2.1: the down projections are held whole by every rank, the up projections split by heads."""
    assert model.kv_lora_rank is not None
    rope, nope = model.qk_rope_head_dim or 0, model.qk_nope_head_dim or 0
    heads, hidden = model.heads, model.hidden
    down = hidden * (model.kv_lora_rank + rope)
    if model.q_lora_rank is None:
        query = hidden * heads * (nope + rope) // ranks
    else:
        down += hidden * model.q_lora_rank
        query = model.q_lora_rank * heads * (nope + rope) // ranks
    up = model.kv_lora_rank * heads * (nope + model.v_head_dim) // ranks
    if model.index_heads and model.index_head_dim:
        down += (model.q_lora_rank or hidden) * model.index_heads * model.index_head_dim
        down += hidden * (model.index_head_dim + model.index_heads)
    return down + query + up + heads * model.v_head_dim * hidden // ranks

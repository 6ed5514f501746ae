"""What a token takes in one layer of each kind on a rank, and the block sizes that backends and states force."""

from dataclasses import dataclass

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.overheads.releases import overheads
from kvsim.capacity.weights.layers import kind_of
from kvsim.capacity.weights.loaded import Stage
from kvsim.catalog.models import Model
from kvsim.catalog.weights import dtype_bits


@dataclass(frozen=True, slots=True)
class Page:
    """`layers` of one kind that own a cache: `token_bytes` a token in each, or `state_bytes` a request."""

    kind: str
    layers: int
    token_bytes: int = 0
    state_bytes: int = 0


def layer_pages(deployment: Deployment, stage: Stage) -> list[Page]:
    """The kinds of layers of one stage, full attention first. Layers that reuse another's KV own none."""
    model, ranks = deployment.model, deployment.attention_ranks
    kinds = [kind_of(model, layer) for layer in range(stage.first_layer, stage.first_layer + stage.layers)]
    bits = dtype_bits(deployment.cache_dtype)
    full = _owners(kinds.count("full"), model.full_attn_layers, model.kv_caching_full_layers)
    window = _owners(kinds.count("window"), model.window_layers, model.kv_caching_window_layers)
    state = (model.state_elements_per_layer or 0) // ranks * deployment.number_bytes
    return [
        Page("full", full, -(-_full_elements(model, ranks) * bits // 8)),
        Page("window", window, -(-_elements(
            model.window_kv_heads, model.window_head_dim, model.window_v_head_dim, ranks) * bits // 8)),
        Page("state", kinds.count("state"), state_bytes=state),
    ]  # fmt: skip


def forced_block(deployment: Deployment, pages: list[Page]) -> tuple[int, str]:
    """(tokens of a block, why it is more than the settings say).

    Latent attention has kernels for one block size; and where state layers share the pool, a block of attention must be
    as large as a state, in multiples of the block that was asked for.
    """
    block, why = deployment.block, ""
    if deployment.engine.engine == "vllm" and deployment.model.is_mla and deployment.block_size is None:
        arch = deployment.gpu.arch if deployment.gpu is not None else ""
        block = max(block, overheads()["latent_block"].get(arch, block))
        why = f"the latent-attention kernel of {arch} GPUs takes blocks of {block} tokens" if block > 16 else ""
    attention = [page for page in pages if page.kind == "full"]
    states = [page for page in pages if page.kind == "state"]
    if attention and states and deployment.engine.engine == "vllm":
        needed = -(-states[0].state_bytes // attention[0].token_bytes)
        aligned = -(-needed // block) * block
        if aligned > block:
            why = f"a block must hold the state of one layer, {states[0].state_bytes:,} B"
            block = aligned
    return block, why


def _owners(layers: int, kind_layers: int, owners: int) -> int:
    return round(layers * owners / kind_layers) if kind_layers else 0


def _full_elements(model: Model, ranks: int) -> int:
    if model.is_mla:
        elements = (model.kv_lora_rank or 0) + (model.qk_rope_head_dim or 0)
    else:
        elements = _elements(model.full_kv_heads, model.full_head_dim, model.full_v_head_dim, ranks)
    return elements + (model.index_head_dim or 0)


def _elements(kv_heads: int | None, k_dim: int | None, v_dim: int | None, ranks: int) -> int:
    return max(1, (kv_heads or 0) // ranks) * ((k_dim or 0) + (v_dim or 0)) if kv_heads else 0

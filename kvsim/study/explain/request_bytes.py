"""The KV of one request of a real model in bytes: by the formula, and in an engine, which computes one token fewer."""

from dataclasses import asdict, dataclass
from typing import Any

from kvsim.catalog.footprint import Footprint, blocks, positive
from kvsim.catalog.models import Model
from kvsim.errors import InputError

EXERCISE_MODEL, EXERCISE_PROMPT_TOKENS, EXERCISE_OUTPUT_TOKENS = "qwen2.5-1.5b", 200, 100
"""The request that is sized where nobody asks for another: an exercise of a course on KV caches."""

BLOCK_SIZE = 16
"""Slots of a block of vLLM's pool, unless told otherwise (`block_size` of the profile vllm@0.33)."""


@dataclass(frozen=True, kw_only=True)
class RequestBytes:
    """Bytes of KV (and of fixed state, where layers keep one) of one request, on one GPU that holds the whole model.

    `formula_bytes` is prompt + output tokens, as books have it. `engine_bytes` is what an engine has written at the
    end: the token sampled last is never computed, since nothing follows that would attend to it. `block_bytes` is what
    its blocks take, the slots of the last one that nobody writes included; None where windows give blocks back.
    """

    model: str
    layers: str
    kv_dtype: str
    prompt_tokens: int
    output_tokens: int
    bytes_per_token: int
    far_bytes_per_token: int
    """What one more token adds once every window is full."""
    window_tokens: int | None
    state_bytes: int
    prefill_bytes: int
    formula_bytes: int
    engine_tokens: int
    engine_bytes: int
    block_size: int
    blocks: int
    block_bytes: int | None

    @property
    def windows_full(self) -> bool:
        """At least one window has let a token go by the end."""
        return self.window_tokens is not None and self.engine_tokens > self.window_tokens

    def to_dict(self) -> dict[str, Any]:
        """All of it by name."""
        return asdict(self)


def request_bytes(
    model: Model,
    prompt_tokens: int,
    output_tokens: int,
    *,
    kv_dtype: str = "bf16",
    block_size: int = BLOCK_SIZE,
) -> RequestBytes:
    """Size one request on `model`.

    Raises InputError where the request is longer than the model's context, and where chunked layers would keep a part
    of a chunk that depends on where in it the request ends; ValueError naming the number that is not positive.
    """
    footprint = Footprint(model, kv_dtype=kv_dtype)
    tokens = positive("prompt_tokens", prompt_tokens) + positive("output_tokens", output_tokens)
    written = tokens - 1
    if tokens > model.max_context:
        raise InputError(
            f"--prompt-tokens {prompt_tokens}, --output-tokens {output_tokens}: are {tokens:,} tokens together, and "
            f"{model.name} has a context of {model.max_context:,}; give fewer"
        )
    if "chunked" in model.attention and tokens > (model.window_tokens or 0):
        raise InputError(
            f"--model {model.name}: beyond {model.window_tokens:,} tokens its chunked layers keep what belongs to the "
            "present chunk, between one token and all of it, so that no formula in the length alone holds; give "
            "fewer tokens"
        )
    taken, _ = blocks(written, block_size)
    rolls = model.window_tokens is not None and taken * block_size > model.window_tokens
    return RequestBytes(
        model=model.name,
        layers=_layers(model),
        kv_dtype=kv_dtype,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        bytes_per_token=footprint.kv_bytes_per_token,
        far_bytes_per_token=footprint.kv_bytes_per_token_far,
        window_tokens=model.window_tokens,
        state_bytes=footprint.state_bytes,
        prefill_bytes=footprint.sequence_bytes(prompt_tokens),
        formula_bytes=footprint.sequence_bytes(tokens),
        engine_tokens=written,
        engine_bytes=footprint.sequence_bytes(written),
        block_size=block_size,
        blocks=taken,
        block_bytes=None if rolls else footprint.sequence_bytes(taken * block_size),
    )


def _layers(model: Model) -> str:
    """What keeps KV, in words: `28 layers x 2 (K and V) x 2 KV heads x 128`."""
    said = []
    full, window = model.kv_caching_full_layers, model.kv_caching_window_layers
    if full and model.is_mla:
        said.append(f"{full} layers x (latent {model.kv_lora_rank} + rotary {model.qk_rope_head_dim})")
    elif full:
        said.append(_heads(full, "layers", model.full_kv_heads, model.full_head_dim, model.full_v_head_dim))
    if window:
        kind = f"layers of a window of {model.window_tokens:,}"
        said.append(_heads(window, kind, model.window_kv_heads, model.window_head_dim, model.window_v_head_dim))
    if full and model.index_head_dim:
        said.append(f"{full} indexer keys of {model.index_head_dim}")
    if model.state_layers:
        said.append(f"{model.state_layers} layers of fixed state")
    if model.cross_attn_layers:
        said.append(f"{model.cross_attn_layers} layers for image tokens alone")
    return " + ".join(said)


def _heads(layers: int, kind: str, kv_heads: int | None, k_dim: int | None, v_dim: int | None) -> str:
    if k_dim == v_dim:
        return f"{layers} {kind} x 2 (K and V) x {kv_heads} KV heads x {k_dim}"
    return f"{layers} {kind} x {kv_heads} KV heads x (K {k_dim} + V {v_dim})"

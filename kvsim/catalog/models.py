"""Models as data: the architecture fields that decide how many bytes of weights and KV a model needs."""

import os
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from kvsim.catalog.names import index, read_table, spellings, unknown

VARIANT_WORDS = frozenset({"instruct", "chat", "it", "pt", "hf", "base", "meta"})
"""Words of a published name that tell trained variants of one architecture apart, or say who packed it."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """The architecture of one language model, as published.

    Counts of layers: `full_attn_layers` attend to everything, `window_layers` to the last `window_tokens`,
    `state_layers` keep a fixed state of `state_elements_per_layer` elements per sequence instead of KV,
    `cross_attn_layers` cache image tokens only. `kv_caching_*_layers` own a KV cache; they are fewer than the
    layers that attend where layers share one (`kv_shared_layers` reuse another's). Dimensions are elements;
    `head_dim` is that of queries and keys. KV heads and their dimensions are given for full and for window
    layers; a model with `kv_lora_rank` (multi-head latent attention) has none, it caches one latent and one
    rope vector per token. `index_head_dim` is the cached key of a sparse-attention indexer. A field that does
    not apply is None or 0.

    `other_params_b`, in units of 1e9, are weights outside the text layers (vision tower, projector), which no
    quantisation touches. `rope_elements` is the size of the rotary tables that an engine keeps beside the weights;
    None: max_context x rotary dimension, 0 for models with none.

    `params_total_b` and `params_active_b` are published counts in units of 1e9. `parameters_from` says
    whether the weights are counted from the architecture or taken as published, because the fields do not
    describe all of them.
    """

    name: str
    hf_id: str = ""
    aliases: tuple[str, ...] = ()
    kind: str = "dense"
    attention: str = ""
    layers: int
    full_attn_layers: int = 0
    window_layers: int = 0
    window_tokens: int | None = None
    state_layers: int = 0
    state_kind: str = ""
    state_elements_per_layer: int | None = None
    cross_attn_layers: int = 0
    kv_shared_layers: int = 0
    kv_caching_full_layers: int = 0
    kv_caching_window_layers: int = 0
    hidden: int
    intermediate: int | None = None
    heads: int
    head_dim: int
    v_head_dim: int
    full_kv_heads: int | None = None
    full_head_dim: int | None = None
    full_v_head_dim: int | None = None
    window_kv_heads: int | None = None
    window_head_dim: int | None = None
    window_v_head_dim: int | None = None
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    index_heads: int | None = None
    index_head_dim: int | None = None
    gated_mlp: bool = True
    vocab: int
    tied_embeddings: bool = False
    learned_positions: int = 0
    max_context: int
    experts: int = 0
    experts_active: int = 0
    shared_experts: int = 0
    moe_intermediate: int | None = None
    moe_layers: int = 0
    other_params_b: float | None = None
    rope_elements: int | None = None
    parameters_from: str = "architecture"
    params_total_b: float | None = None
    params_active_b: float | None = None
    kv_bytes_per_token_near_bf16: int | None = None
    kv_bytes_per_token_far_bf16: int | None = None
    note: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "heads", "head_dim", "v_head_dim", "vocab", "max_context"):
            _need_positive(name, getattr(self, name))
        kinds = self.full_attn_layers + self.window_layers + self.state_layers + self.cross_attn_layers
        if not 0 < kinds <= self.layers:
            raise ValueError(f"layers: {self.layers} layers cannot hold {kinds} attention and state layers")
        self._check_owners("full", self.full_attn_layers)
        self._check_owners("window", self.window_layers)
        if not self.is_mla and self.full_attn_layers:
            self._check_kv_heads("full")
        if self.window_layers:
            _need_positive("window_tokens", self.window_tokens)
            self._check_kv_heads("window")
        if self.state_layers:
            _need_positive("state_elements_per_layer", self.state_elements_per_layer)
        if self.is_mla:
            for name in ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim"):
                _need_positive(name, getattr(self, name))
        if self.moe_layers:
            _need_positive("moe_intermediate", self.moe_intermediate)
            if not 0 < self.experts_active <= self.experts:
                raise ValueError(f"experts_active: {self.experts_active} of {self.experts} experts is impossible")
        if not 0 <= self.moe_layers <= self.layers:
            raise ValueError(f"moe_layers: {self.moe_layers} of {self.layers} layers is impossible")
        if self.parameters_from not in ("architecture", "published"):
            raise ValueError(f"parameters_from: {self.parameters_from!r}; must be 'architecture' or 'published'")

    def _check_owners(self, kind: str, layers: int) -> None:
        owners = getattr(self, f"kv_caching_{kind}_layers")
        if owners > layers or (layers and owners <= 0):
            raise ValueError(f"kv_caching_{kind}_layers: {owners} of {layers} {kind} layers is impossible")

    def _check_kv_heads(self, kind: str) -> None:
        for part in ("kv_heads", "head_dim", "v_head_dim"):
            _need_positive(f"{kind}_{part}", getattr(self, f"{kind}_{part}"))
        kv_heads = getattr(self, f"{kind}_kv_heads")
        if self.heads % kv_heads:
            raise ValueError(f"{kind}_kv_heads: {kv_heads} KV heads cannot share {self.heads} heads evenly")

    @property
    def is_mla(self) -> bool:
        """Whether attention is multi-head latent attention, which caches a latent vector instead of heads."""
        return self.kv_lora_rank is not None

    @property
    def weights_known(self) -> bool:
        """Whether the weights can be sized: counted from the architecture, or published."""
        published = self.params_total_b is not None and self.params_active_b is not None
        return self.parameters_from == "architecture" or published

    @property
    def kv_heads(self) -> int | None:
        """KV heads of the full layers, else of the window layers; None for latent attention."""
        return self.full_kv_heads if self.full_kv_heads is not None else self.window_kv_heads


def model(name_or_path: str | Path) -> Model:
    """Return the model of that name, or the one a Hugging Face `config.json` describes.

    A name is the catalogue's, the Hugging Face id with or without its owner, or an alias; case, punctuation
    and variant words such as "Instruct" do not matter. A path is a `config.json` or a folder that holds one;
    names win, so a folder with a model's name is written `./NAME`. Raises InputError with the three closest
    names, or naming the file and key that is wrong.
    """
    text = str(name_or_path)
    looks_like_a_path = (
        isinstance(name_or_path, Path) or text.startswith((".", "/", "~")) or text.lower().endswith(".json")
    )
    if not looks_like_a_path:
        row = _find(text)
        if row is not None:
            return _build(row)
    path = Path(text).expanduser()
    if looks_like_a_path or (text and os.path.exists(path)):
        from kvsim.catalog.huggingface import (
            read_config,
        )  # late: most processes name a model of the catalogue

        return read_config(path)
    hint = "`kvsim models` lists all, and a path to a Hugging Face config.json works too"
    raise unknown("model", text, (row["name"] for row in _rows()), hint)


def models() -> list[Model]:
    """Return every model of the catalogue, in the order of its data file."""
    return [_build(row) for row in range(len(_rows()))]


def _find(name: str) -> int | None:
    names = _index()
    for spelling in spellings(name, VARIANT_WORDS):
        if spelling in names:
            return names[spelling]
    return None


@cache
def _rows() -> list[dict[str, str]]:
    return read_table("models.csv")


@cache
def _index() -> dict[str, int]:
    named = ((i, (row["name"], row["hf_id"], *_aliases(row))) for i, row in enumerate(_rows()))
    return index(named, VARIANT_WORDS)


def _aliases(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(alias for alias in row["aliases"].split(";") if alias)


@cache
def _build(row_number: int) -> Model:
    row = _rows()[row_number]
    values: dict[str, object] = {"aliases": _aliases(row)}
    for field in fields(Model):
        text = row[field.name]
        if field.type is bool:
            values[field.name] = text == "1"
        elif field.type is str:
            values[field.name] = text
        elif text and field.name != "aliases":
            values[field.name] = float(text) if field.type == float | None else int(text)
    return Model(**values)  # type: ignore[arg-type]


def _need_positive(name: str, value: int | None) -> None:
    if value is None or value <= 0:
        raise ValueError(f"{name}: {value} is impossible; must be a positive whole number")

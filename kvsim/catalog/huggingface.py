"""A Hugging Face `config.json` read as a Model: one reader per family of architectures.

Families that write the same keys share a reader. A key that a family's configuration class fills in when the
file leaves it out is filled in from `data/huggingface.json`; a key that is needed and has no such default is
an error that names the file and the key.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvsim.catalog.models import Model
from kvsim.catalog.names import DATA
from kvsim.errors import InputError

MOST = 1 << 53
"""The largest whole number that every reader of JSON keeps apart from its neighbours."""

MOST_LAYERS = 10_000
"""Layers are looked at one by one; no model has a tenth of these."""

MOST_BYTES = 4 * 2**20
"""A config.json has some kilobytes."""


class Config:
    """One (text) configuration: its keys, its family's defaults, and where it stands for messages."""

    def __init__(self, file: Path, keys: dict[str, Any], defaults: dict[str, Any], prefix: str = "") -> None:
        self.file = file
        self.prefix = prefix
        self._keys = keys
        self._defaults = defaults

    def get(self, *names: str) -> Any:
        """Return the first of `names` that is there and not null, else the family's default, else None."""
        for source in (self._keys, self._defaults):
            for name in names:
                if source.get(name) is not None:
                    return source[name]
        return None

    def need(self, *names: str) -> int:
        """Return the positive whole number under the first of `names`; InputError where none is there."""
        value = self.number(*names)
        if value is None:
            either = " or ".join(f"{self.prefix}{name}" for name in names)
            raise InputError(f"{self.file}: key {either} is missing; it is needed to size the model")
        return value

    def number(self, *names: str) -> int | None:
        """Return the positive whole number under the first of `names`, or None where none is there."""
        value = self.get(*names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MOST:
            raise self.wrong(names[0], value, "must be a positive whole number, at most 2^53")
        return value

    def count(self, name: str) -> int:
        """Return the whole number under `name`, 0 where it is not there."""
        value = self.get(name)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
            raise self.wrong(name, value, "must be a whole number from 0 to 2^53")
        return value

    def strings(self, name: str) -> list[str] | None:
        """Return the list of words under `name`, or None where it is not there."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self.wrong(name, value, "must be a list of words")
        return value

    def wrong(self, name: str, value: object, right: str) -> InputError:
        """Return the error for a value that cannot be."""
        return InputError(f"{self.file}: key {self.prefix}{name} is {value!r}; {right}")


def read_config(path: str | Path) -> Model:
    """Return the model that a `config.json`, or the folder that holds it, describes.

    A multimodal model's `text_config` is what is read. Raises InputError naming the file, the key and what is
    wrong.
    """
    file = Path(path)
    if file.is_dir():
        file /= "config.json"
    keys = _load(file)
    prefix, text = "", keys
    if isinstance(keys.get("text_config"), dict):
        # Vision-language files say outside of it whether the embeddings are tied.
        outside = {"tie_word_embeddings": keys.get("tie_word_embeddings")}
        prefix, text = "text_config.", {**outside, **keys["text_config"]}
    family = text.get("model_type")
    if family is None:
        raise InputError(f"{file}: key {prefix}model_type is missing; it says how to read the others")
    if not isinstance(family, str) or family not in _READERS:
        known = ", ".join(sorted(_READERS))
        raise InputError(f"{file}: key {prefix}model_type is {family!r}; known are {known}")
    config = Config(file, text, _defaults().get(family, {}), prefix)
    fields = _READERS[family](config)
    home = file.parent.resolve().name if file.name == "config.json" else file.stem
    name = str(keys.get("_name_or_path") or home).rstrip("/").rsplit("/", 1)[-1]
    if not name.isprintable():
        raise InputError(f"{file}: the name {name!r} has characters that cannot be shown; give _name_or_path another")
    try:
        return Model(name=name, attention=_attention_word(fields), source=str(file), **fields)
    except ValueError as error:
        raise InputError(f"{file}: {error}") from None


def _load(file: Path) -> dict[str, Any]:
    try:
        # Before it is opened: opening a pipe waits for somebody to write into it.
        if file.exists() and not file.is_file():
            raise InputError(f"{file}: is no file but a folder, a device or a pipe; must be a config.json")
        with file.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise InputError(f"{file}: has more than {MOST_BYTES:,} bytes, and no config.json has; name another")
        keys = json.loads(raw)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); must be a config.json") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: is not JSON ({error})") from None
    if not isinstance(keys, dict):
        raise InputError(f"{file}: holds a {type(keys).__name__}; must be the object of a config.json")
    return keys


def _defaults() -> dict[str, dict[str, Any]]:
    defaults: dict[str, dict[str, Any]] = json.loads((DATA / "huggingface.json").read_bytes())["defaults"]
    return defaults


def _attention_word(fields: dict[str, Any]) -> str:
    if fields.get("kv_lora_rank"):
        return "mla+index" if fields.get("index_head_dim") else "mla"
    if fields.get("window_layers"):
        return "hybrid-swa" if fields["full_attn_layers"] else "swa"
    kv_heads = fields["full_kv_heads"]
    return "mha" if kv_heads == fields["heads"] else "mqa" if kv_heads == 1 else "gqa"


def _common(config: Config) -> dict[str, Any]:
    layers = config.need("num_hidden_layers", "n_layer")
    if layers > MOST_LAYERS:
        raise config.wrong("num_hidden_layers", layers, f"must be at most {MOST_LAYERS:,}")
    return {
        "layers": layers,
        "hidden": config.need("hidden_size"),
        "heads": config.need("num_attention_heads", "n_head"),
        "vocab": config.need("vocab_size"),
        "max_context": config.need("max_position_embeddings"),
        "tied_embeddings": bool(config.get("tie_word_embeddings")),
    }


def _heads(config: Config, fields: dict[str, Any], kv_heads: int, window_layers: int) -> dict[str, Any]:
    """Add the per-head fields; `window_layers` layers see `sliding_window` tokens, the rest everything."""
    head_dim = config.number("head_dim")
    if head_dim is None:
        head_dim, rest = divmod(fields["hidden"], fields["heads"])
        if rest:
            right = f"must be a multiple of the {fields['heads']} heads, or head_dim be given"
            raise config.wrong("hidden_size", fields["hidden"], right)
    full_layers = fields["layers"] - window_layers
    fields |= {
        "head_dim": head_dim,
        "v_head_dim": head_dim,
        "full_attn_layers": full_layers,
        "kv_caching_full_layers": full_layers,
        "full_kv_heads": kv_heads,
        "full_head_dim": head_dim,
        "full_v_head_dim": head_dim,
    }
    if window_layers:
        fields |= {
            "window_layers": window_layers,
            "kv_caching_window_layers": window_layers,
            "window_tokens": config.need("sliding_window"),
            "window_kv_heads": kv_heads,
            "window_head_dim": head_dim,
            "window_v_head_dim": head_dim,
        }
    return fields


def _window_layers(config: Config, layers: int) -> int:
    """How many layers slide, from the list of layer types where there is one, else by the family's habit."""
    types = config.strings("layer_types")
    if types is not None:
        for kind in types:
            if kind not in ("full_attention", "sliding_attention"):
                raise config.wrong("layer_types", kind, "known are full_attention and sliding_attention")
        if len(types) != layers:
            raise config.wrong("layer_types", f"a list of {len(types)}", f"must name {layers} layers")
        return types.count("sliding_attention")
    if not config.number("sliding_window") or config.get("use_sliding_window") is False:
        return 0
    period = config.number("sliding_window_pattern", "_sliding_window_pattern")
    if period is not None:
        return layers - layers // period  # the last layer of each period attends in full
    return layers - min(layers, config.count("max_window_layers"))


def _decoder(config: Config) -> dict[str, Any]:
    """Llama's form: gated MLP, grouped KV heads, and a sliding window where the file has one."""
    fields = _common(config)
    fields["intermediate"] = config.need("intermediate_size")
    kv_heads = config.number("num_key_value_heads") or fields["heads"]
    return _heads(config, fields, kv_heads, _window_layers(config, fields["layers"]))


def _experts_everywhere(config: Config) -> dict[str, Any]:
    """Mixtral's form: every layer is a mixture, and the experts' width is the intermediate size."""
    fields = _decoder(config)
    return fields | {
        "kind": "moe",
        "experts": config.need("num_local_experts"),
        "experts_active": config.need("num_experts_per_tok", "experts_per_token"),
        "moe_intermediate": fields["intermediate"],
        "moe_layers": fields["layers"],
    }


def _sparse_steps(config: Config) -> dict[str, Any]:
    """Qwen's form: a mixture every `decoder_sparse_step` layers except those named, and a shared expert."""
    fields = _decoder(config)
    step = config.number("decoder_sparse_step") or 1
    dense = config.get("mlp_only_layers") or []
    if not isinstance(dense, list):
        raise config.wrong("mlp_only_layers", dense, "must be a list of layer numbers")
    width = config.need("moe_intermediate_size")
    shared, rest = divmod(config.count("shared_expert_intermediate_size"), width)
    if rest:
        value = shared * width + rest
        raise config.wrong("shared_expert_intermediate_size", value, f"must be a multiple of {width}")
    return fields | {
        "kind": "moe",
        "experts": config.need("num_experts", "num_local_experts"),
        "experts_active": config.need("num_experts_per_tok"),
        "shared_experts": shared,
        "moe_intermediate": width,
        "moe_layers": sum((i + 1) % step == 0 and i not in dense for i in range(fields["layers"])),
    }


def _latent(config: Config) -> dict[str, Any]:
    """DeepSeek's form: latent attention, the first layers dense, then a mixture with shared experts."""
    fields = _common(config)
    layers = fields["layers"]
    nope, rope = config.need("qk_nope_head_dim"), config.need("qk_rope_head_dim")
    fields |= {
        "intermediate": config.need("intermediate_size"),
        "full_attn_layers": layers,
        "kv_caching_full_layers": layers,
        "head_dim": nope + rope,
        "v_head_dim": config.need("v_head_dim"),
        "q_lora_rank": config.number("q_lora_rank"),
        "kv_lora_rank": config.need("kv_lora_rank"),
        "qk_nope_head_dim": nope,
        "qk_rope_head_dim": rope,
        "index_heads": config.number("index_n_heads"),
        "index_head_dim": config.number("index_head_dim"),
    }
    experts = config.count("n_routed_experts")
    if not experts:
        return fields
    first, every = config.count("first_k_dense_replace"), config.number("moe_layer_freq") or 1
    return fields | {
        "kind": "moe",
        "experts": experts,
        "experts_active": config.need("num_experts_per_tok"),
        "shared_experts": config.count("n_shared_experts"),
        "moe_intermediate": config.need("moe_intermediate_size"),
        "moe_layers": sum(i >= first and i % every == 0 for i in range(layers)),
    }


def _opt(config: Config) -> dict[str, Any]:
    """OPT: no gate, every head has its own KV, learned positions of which the first two are padding."""
    fields = _common(config)
    fields["intermediate"] = config.need("ffn_dim")
    fields["gated_mlp"] = False
    fields["learned_positions"] = fields["max_context"] + config.count("position_offset")
    return _heads(config, fields, fields["heads"], 0)


def _falcon(config: Config) -> dict[str, Any]:
    """Falcon: no gate; one KV head in the first design, groups in the new decoder architecture."""
    fields = _common(config)
    fields["gated_mlp"] = False
    fields["intermediate"] = config.number("ffn_hidden_size") or 4 * fields["hidden"]
    if config.get("new_decoder_architecture"):
        kv_heads = config.number("num_kv_heads", "n_head_kv") or fields["heads"]
    else:
        kv_heads = 1 if config.get("multi_query") else fields["heads"]
    return _heads(config, fields, kv_heads, 0)


_READERS: dict[str, Callable[[Config], dict[str, Any]]] = {
    **dict.fromkeys(("llama", "mistral", "ministral", "qwen2", "qwen3", "phi3"), _decoder),
    **dict.fromkeys(("gemma", "gemma2", "gemma3", "gemma3_text"), _decoder),
    **dict.fromkeys(("mixtral", "gpt_oss"), _experts_everywhere),
    **dict.fromkeys(("qwen2_moe", "qwen3_moe"), _sparse_steps),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa"), _latent),
    "opt": _opt,
    "falcon": _falcon,
}

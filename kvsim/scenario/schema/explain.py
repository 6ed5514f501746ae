"""Pydantic's findings in the words of a scenario: which key, what its value is, and what would be right."""

import re
from typing import Any, get_args

from pydantic import ValidationError

from kvsim.scenario.messages import MISSING, NO_TEXT, TEXT, Mistake, alternatives, closest, show
from kvsim.scenario.schema.fields import Part
from kvsim.scenario.schema.serving import PoolSettings
from kvsim.scenario.schema.settings import Settings
from kvsim.units import parse_size

TYPES = {
    "int_type": ("is not a whole number", "write digits alone, without quotes or a unit"),
    "int_from_float": ("is not a whole number", "write digits alone"),
    "float_type": ("is not a number", "write a number without quotes"),
    "finite_number": ("is not a finite number", "write a number"),
    "string_type": ("is not a text", "write it in quotes"),
    "string_too_short": ("is empty", "write a name"),
    "string_unicode": (NO_TEXT, TEXT),
    "bool_type": ("is neither true nor false", "write true or false"),
}
"""Pydantic's type of error to what the value is and what would be right."""

ELSEWHERE_CALLED = {
    "tp": "tensor_parallel",
    "tensor_parallel_size": "tensor_parallel",
    "disable_cuda_graph": "engine.enforce_eager",
    "max_seq_len": "engine.max_model_len",
    "context_length": "engine.max_model_len",
    "batch_size": "engine.max_num_seqs",
    "max_batch_size": "engine.max_num_seqs",
    "enable_chunked_prefill": "engine.chunked_prefill",
    "chunked_prefill_size": "engine.max_num_batched_tokens",
    "max_running_requests": "engine.max_num_seqs",
    "schedule_policy": "engine.policy",
    "scheduling_policy": "engine.policy",
    "enable_mixed_chunk": "engine.mixed_chunk",
    "overlap": "engine.async_scheduling",
    "disable_radix_cache": "allocator.prefix_caching",
    "enable_prefix_caching": "allocator.prefix_caching",
    "radix_eviction_policy": "allocator.eviction",
    "dtype": "model.weights_dtype",
    "quantization": "model.weights_dtype",
    "kv_cache_dtype": "model.kv_dtype",
    "num_gpu_blocks": "pool.blocks",
    "num_gpu_blocks_override": "pool.blocks",
    "kv_cache_memory_bytes": "pool.memory",
    "mem_fraction_static": "capacity.gpu_memory_utilization",
    "qps": "workload.rate",
    "request_rate": "workload.rate",
    "num_prompts": "workload.requests",
    "num_requests": "workload.requests",
    "input_tokens": "workload.prompt_tokens",
    "input_len": "workload.prompt_tokens",
    "output_len": "workload.output_tokens",
    "max_concurrency": "workload.clients.count",
    "concurrency": "workload.clients.count",
    "think_time": "workload.sessions.think",
    "pipeline_parallel_size": "pipeline_parallel",
    "pp": "pipeline_parallel",
    "num_turns": "workload.sessions.turns",
    "dataset_name": "workload.dataset.name",
}
"""What engines and benchmarks call it, to the key here."""

NOT_MODELLED_YET = {
    "speculative_config": "speculative decoding",
    "speculative_decoding": "speculative decoding",
    "data_parallel": "data parallelism",
    "data_parallel_size": "data parallelism",
    "dp": "data parallelism",
    "cpu_offload_gb": "offloading to the host",
    "enable_lora": "LoRA",
}
"""Keys of engines that ask for something kvsim leaves out, to what that is."""

BOUNDS = {
    "greater_than": ("gt", "not above", "above"),
    "greater_than_equal": ("ge", "below", "at least"),
    "less_than": ("lt", "not below", "below"),
    "less_than_equal": ("le", "above", "at most"),
}
"""Pydantic's type of error to the name of its bound, and the words for what is wrong and right."""


def explain(error: ValidationError, data: dict[str, Any]) -> list[Mistake]:
    """Return every finding as a mistake with its dotted key in `data`, the values that were validated."""
    return [_mistake(finding, data) for finding in error.errors(include_url=False)]


def _mistake(finding: Any, data: dict[str, Any]) -> Mistake:
    kind, value, context = finding["type"], finding["input"], finding.get("ctx", {})
    key, part = _locate(finding["loc"], data)
    if kind == "missing":
        return Mistake(key, MISSING, "is missing", _hint(part, key))
    if kind == "extra_forbidden":
        word = key.rpartition(".")[2].replace("-", "_").lower()
        if word in NOT_MODELLED_YET and key not in all_keys(Settings, ""):
            return Mistake(key, value, f"asks for {NOT_MODELLED_YET[word]}, which is not modelled yet", "remove it")
        dotted = key.split(".")
        if "." in str(finding["loc"][-1]) and key in all_keys(Settings, ""):
            nested = f"{dotted[-1]}: {show(value)}"
            for above in reversed(dotted[:-1]):
                nested = f"{above}: {{{nested}}}"
            return Mistake(
                key, value, "is given for a key with dots", f"write {nested}; dots are for --set and variants"
            )
        if "." in str(finding["loc"][-1]):
            part = _part_at((*finding["loc"][:-1], *str(finding["loc"][-1]).split(".")[:-1])) or part
        return Mistake(key, value, "is given for an unknown key", _nearest(key, part))
    if kind == "value_error":
        return Mistake(key, MISSING, str(context["error"]))
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", context["expected"])
        near = closest(value, allowed) if isinstance(value, str) else []
        guess = f"did you mean {near[0]}? it may be" if near and len(allowed) > 1 else "it must be"
        return Mistake(key, value, "is not known here", f"{guess} {alternatives(allowed)}")
    if kind in BOUNDS:
        bound, wrong, right = BOUNDS[kind]
        limit = _number(context[bound])
        return Mistake(key, value, f"is {wrong} {limit}", f"it must be {right} {limit}")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tag = context["discriminator"].strip("'")
        allowed = re.findall(r"'([^']*)'", context.get("expected_tags", ""))
        if not allowed:
            return Mistake(f"{key}.{tag}", MISSING, "is missing", "say which one is meant")
        chosen = value.get(tag, MISSING) if isinstance(value, dict) else value
        near = closest(chosen, allowed) if isinstance(chosen, str) else []
        guess = f"did you mean {near[0]}? there is" if near else "write the name of one:"
        return Mistake(f"{key}.{tag}" if isinstance(value, dict) else key, chosen, "is not known here",
                       f"{guess} {alternatives(allowed)}")  # fmt: skip
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        inner = _part_at(finding["loc"])
        if inner is PoolSettings and (pool := _pool_of(value)):
            return Mistake(key, value, "is not a mapping", f"write {pool}")
        keys = f"write {{{next(iter(inner.model_fields))}: ...}}" if inner else "write {KEY: VALUE}"
        return Mistake(key, value, "is not a mapping", keys)
    if kind in TYPES:
        problem, remedy = TYPES[kind]
        if kind == "int_type" and isinstance(value, float) and value.is_integer():
            problem, remedy = "is written as a fraction", f"write {int(value)}"
        return Mistake(key, value, problem, remedy)
    return Mistake(key, value, f"is wrong ({finding['msg']})")


def _number(value: float) -> str:
    """Return a bound to the last digit where it is whole."""
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _locate(location: tuple[Any, ...], data: Any) -> tuple[str, type[Part] | None]:
    """Return the dotted key of a location, without pydantic's tags of unions, and the model that holds it.

    An item of a list is its number, from 1.
    """
    words: list[str] = []
    value: Any = data
    for index, step in enumerate(location):
        last = index == len(location) - 1
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            # People count from 1.
            value, step = value[step], step + 1
        elif not (last and isinstance(value, dict)):
            continue
        words.append(str(step))
    return ".".join(words), _part_at(location[:-1])


def _part_at(location: tuple[Any, ...]) -> type[Part] | None:
    """Return the model of the mapping at a location, which may name the member of a union."""
    options: list[type[Part]] = [Settings]
    for step in location:
        fields = [part for part in options if step in part.model_fields]
        if fields:
            options = fields[0].inner(str(step))
        else:
            named = [part for part in options if step in _names(part)]
            options = named or options
    return options[0] if options else None


def _pool_of(value: object) -> str:
    """Return the pool that a bare value most likely means, as a mapping; nothing where it could be anything."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return f"{{tokens: {value}}} or {{blocks: {value}}}"
    try:
        return f"{{memory: {value}}}" if parse_size(value) else ""
    except ValueError:
        return ""


def _names(part: type[Part]) -> tuple[Any, ...]:
    """Return the words that choose this member of a union."""
    return get_args(part.model_fields["name"].annotation) if "name" in part.model_fields else ()


def _hint(part: type[Part] | None, key: str) -> str:
    text = part.descriptions().get(key.rpartition(".")[2], "") if part else ""
    return f"it is needed: {text[:1].lower()}{text[1:].rstrip('.')}" if text else "it is needed"


def _nearest(key: str, part: type[Part] | None) -> str:
    """Return where an unknown key may belong: the closest keys beside it, or the same key elsewhere."""
    word = key.rpartition(".")[2]
    beside = list(part.model_fields) if part else []
    if part is Settings:
        beside += ["extends", "variants"]
    everywhere = all_keys(Settings, "")
    if key in everywhere:
        named = f"{_names(part)[0]} " if part and _names(part) else ""
        return f"{named}{key.rpartition('.')[0]} takes {', '.join(beside)}"
    alias = ELSEWHERE_CALLED.get(word.replace("-", "_").lower())
    if alias:
        return f"did you mean {alias}?"
    near = closest(word, beside)
    if near:
        return f"did you mean {alternatives(near)}?"
    elsewhere = [known for known in everywhere if known.rpartition(".")[2] == word]
    if elsewhere:
        return f"did you mean {alternatives(sorted(set(elsewhere))[:3])}?"
    return f"known here: {', '.join(beside)}"


def all_keys(part: type[Part], prefix: str) -> list[str]:
    """Return every dotted key that a mapping and those within it may hold."""
    keys = []
    for word in part.model_fields:
        keys.append(prefix + word)
        for inner in part.inner(word):
            keys.extend(all_keys(inner, f"{prefix}{word}."))
    return keys

"""What a command says: plain data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Engine = Literal["vllm", "sglang"]
Status = Literal["used", "ignored", "not modelled"]


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One flag as the command writes it, and what kvsim does with it.

    `value` is the text after it (None for a switch), `key` kvsim's name of the setting and `scenario` the key of
    a scenario file that says the same (None where there is none).
    """

    name: str
    value: str | None
    status: Status
    why: str
    key: str | None = None
    scenario: str | None = None


@dataclass(frozen=True, kw_only=True)
class EngineCommand:
    """One engine as a command starts it.

    `version` is known from an image's tag alone. `settings` holds what the flags set, under the names that a
    start-up log's settings have too: `tensor_parallel`, `pipeline_parallel`, `data_parallel`,
    `gpu_memory_utilization` or `mem_fraction_static`, `max_model_len` (tokens), `max_num_seqs`,
    `max_num_batched_tokens`, `dtype`, `quantization`, `kv_cache_dtype`, `block_size`, `cpu_offload_gib`,
    `swap_space_gib`, `kv_memory_bytes`, `num_gpu_blocks_override`, `max_total_tokens`, `enable_prefix_caching`,
    `enable_chunked_prefill`, `enforce_eager`, `draft_model`, `speculative_method`, `speculative_tokens`,
    `enable_lora`, `max_loras`, ...: values as the engine spells them, numbers as numbers. What is left to the
    engine's default is absent. `environment` holds the variables set in front of the command or given to its
    container.
    """

    engine: Engine
    version: str | None
    model: str | None
    settings: Mapping[str, Any]
    flags: tuple[Flag, ...]
    environment: Mapping[str, str]

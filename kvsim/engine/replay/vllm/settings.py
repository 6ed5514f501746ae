"""The settings of a vLLM case, checked before anything is replayed."""

from kvsim.engine.replay.case import MOST, Record, is_whole, shown
from kvsim.errors import InputError
from kvsim.scheduling.vllm.rules import POLICIES

_DEFAULTS: Record = {
    "max_num_seqs": 256,
    "max_num_active_seqs": None,
    "max_num_batched_tokens": 2048,
    "max_model_len": 8192,
    "enable_prefix_caching": True,
    "enable_chunked_prefill": True,
    "long_prefill_token_threshold": 0,
    "long_prefill_adaptive": False,
    "watermark": 0,
    "reserve_full_isl": True,
    "policy": "fcfs",
    "async_scheduling": False,
    "prefill_schedule_interval": 1,
    "groups": [{"kind": "full"}],
    "retention_interval": 0,
    "spec": None,
    "max_steps": 20000,
}

_RANGES = {
    "num_blocks": (2, MOST),
    "block_size": (1, 256),
    "max_num_seqs": (1, MOST),
    "max_num_active_seqs": (1, MOST),
    "max_num_batched_tokens": (1, MOST),
    "max_model_len": (2, MOST),
    "long_prefill_token_threshold": (0, MOST),
    "prefill_schedule_interval": (1, MOST),
    "retention_interval": (0, MOST),
    "max_steps": (0, MOST),
}
"""Setting to the least and the most that it may be; one block is the null block."""

_MAY_BE_NULL = ("max_num_active_seqs", "retention_interval")


def settings_of(config: Record) -> Record:
    """The settings of a case with every default filled in; InputError names what is missing or wrong."""
    unknown = sorted(map(str, set(config) - set(_DEFAULTS) - {"num_blocks", "block_size"}))
    if unknown:
        raise InputError(f"config has unknown settings: {', '.join(unknown)}")
    settings: Record = {"num_blocks": None, "block_size": None, **_DEFAULTS, **config}
    for key, value in settings.items():
        right, form = _judged(key, value)
        if not right:
            raise InputError(f"config.{key} is {shown(value)}; it must be {form}")
    retention = settings["retention_interval"]
    if retention and all(group["kind"] == "full" for group in settings["groups"]):
        raise InputError(f"config.retention_interval is {retention}; without a sliding group it must be 0 or null")
    return settings


def _judged(key: str, value: object) -> tuple[bool, str]:
    """Whether a setting is of the right type and in its range, and what would be right."""
    if key in _RANGES:
        least, most = _RANGES[key]
        null = key in _MAY_BE_NULL
        right = is_whole(value, least, most) or (null and value is None)
        return right, f"a whole number from {least:,} to {most:,}{' or null' if null else ''}"
    if key == "watermark":
        right = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1
        return right, "a share of the blocks, from 0 to below 1"
    if key == "policy":
        return value in POLICIES, " or ".join(POLICIES)
    if key == "groups":
        right = isinstance(value, list) and len(value) > 0 and all(_is_group(entry) for entry in value)
        return right, 'a list of {"kind": "full"} and {"kind": "sliding", "window": W}'
    if key == "spec":
        return value is None or _is_spec(value), 'null or {"k": 3, "lookahead": true}'
    return isinstance(value, bool), "true or false"


def _is_group(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    if entry.get("kind") == "full":
        return set(entry) == {"kind"}
    return (
        entry.get("kind") == "sliding" and set(entry) == {"kind", "window"} and is_whole(entry.get("window"), 1, MOST)
    )


def _is_spec(value: object) -> bool:
    return (
        isinstance(value, dict)
        and set(value) <= {"k", "lookahead"}
        and is_whole(value.get("k"), 1, MOST)
        and isinstance(value.get("lookahead", False), bool)
    )

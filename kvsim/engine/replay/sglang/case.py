"""A recorded SGLang case as it was given, checked before anything is replayed."""

from typing import Any

from kvsim.content import Content, Run
from kvsim.engine.replay.case import MOST, Record, is_whole, stream_run
from kvsim.errors import InputError
from kvsim.memory.radix.eviction import POLICIES
from kvsim.memory.radix.host import WRITE_POLICIES
from kvsim.scheduling.sglang.policy.order import AGNOSTIC, AWARE

_SHARED = {"mode": "stream", "tree": "unified", "page_size": 1, "eviction_policy": "lru"}
_STREAM: Record = {
    **_SHARED,
    "max_total_num_tokens": None,
    "chunked_prefill_size": -1,
    "max_prefill_tokens": 16384,
    "max_running_requests": 64,
    "context_len": 8192,
    "schedule_policy": "fcfs",
    "schedule_conservativeness": 1.0,
    "disable_radix_cache": False,
    "enable_mixed_chunk": False,
    "overlap": False,
    "ignore_eos": False,
    "max_steps": 20000,
}
_OPS: Record = {**_SHARED, "pool_tokens": None, "hicache": None}
_DEFAULTS = {"stream": _STREAM, "ops": _OPS}

_NAMES = {
    "tree": ("unified", "unified_rust"),
    "eviction_policy": tuple(POLICIES),
    "schedule_policy": AGNOSTIC + AWARE,
    "policy": tuple(WRITE_POLICIES),
}
_LEAST = {"chunked_prefill_size": -1, "max_steps": 0, "load_back_threshold": 0, "context_len": 2}
"""Settings that may be less than 1."""


def is_sglang(case: object) -> bool:
    """Whether the settings are SGLang's. Pure."""
    config = case.get("config") if isinstance(case, dict) else None
    return isinstance(config, dict) and any(key in config for key in ("mode", "page_size", "max_total_num_tokens"))


def settings_of(case: Record) -> Record:
    """The settings with every default filled in; InputError names what is missing, unknown or wrong."""
    config = case["config"]
    mode = config.get("mode", "stream")
    if not isinstance(mode, str) or mode not in _DEFAULTS:
        raise InputError(f"config.mode is {mode!r}; a case of SGLang has one of {', '.join(_DEFAULTS)}")
    settings = _filled(config, _DEFAULTS[mode], "config")
    if settings.get("hicache") is not None:
        needed = dict.fromkeys(("host_tokens", "policy", "load_back_threshold"))
        settings["hicache"] = _filled(settings["hicache"], needed, "config.hicache")
    entries = "requests" if mode == "stream" else "ops"
    if not isinstance(case.get(entries), list):
        raise InputError(f"not a recorded case: with mode {mode} it needs a list `{entries}`")
    for key in ("pool_tokens", "max_total_num_tokens"):
        if key in settings and settings[key] % settings["page_size"]:
            raise InputError(f"config.{key} is {settings[key]:,}; it must be whole pages of {settings['page_size']:,}")
    return settings


def content_of(segments: object, where: str) -> Content:
    """The tokens of a list of segments, as runs; InputError says at `where` they are not what they should be."""
    form = 'a key is a list of segments such as {"s": 1, "n": 100, "o": 0} or {"ids": [1, 2]}'
    if not isinstance(segments, list):
        raise InputError(f"{where}: {segments!r}; {form}")
    content = Content()
    for segment in segments:
        try:
            ids = segment.get("ids")
            runs = (
                [stream_run(segment["s"], segment.get("o", 0), segment["n"])]
                if ids is None
                else [Run(0, token, 1) for token in ids]
            )
            for run in runs:
                if not all(is_whole(part, 0, MOST) for part in run):
                    raise TypeError
                content.append(run)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(f"{where}: the segment {segment!r}; {form}") from error
    return content


def field_of(entry: object, key: str, where: str, *, least: int | None = None, default: int | None = None) -> Any:
    """A field of a request or an operation: a whole number from `least` on, or without that a text.

    `default` holds where it is not given.
    """
    value = entry.get(key, default) if isinstance(entry, dict) else None
    if not (isinstance(value, str) if least is None else is_whole(value, least, MOST)):
        what = "a text" if least is None else "a whole number" + (f", {least} or more" if least >= 0 else "")
        raise InputError(f"{where}: {key} is {value!r}; it must be {what}")
    return value


def _filled(given: object, defaults: Record, where: str) -> Record:
    if not isinstance(given, dict):
        raise InputError(f"{where} is {given!r}; it must be an object")
    unknown = sorted(map(str, set(given) - set(defaults)))
    if unknown:
        raise InputError(f"{where} has settings that a case of SGLang does not know: {', '.join(unknown)}")
    settings = defaults | given
    for key, value in settings.items():
        _check(f"{where}.{key}", key, value, defaults[key])
    return settings


def _check(name: str, key: str, value: object, default: object) -> None:
    if key == "mode" or (key == "hicache" and (value is None or isinstance(value, dict))):
        return
    if key in _NAMES:
        right, form = value in _NAMES[key], f"one of {', '.join(_NAMES[key])}"
    elif isinstance(default, bool):
        right, form = isinstance(value, bool), "true or false"
    elif isinstance(default, float):
        right = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MOST
        form = "a number, 0 or more"
    else:
        least = _LEAST.get(key, 1)
        right, form = is_whole(value, least, MOST), f"a whole number, {least} or more"
    if not right:
        raise InputError(f"{name} is {value!r}; it must be {form}")

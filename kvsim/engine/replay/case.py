"""A recorded case as it was given: the engine's settings and its requests, checked before anything is replayed."""

from typing import Any, TypeGuard

from kvsim.errors import InputError
from kvsim.request import Sequence

Record = dict[str, Any]

_DEFAULTS: Record = {
    "max_num_seqs": 256,
    "max_num_batched_tokens": 2048,
    "max_model_len": 8192,
    "enable_prefix_caching": True,
    "enable_chunked_prefill": True,
    "long_prefill_token_threshold": 0,
    "watermark": 0,
    "reserve_full_isl": True,
    "max_steps": 20000,
}
_ONLY: Record = {
    "max_num_active_seqs": None,
    "long_prefill_adaptive": False,
    "policy": "fcfs",
    "async_scheduling": False,
    "prefill_schedule_interval": 1,
    "groups": [{"kind": "full"}],
    "retention_interval": 0,
    "spec": None,
}
"""Settings that are understood but modelled with this one value only."""

_MOST = 1 << 53
"""The largest whole number that every reader of JSON keeps apart from its neighbours."""

_RANGES = {
    "num_blocks": (2, _MOST),
    "block_size": (1, 256),
    "max_num_seqs": (1, _MOST),
    "max_num_batched_tokens": (1, _MOST),
    "max_model_len": (2, _MOST),
    "long_prefill_token_threshold": (0, _MOST),
    "max_steps": (0, _MOST),
}
"""Setting to the least and the most that it may be; one block is the null block."""

_REQUEST = {
    "id": "a text, another for each request",
    "arrival_step": "a whole number, 0 or more",
    "prompt": "a list of segments",
    "output_len": "a whole number, 1 or more",
}
"""What a request needs, and in what form."""


def settings_of(case: Record) -> Record:
    """The settings of a case with every default filled in; InputError names what is missing, wrong or not modelled."""
    if (
        not isinstance(case, dict)
        or not isinstance(case.get("config"), dict)
        or not isinstance(case.get("requests"), list)
    ):
        raise InputError("not a recorded case: it needs a `config` object and a `requests` list")
    config = case["config"]
    if "page_size" in config or "max_total_num_tokens" in config or "mode" in config:
        raise InputError("this is a case of SGLang's radix tree; only vLLM's paged manager can be replayed so far")
    unknown = sorted(map(str, set(config) - set(_DEFAULTS) - set(_ONLY) - {"num_blocks", "block_size"}))
    if unknown:
        raise InputError(f"config has unknown settings: {', '.join(unknown)}")
    for key, only in _ONLY.items():
        if config.get(key, only) != only:
            raise InputError(f"config.{key} is {_shown(config[key])}; so far only {only!r} can be replayed")
    settings: Record = {"num_blocks": None, "block_size": None, **_DEFAULTS, **config}
    for key, value in settings.items():
        if key not in _ONLY:
            _check(key, value)
    if settings["enable_prefix_caching"]:
        raise InputError(
            "config.enable_prefix_caching is true; so far only cases with prefix caching off can be replayed"
        )
    return settings


def _check(key: str, value: object) -> None:
    """Refuse a setting of the wrong type or out of its range."""
    if key in _RANGES:
        least, most = _RANGES[key]
        right, form = _whole(value, least, most), f"a whole number from {least:,} to {most:,}"
    elif key == "watermark":
        right = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1
        form = "a share of the blocks, from 0 to below 1"
    else:
        right, form = isinstance(value, bool), "true or false"
    if not right:
        raise InputError(f"config.{key} is {_shown(value)}; it must be {form}")


def _whole(value: object, least: int, most: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def truths_of(requests: list[Any], max_model_len: int) -> list["Truth"]:
    """The requests of a case, in its order."""
    truths = [Truth(entry, index, max_model_len) for index, entry in enumerate(requests)]
    names: dict[str, int] = {}
    for index, truth in enumerate(truths):
        first = names.setdefault(truth.name, index)
        if first != index:
            raise InputError(
                f"request {index} of the case: id is {_shown(truth.name)}, which request {first} has already"
            )
    return truths


def _prompt_tokens(prompt: object, where: str) -> int:
    """Length of a prompt: a list of segments, each `n` tokens or a list of `ids`."""
    form = 'a prompt is a list of segments such as {"s": 1, "n": 100} or {"ids": [1, 2]}'
    if not isinstance(prompt, list) or not prompt:
        raise InputError(f"{where}: prompt is {_shown(prompt)}; {form}")
    return sum(
        _segment_tokens(segment, f"{where}: prompt has the segment {_shown(segment)}; {form}") for segment in prompt
    )


def _segment_tokens(segment: object, wrong: str) -> int:
    if not isinstance(segment, dict):
        raise InputError(wrong)
    if "ids" in segment:
        if not isinstance(segment["ids"], list):
            raise InputError(wrong)
        return len(segment["ids"])
    tokens = segment.get("n")
    if not _whole(tokens, 0, _MOST):
        raise InputError(wrong)
    return tokens


class Truth:
    """What the recording will tell of one request."""

    def __init__(self, entry: object, index: int, max_model_len: int) -> None:
        where = f"request {index} of the case"
        if not isinstance(entry, dict):
            raise InputError(f"{where} is {_shown(entry)}; it must be an object with {', '.join(_REQUEST)}")
        for key, form in _REQUEST.items():
            if key not in entry:
                raise InputError(f"{where}: {key} is missing; it must be {form}")
        for key, least in (("arrival_step", 0), ("output_len", 1)):
            if not _whole(entry[key], least, _MOST):
                raise InputError(f"{where}: {key} is {_shown(entry[key])}; it must be {_REQUEST[key]}")
        self.name = entry["id"]
        if not isinstance(self.name, str):
            raise InputError(f"{where}: id is {_shown(self.name)}; it must be {_REQUEST['id']}")
        self.arrival = entry["arrival_step"]
        wanted = entry["output_len"]
        self.prompt = _prompt_tokens(entry["prompt"], where)
        if self.prompt < 1:
            raise InputError(f"{where}: prompt has no tokens; it must have at least one")
        if self.prompt >= max_model_len:
            raise InputError(
                f"{where}: prompt has {self.prompt:,} tokens; max_model_len {max_model_len:,} leaves no "
                "room for an output"
            )
        self.abort_step: int | None = entry.get("abort_step")
        """The step before which the client gives it up."""
        if self.abort_step is not None and not _whole(self.abort_step, 0, _MOST):
            raise InputError(f"{where}: abort_step is {_shown(self.abort_step)}; it must be a whole number, 0 or more")
        self.allowed = min(wanted, max_model_len - self.prompt)
        self.sequence = Sequence(index, self.prompt, None)
        self.first_sched: int | None = None
        self.first_tok: int | None = None
        self.done: int | None = None
        self.admissions = 0
        self.preempted = 0
        self.computed = 0
        self.output = 0

    def record(self) -> Record:
        """The request's line in the summary."""
        return {
            "arrival": self.arrival,
            "prompt": self.prompt,
            "first_sched": self.first_sched,
            "first_tok": self.first_tok,
            "done": self.done,
            "hits": [0] * self.admissions,
            "preempt": self.preempted,
            "computed": self.computed,
            "output": self.output,
        }


def _shown(value: object) -> str:
    """Return a value cut to a readable length."""
    if isinstance(value, int) and value.bit_length() > 2000:  # Python refuses to write much longer ones as digits
        return f"a number of {value.bit_length():,} bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

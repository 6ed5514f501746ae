"""What a reader must be told because the file cannot say it."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal

from kvsim.workload.arguments import check_positive, check_whole
from kvsim.workload.lengths import LONGEST

Tokenizer = Callable[[str], Sequence[Hashable]]
"""A text to its tokens, whatever stands for a token; equal texts give equal tokens."""

COLUMNS = ("time", "prompt", "output", "session", "hash_ids", "priority", "tenant")
"""What a column map can name, in that order; the first three without the time are needed."""

TIME_UNITS: Mapping[str, int] = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Digits behind the point of a second, by the unit of a column of times."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Keyword arguments of all readers; each reads those that mean something to it.

    `block_tokens` beats what the file or its format says. `prompts` "delta": a row of a session tells only what it
    adds, and the prompt is the session's history and that. `failed` "keep": calls that came to nothing stay, marked.
    Texts need `chars_per_token` or a `tokenizer`, and `output_tokens` where the answers are not there.
    `columns` maps the names in `COLUMNS` to those of a table, whose times are in `time_unit`.
    `shared_system` invents sharing: sessions of equal tool and system prompts begin with the same blocks.
    ValueError naming the argument on a wrong one.
    """

    block_tokens: int | None = None
    prompts: Literal["whole", "delta"] = "whole"
    failed: Literal["drop", "keep"] = "drop"
    chars_per_token: float | None = None
    tokenizer: Tokenizer | None = None
    output_tokens: int | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    time_unit: str = "s"
    shared_system: bool = False

    def __post_init__(self) -> None:
        for argument, value in (("block_tokens", self.block_tokens), ("output_tokens", self.output_tokens)):
            if value is not None:
                check_whole(argument, value, 1, LONGEST)
        if self.prompts not in ("whole", "delta"):
            raise ValueError(f"prompts: must be whole or delta; got {self.prompts!r}")
        if self.failed not in ("drop", "keep"):
            raise ValueError(f"failed: must be drop or keep; got {self.failed!r}")
        if self.chars_per_token is not None:
            check_positive("chars_per_token", self.chars_per_token)
            if self.tokenizer is not None:
                raise ValueError("tokenizer: give either a tokenizer or chars_per_token, not both")
        if self.time_unit not in TIME_UNITS:
            raise ValueError(f"time_unit: must be one of {', '.join(TIME_UNITS)}; got {self.time_unit!r}")
        for name in self.columns:
            if name not in COLUMNS:
                raise ValueError(f"columns: must name one of {', '.join(COLUMNS)}; got {name!r}")


def tokenizer_of(text: str) -> Tokenizer:
    """The function that `MODULE:FUNCTION` names; ValueError naming the argument where there is none."""
    module, _, function = text.partition(":")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"tokenizer {text}: cannot be loaded ({error}); write MODULE:FUNCTION") from error
    if not callable(found):
        raise ValueError(f"tokenizer {text}: is no function; name one that takes a text and returns its tokens")
    tokenizer: Tokenizer = found
    return tokenizer

"""Mistakes in a scenario: collected while it is read, then told together, each with its place and its
remedy."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kvsim.errors import InputError

MISSING: Any = object()
"""The value of a mistake about a key that is not there."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was written: `kind` is file, extends, variant, or the option it was given with, such as --set;
    `detail` the variant's name or the text."""

    kind: str
    file: str = ""
    line: int = 0
    detail: str = ""
    short: bool = False
    """The key above was written with this key's value alone, as in `allocator: paged`; messages name that
    one."""

    @property
    def place(self) -> str:
        """The place as a message opens with it: `FILE:LINE`, `--set`, or the name of a scenario made in
        Python."""
        if self.kind.startswith("--"):
            return self.kind
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def source(self) -> str:
        """The place as the resolved scenario states it: `FILE:LINE`, `extends FILE:LINE`, `variant NAME
        FILE:LINE`."""
        if self.kind == "variant":
            return f"variant {self.detail} {self.place}"
        return f"extends {self.place}" if self.kind == "extends" else self.place


_LONGEST_NUMBER = 2000
"""Bits of the longest whole number that is shown; Python refuses to write much longer ones as digits."""

Origins = dict[str, Origin]
"""Dotted key to the place where it was written."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong: the dotted key, the value as read, what it is, and what would be right."""

    key: str
    value: object
    problem: str
    remedy: str = ""
    place: str = ""

    def text(self, origins: Origins) -> str:
        """Return the line for the user: `FILE:LINE: KEY: VALUE is ...; what would be right`."""
        place = self.place or place_of(self.key, origins)
        key = _written(self.key, origins)
        subject = "" if self.value is MISSING else f"{show(self.value)} "
        parts = [part for part in (place, key) if part]
        remedy = f"; {self.remedy}" if self.remedy else ""
        return ": ".join([*parts, f"{subject}{self.problem}{remedy}"])


ARGUMENTS = {
    "pool_slots": ("pool.tokens", "pool.blocks", "pool.memory"),
    "block_size": ("allocator.block_size",),
    "page_size": ("allocator.page_size",),
    "watermark": ("allocator.watermark",),
    "chunk": ("allocator.chunk",),
    "compaction": ("allocator.compaction",),
    "page": ("allocator.page",),
    "gpu_memory_utilization": ("capacity.gpu_memory_utilization",),
    "dtype": ("model.weights_dtype", "model.name"),
    "params_total_b": ("model.name",),
    "cv": ("workload.arrivals.cv",),
    "rate": ("workload.rate",),
    "max_model_len": ("engine.max_model_len",),
    "max_num_seqs": ("engine.max_num_seqs",),
    "max_num_batched_tokens": ("engine.max_num_batched_tokens",),
    "after_s": ("workload.cancel.after",),
    "times_output": ("workload.max_tokens.times_output",),
    "warm": ("workload.warm",),
    "tokenizer": ("workload.read.tokenizer",),
    "chars_per_token": ("workload.read.chars_per_token",),
}
"""What library functions call an argument, to the keys it may have been written as."""


def located(error: str, scenario: str, origins: Origins) -> str:
    """Return the text of a ValueError, which names the argument, with the place and the key it came from.

    Where that is not known, the text opens with the scenario's file.
    """
    argument = re.search(r"(?:^|: )([\w.]+)(?: is|:) ", error)
    for key in ARGUMENTS.get(argument[1], (argument[1],)) if argument else ():
        if key in origins:
            return f"{place_of(key, origins)}: {_written(key, origins)}: {error.removeprefix(f'{key}: ')}"
    return f"{origins[''].file if '' in origins else scenario}: {error}"


def _written(key: str, origins: Origins) -> str:
    """Return the key as it was written: without the last word where a short form stands for the mapping."""
    return key.rpartition(".")[0] if key in origins and origins[key].short else key


def place_of(key: str, origins: Origins) -> str:
    """Return the place of `key`, or of the nearest key above it that somebody wrote."""
    parts = key.split(".")
    for length in range(len(parts), 0, -1):
        origin = origins.get(".".join(parts[:length]))
        if origin is not None:
            return origin.place
    top = origins.get("")
    return top.place if top is not None else ""


def show(value: object) -> str:
    """Return a value as a scenario writes it, cut to a readable length."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
        return f"a number of {value.bit_length():,} bits"
    text = str(value) if isinstance(value, (str, int, float)) else repr(value)
    if text.strip() != text or not text:
        text = repr(text)
    return text if len(text) <= 60 else f"{text[:57]}..."


NO_TEXT = "holds half a character (a lone surrogate)"
TEXT = "write it in whole characters, as UTF-8"


def is_text(value: str) -> bool:
    """Say whether every character of the value can be written to a file."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def closest(word: str, known: Iterable[str]) -> list[str]:
    """Return up to three of the known words nearest to `word`, best first."""
    from difflib import get_close_matches  # used only once something is wrong

    by_lower = {name.lower(): name for name in known}
    return [by_lower[name] for name in get_close_matches(word.lower(), list(by_lower), n=3, cutoff=0.6)]


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return `did you mean a, b or c?`, or the list of what is known where nothing is near."""
    near = closest(word, known)
    return f"did you mean {alternatives(near)}?" if near else f"known here: {', '.join(known)}"


def alternatives(names: Sequence[str]) -> str:
    """Return `a`, `a or b`, `a, b or c`."""
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def refuse(mistakes: Sequence[Mistake], origins: Origins) -> InputError:
    """Return the one error that tells every mistake, in the order of the places, each once."""
    lines = dict.fromkeys(mistake.text(origins) for mistake in mistakes)
    return InputError("\n".join(sorted(lines, key=_reading_order)))


def _reading_order(line: str) -> tuple[bool, str, int]:
    """Order messages by file and line, the command line last."""
    file, _, rest = line.partition(":")
    number = rest.partition(":")[0]
    return file.startswith("--"), file, int(number) if number.isdigit() else 0

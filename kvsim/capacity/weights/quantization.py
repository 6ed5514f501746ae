"""Quantisation schemes, and what the name of a checkpoint says about its own."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kvsim.catalog.names import key, unknown

PARTS = ("attention", "mlp", "experts")
"""The parts of a layer that a scheme may touch."""


@dataclass(frozen=True)
class Scheme:
    """How a quantised weight is stored.

    `bits` of the number; `group_bits` of scales and zero points for every `group` weights (0: none worth counting).
    `quantized` parts of a layer are stored so, except in the first and last `ends` layers; all else keeps the type
    that the engine computes in. `tables_bits` is what embedding and head take where they are quantised too. `pad`:
    multiples to which a rank's expert width and the hidden size are padded.
    """

    name: str
    bits: float
    group: int = 0
    group_bits: int = 0
    quantized: tuple[str, ...] = PARTS
    ends: int = 0
    tables_bits: float | None = None
    pad: tuple[int, int] | None = None
    source: str = ""

    @property
    def weight_bits(self) -> float:
        """Bits a weight takes, its share of the scales included."""
        return self.bits + (self.group_bits / self.group if self.group else 0)


def scheme(name: str) -> Scheme:
    """The scheme of that name or alias ("compressed-tensors w8a8"). Raises InputError with the closest names."""
    found = _index().get(key(name))
    if found is None:
        raise unknown("quantization", name, schemes(), f"known are {', '.join(schemes())}")
    return schemes()[found]


@cache
def schemes() -> dict[str, Scheme]:
    """Every scheme by name, in the order of the data file."""
    return {name: _scheme(name, entry) for name, entry in _data()["schemes"].items()}


def number_format(text: str) -> str | None:
    """A number format as an engine spells it ("bfloat16") in kvsim's word ("bf16"); None for "auto" and an empty text.

    A word that is none of an engine's comes back as it is, for the caller to refuse.
    """
    bare = text.strip().lower().removeprefix("torch.")
    if bare in ("", "auto"):
        return None
    spellings = _data()["numbers"]["spellings"]
    return next((word for word, others in spellings.items() if bare in others), bare)


def of_checkpoint(name: str) -> tuple[str, str | None]:
    """(name of the model, scheme that a checkpoint's name states, None for none).

    "RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8" is the model "RedHatAI/Qwen2.5-7B-Instruct" in int8. What stands in
    brackets after a name is a remark.
    """
    bare = re.sub(r"\s*\(.*", "", name).strip()
    checkpoints = _data()["checkpoints"]
    stated = next((word for pattern, word in checkpoints["patterns"] if re.search(pattern, bare, re.I)), None)
    return re.sub(checkpoints["words"], "", bare, flags=re.I), stated


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "quantization.json").read_bytes())
    return data


@cache
def _index() -> dict[str, str]:
    entries = _data()["schemes"].items()
    return {key(word): name for name, entry in entries for word in (name, *entry["aliases"])}


def _scheme(name: str, entry: dict[str, Any]) -> Scheme:
    given = {word: value for word, value in entry.items() if word != "aliases"}
    for word in ("quantized", "pad"):
        if word in given:
            given[word] = tuple(given[word])
    return Scheme(name, **given)

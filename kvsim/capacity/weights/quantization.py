"""Quantisation schemes, and what the name of a checkpoint says about its own."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
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


def of_config(stated: Mapping[str, Any]) -> Scheme | None:
    """The scheme that the `quantization_config` of a config.json states, with its own bits and group size.

    None where it states no method. Raises InputError for a method that is not known.
    """
    text = json.dumps(stated)
    bits = 8 if stated.get("load_in_8bit") else stated.get("bits")
    found = next(
        (
            name
            for method, pattern, name in _data()["configs"]["rules"]
            if stated.get("quant_method") == method and re.search(pattern, text, re.I)
        ),
        stated.get("quant_method"),
    )
    if not found:
        return None
    known = scheme(str(found))
    if bits == 8 and known.bits == 4:
        known = scheme("int8")
    group = stated.get("group_size")
    if isinstance(group, int) and group > 0 and known.group:
        known = replace(known, group=group)
    return known


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

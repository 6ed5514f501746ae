"""Values of flags, as the engines read them. Each reader raises ValueError with what would be right."""

import json
import re
from collections.abc import Callable
from typing import Any

_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_DIGITS = re.compile(r"\d{1,18}")
_HUMAN = re.compile(r"(\d{1,18})(\.\d{1,18})?([kmgtKMGT]?)")

UNCHUNKED = -1
"""SGLang's chunk for prompts in one piece."""

SWITCHES = {"true": True, "false": False}
"""Words that may follow a switch."""


def _whole(text: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise ValueError("a whole number of at least 0, such as 2048")
    return int(text)


def _count(text: str) -> int:
    if not _DIGITS.fullmatch(text) or int(text) == 0:
        raise ValueError("a whole number of at least 1, such as 8")
    return int(text)


def _human(text: str) -> int:
    """vLLM's sizes: 32k is 32,000 and 32K 32,768; a fraction only with the decimal ones, as in 25.6k."""
    right = "a whole number of at least 1, such as 8192, 32k (32,000), 32K (32,768) or 25.6k"
    match = _HUMAN.fullmatch(text)
    if match is None or (match[2] and match[3] not in _DECIMAL):
        raise ValueError(right)
    scale = _DECIMAL.get(match[3]) or _BINARY.get(match[3]) or 1
    value = int(float(match[1] + match[2]) * scale) if match[2] else int(match[1]) * scale
    if value < 1:
        raise ValueError(right)
    return value


def _length(text: str) -> int | None:
    return None if text in ("auto", "-1") else _human(text)


def _chunk(text: str) -> int:
    if text == str(UNCHUNKED):
        return UNCHUNKED
    try:
        return _count(text)
    except ValueError:
        raise ValueError("a whole number of at least 1, such as 8192, or -1 for prompts in one piece") from None


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("a number, such as 0.5")
    return value


def _share(text: str) -> float:
    right = "a share above 0 and at most 1, such as 0.9"
    try:
        value = _number(text)
    except ValueError:
        raise ValueError(right) from None
    if not 0 < value <= 1:
        raise ValueError(right)
    return value


def _gib(text: str) -> float:
    right = "a number of GiB without a unit, such as 10 or 0.5"
    try:
        value = _number(text)
    except ValueError:
        raise ValueError(right) from None
    if value < 0:
        raise ValueError(right)
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("JSON in single quotes, such as '{\"key\": 1}'") from None


READERS: dict[str, Callable[[str], Any]] = {
    "whole": _whole,
    "count": _count,
    "human": _human,
    "bytes": _human,
    "length": _length,
    "chunk": _chunk,
    "number": _number,
    "share": _share,
    "gib": _gib,
    "json": _json,
    "text": str,
}
"""How a value of each kind is read. Kinds without a reader: `switch` and `off` (no value, or true or false; `off`
sets its key to the opposite), `list` (all words up to the next flag), `maybe` (a word or none)."""

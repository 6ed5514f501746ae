"""The answer to a question: a text whose numbers are looked up in what was measured.

A number is written `{who: what}`: a variant, a point of a sweep or a part of a record, and the dotted name of one of
its numbers. Several may be divided, multiplied or subtracted, from left to right, and a unit says how it is shown:

    {paged: waste_share %}                          1.2 %
    {reserve: ttft_s.p50 / paged: ttft_s.p50}       17.4
    {paged: tpot_s.p50 ms}                          31.0 ms
"""

import re
from collections.abc import Callable, Mapping
from operator import mul, sub, truediv
from typing import Any

from kvsim.errors import InputError
from kvsim.units import GIB

Numbers = Mapping[str, Mapping[str, Any]]
"""Whose numbers there are, and each one's, nested or by dotted name."""

UNITS: Mapping[str, float] = {
    "%": 100,
    "points": 100,
    "ms": 1000,
    "s": 1,
    "min": 1 / 60,
    "KiB": 1 / 1024,
    "GiB": 1 / GIB,
    "million": 1e-6,
}
"""What a number in its own unit (a share, seconds, bytes) is multiplied by to be shown in this one."""

_PLACE = re.compile(r"\{([^{}]*)\}")
_NUMBER = re.compile(r"\s*(?P<who>[^:{}]+?)\s*:\s*(?P<what>[\w.-]+)\s*")
_UNIT = re.compile(rf"\s+({'|'.join(map(re.escape, UNITS))})\s*$")
_OPERATIONS: Mapping[str, Callable[[float, float], float]] = {"/": truediv, "*": mul, "-": sub}
_OPERATOR = re.compile(r"\s+([/*-])\s+")


def answered(form: str, numbers: Numbers) -> str:
    """Fill an answer's numbers in, with the three digits that count. InputError that quotes one that cannot be."""
    return _PLACE.sub(lambda place: _shown(place[1], numbers), form)


def measured(expression: str, numbers: Numbers) -> float:
    """The value of what stands between two braces, in the unit that it names. InputError where there is none."""
    unit = _UNIT.search(expression)
    body = expression[: unit.start()] if unit else expression
    first, *rest = _OPERATOR.split(body)
    value = _looked_up(first, expression, numbers)
    for operator, other in zip(rest[::2], rest[1::2], strict=True):
        right = _looked_up(other, expression, numbers)
        if operator == "/" and right == 0:
            raise InputError(f"{{{expression}}}: divides by {other.strip()}, which is 0")
        value = _OPERATIONS[operator](value, right)
    return value * (UNITS[unit[1]] if unit else 1)


def significant(number: float) -> str:
    """A number as an answer tells it: three digits count, below 1 too (`finding.three_digits` ends at hundredths), of a
    count all do, and thousands are parted."""
    if isinstance(number, int) or not number:
        return f"{number:,.0f}"
    if abs(number) >= 1:
        return f"{number:,.{max(0, 3 - len(str(int(abs(number)))))}f}"
    return f"{number:.3g}"


def _shown(expression: str, numbers: Numbers) -> str:
    unit = _UNIT.search(expression)
    text = significant(measured(expression, numbers))
    return f"{text} {unit[1]}" if unit else text


def _looked_up(text: str, expression: str, numbers: Numbers) -> float:
    parts = _NUMBER.fullmatch(text)
    if parts is None:
        raise InputError(f"{{{expression}}}: {text.strip()!r} is not `who: what`; write {{paged: mean_running}}")
    who, what = parts["who"], parts["what"]
    if who not in numbers:
        raise InputError(f"{{{expression}}}: there is no {who}; there are {', '.join(numbers)}")
    value = _inside(numbers[who], what)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{{{expression}}}: {what} of {who} is no number but {value!r}")
    return value


def _inside(numbers: Any, name: str) -> Any:
    """The value of a dotted name, where a mapping may hold the whole of it, or its beginning, as one key."""
    if not isinstance(numbers, Mapping):
        return None
    if name in numbers:
        return numbers[name]
    words = name.split(".")
    for count in range(len(words) - 1, 0, -1):
        head = ".".join(words[:count])
        if head in numbers:
            return _inside(numbers[head], ".".join(words[count:]))
    return None

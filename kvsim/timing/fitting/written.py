"""What a calibration file says of one fit, value by value: what is wrong is said with its key, without the file."""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from kvsim.errors import InputError
from kvsim.timing.families import family


def loads(text: str) -> Any:
    """JSON, in which NaN and Infinity are no numbers. Raises InputError."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except ValueError as error:
        raise InputError(f"no JSON, {error}") from None


def mapping(found: Any, key: str, within: str = "") -> Mapping[str, Any]:
    """The object at `key`; `within` says where that is."""
    value = _at(found, key, within)
    if not isinstance(value, Mapping):
        raise InputError(f"{within}{key} is {shown(value)}, and must be an object")
    return value


def text(found: Any, key: str, within: str = "") -> str:
    """The text at `key`."""
    value = _at(found, key, within)
    if not isinstance(value, str):
        raise InputError(f"{within}{key} is {shown(value)}, and must be a text")
    return value


def texts(found: Any, key: str, within: str) -> tuple[str, ...]:
    """The list of texts at `key`."""
    value = _at(found, key, within)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InputError(f"{within}{key} is {shown(value)}, and must be a list of texts")
    return tuple(value)


def number(found: Any, key: str, within: str, *, positive: bool = False) -> float:
    """The number at `key`: 0 or more, or above 0."""
    value = _at(found, key, within)
    if not _is_number(value) or value < 0 or (positive and not value):
        raise InputError(
            f"{within}{key} is {shown(value)}, and must be a number {'above 0' if positive else '0 or more'}"
        )
    return float(value)


def span(found: Any, key: str, within: str) -> tuple[float, float]:
    """The range at `key`: two numbers, the smaller first."""
    value = _at(found, key, within)
    if (
        not isinstance(value, Sequence)
        or len(value) != 2
        or not all(_is_number(each) for each in value)
        or value[0] > value[1]
    ):
        raise InputError(f"{within}{key} is {shown(value)}, and must be two numbers, the smaller first")
    return float(value[0]), float(value[1])


def parameters(found: Any, name: str, within: str) -> tuple[dict[str, float], dict[str, float]]:
    """The parameters of the family `name` in its fit `found`: values, and their relative standard errors."""
    try:
        wanted = family(name).parameters
    except KeyError:
        raise InputError(f"{within.rstrip('.')} is no kernel family of this kvsim") from None
    given = mapping(found, "parameters", within)
    values, errors = {}, {}
    for key in given:
        here = f"{within}parameters.{key}."
        values[key] = number(given[key], "value", here, positive=True)
        errors[key] = number(given[key], "standard_error", here) / values[key]
    for one in wanted:
        value = number(values, one.name, f"{within}parameters.", positive=True)
        if not one.low / _ROUNDING <= value <= one.high * _ROUNDING:
            raise InputError(
                f"{within}parameters.{one.name}.value is {value:g}, and must be from {one.low:g} to {one.high:g}"
            )
    return values, errors


def shown(value: Any) -> str:
    """A value as the file says it; of long ones the beginning."""
    told = json.dumps(value)
    return told if len(told) <= _SHOWN else f"{told[:_SHOWN]}..."


_ROUNDING = 1.0001
"""A value at a bound may be written on the other side of it, in six digits."""

_SHOWN = 40
"""As much of a value is shown, in characters."""


def _at(found: Any, key: str, within: str) -> Any:
    if not isinstance(found, Mapping):
        raise InputError(f"{within.rstrip('.') or 'all of it'} is {shown(found)}, and must be an object")
    if key not in found:
        raise InputError(f"{within}{key} is missing")
    return found[key]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number of it")

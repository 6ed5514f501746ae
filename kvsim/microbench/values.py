"""Values of one record, each checked: what is wrong about one is said without its file and line."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvsim.errors import InputError


def text(record: Mapping[str, Any], name: str, choices: Sequence[str] = (), *, empty: bool = False) -> str:
    """A text; one of `choices` where there are any."""
    value = _given(record, name)
    right = f"one of {', '.join(choices)}" if choices else "a text"
    if not isinstance(value, str) or (choices and value not in choices) or (not value and not empty):
        raise InputError(f"{name} is {value!r}; it must be {right}")
    return value


def whole(record: Mapping[str, Any], name: str, *, least: int = 0) -> int:
    """A whole number, `least` or more."""
    value = _given(record, name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} is {value!r}; it must be a whole number, {least} or more")
    return value


def number(record: Mapping[str, Any], name: str, *, positive: bool = False) -> float:
    """A number, 0 or more."""
    value = _given(record, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or (positive and value <= 0):
        raise InputError(f"{name} is {value!r}; it must be a number {'above 0' if positive else 'from 0 on'}")
    return float(value)


def flag(record: Mapping[str, Any], name: str, *, null: bool = False) -> bool | None:
    """true or false; null where that is allowed."""
    value = _given(record, name)
    if isinstance(value, bool) or (value is None and null):
        return value
    raise InputError(f"{name} is {value!r}; it must be true{', ' if null else ' or '}false{' or null' if null else ''}")


def _given(record: Mapping[str, Any], name: str) -> Any:
    if name not in record:
        raise InputError(f"{name} is missing; take a file as `kvsim calibrate run` wrote it")
    return record[name]

"""The files of presets, read once, when somebody asks."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kvsim.errors import InputError


@cache
def length_presets() -> Mapping[str, Mapping[str, Any]]:
    """Lengths and sessions by name: `about`, `source`, `licence`, and what was recorded of each variable."""
    return _read("lengths.json")


@cache
def arrival_presets() -> Mapping[str, Mapping[str, Any]]:
    """Arrival processes by name: `about`, `source`, `licence`, the process and its parameters."""
    return _read("arrivals.json")


def length_preset(name: str) -> Mapping[str, Any]:
    """One entry of `length_presets`; InputError with the names nearest to it where there is none."""
    return _entry(length_presets(), name, "length preset")


def arrival_preset(name: str) -> Mapping[str, Any]:
    """One entry of `arrival_presets`; InputError with the names nearest to it where there is none."""
    return _entry(arrival_presets(), name, "arrival preset")


def _read(file: str) -> Mapping[str, Mapping[str, Any]]:
    text = (Path(__file__).parent / "data" / file).read_text(encoding="utf-8")
    entries: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return entries


def _entry(entries: Mapping[str, Mapping[str, Any]], name: str, what: str) -> Mapping[str, Any]:
    from difflib import get_close_matches

    if name in entries:
        return entries[name]
    near = get_close_matches(name, entries, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(entries)}"
    raise InputError(f"unknown {what} {name!r}; {hint}")

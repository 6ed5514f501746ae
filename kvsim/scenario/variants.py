"""All variants of what somebody names, and variants made on the command line: every combination of some values of some
keys."""

import os
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from kvsim.errors import InputError
from kvsim.scenario.reading.layers import read_layers
from kvsim.scenario.resolve import Scenario, load_all

_OPENING, _CLOSING = "{[(", "}])"


def every_variant(
    given: Scenario | str | os.PathLike[str] | Mapping[str, Any] | Sequence[Scenario],
) -> list[Scenario]:
    """The scenarios that somebody names by a file, by its values, by one of them, or one by one.

    A scenario that is itself a variant stands alone. InputError where a file or its values are wrong.
    """
    if isinstance(given, Mapping):
        given = Scenario.from_dict(given)
    if isinstance(given, Scenario):
        return [one for _, one in given.variants()] if given.variant is None else [given]
    if isinstance(given, str | os.PathLike):
        return load_all(given)
    return list(given)


def varied(text: str) -> tuple[str, list[str]]:
    """The key and the values of `KEY=A,B,C`; a comma inside brackets or quotes parts nothing.

    InputError where there is no key, a value is empty, or one comes twice.
    """
    key, equals, rest = text.partition("=")
    values = [value.strip() for value in _parted(rest)]
    right = "write KEY=A,B, for example allocator.block_size=16,32"
    if not equals or not key.strip() or not all(values):
        raise InputError(f"--vary {text}: is no key with values; {right}")
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise InputError(f"--vary {text}: {twice} is given twice; {right}")
    return key.strip(), values


def load_varied(
    path: str | os.PathLike[str], overrides: Sequence[str], choices: Sequence[tuple[str, Sequence[str]]]
) -> list[tuple[str, Scenario]]:
    """Each variant of a scenario file with each combination of values, by name, the last key changing fastest.

    A name says the variant, where the file has some, and each key's last word with its value. InputError where a key
    is varied twice or is what variants differ in, and with every mistake of the first combination that has any.
    """
    keys = [key for key, _ in choices]
    if len(set(keys)) < len(keys):
        raise InputError(
            f"--vary {next(key for key in keys if keys.count(key) > 1)}: is given twice; put both together"
        )
    # Read, not checked: what is varied may be what the file leaves open.
    for variant, layer in read_layers(os.fspath(path)).variants.items():
        for key in keys:
            if any(_touch(key, known) for known in layer.origins):
                raise InputError(
                    f"--vary {key}: variant {variant} sets it itself, and would be another under its name; "
                    "vary a key that no variant sets"
                )
    words = [key.rpartition(".")[2] for key in keys]
    shown = words if len(set(words)) == len(words) else keys
    made = []
    for values in product(*(values for _, values in choices)):
        changes = [f"{key}={value}" for key, value in zip(keys, values, strict=True)]
        said = [f"{word}={value}" for word, value in zip(shown, values, strict=True)]
        for scenario in load_all(path, overrides, changes):
            made.append((" ".join([scenario.variant, *said] if scenario.variant else said), scenario))
    return made


def _touch(key: str, other: str) -> bool:
    """One of two dotted keys is the other, or lies below it."""
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")


def _parted(text: str) -> list[str]:
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth -= 1
        elif letter == "," and not depth:
            parts.append("")
            continue
        parts[-1] += letter
    return parts

"""How a trace begins: what readers recognise their format by."""

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["text", "parquet", "folder", "archive"]

_KEY_LETTERS = 1 << 16
"""Letters at the start of a document in which its first object shows its keys."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:]')


@dataclass(frozen=True)
class Head:
    """The first thing in a trace, as plain values; all empty where there is no such thing.

    `line` is the first line of a text. `row` is the JSON object that it is, or begins with; `keys` are the keys of the
    first object of a document, over however many lines. `names` are the cells of a line of a table, or the columns of
    Parquet, or the files of a folder or an archive.
    """

    kind: Kind = "text"
    line: str = ""
    row: Mapping[str, Any] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()


def head_of_text(first_line: str, start: str) -> Head:
    """From the first line of a text, and the start of the text. Pure; never raises."""
    stripped = first_line.strip()
    if not stripped.startswith(("{", "[")):
        return Head(line=first_line, names=_cells(first_line))
    row = first_object(stripped)
    return Head(line=first_line, row=row, keys=frozenset(row or _first_keys(start)))


def first_object(line: str) -> dict[str, Any]:
    """The JSON object that a line is, or is a list of; an empty one where it is neither. Pure; never raises."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if isinstance(row, list) and row:
        row = row[0]
    return row if isinstance(row, dict) else {}


def _cells(line: str) -> tuple[str, ...]:
    try:
        cells = next(csv.reader([line.strip()]), [])
    except csv.Error:
        cells = line.split(",")
    return tuple(cell.strip() for cell in cells)


def _first_keys(text: str) -> frozenset[str]:
    """Keys of the first object in the text, as far as it is there: strings before a colon, one brace deep."""
    keys = set()
    depth = 0
    string = ""
    for found in _TOKEN.finditer(text, 0, _KEY_LETTERS):
        token = found[0]
        if token == ":":
            if depth == 1 and string:
                keys.add(string)
        elif token in "{[":
            # The list around the objects of a document is no depth.
            depth += token == "{" or depth > 0
        elif token in "}]":
            depth -= 1
            if depth <= 0:
                break
        string = token[1:-1] if token.startswith('"') else ""
    return frozenset(keys)

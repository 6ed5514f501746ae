"""Lists of points from a file: CSV with dotted keys in its first line, or JSON Lines."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kvsim.errors import InputError
from kvsim.scenario.messages import Origin
from kvsim.scenario.reading.loading import parse_value
from kvsim.study.sweeps.points import Point


def list_of(file: str) -> list[Point]:
    """The points of a file, one a line, each with its line as its place.

    In CSV an empty cell leaves its key alone, and values are YAML. A name that ends in .jsonl or .ndjson, or a first
    line that opens with `{`, says JSON Lines. Raises InputError for what is none of these, and for a file without any.
    """
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"--list {file}: is not UTF-8 text; give CSV or JSON Lines") from None
    except OSError as error:
        raise InputError(f"--list {file}: cannot be read ({error.strerror}); give CSV or JSON Lines") from None
    is_json = Path(file).suffix in (".jsonl", ".ndjson") or text.lstrip().startswith("{")
    points = _json_lines(file, text) if is_json else _csv(file, text)
    if not points:
        raise InputError(f"--list {file}: has no points; give a line for each, below a line of keys in CSV")
    return points


def _json_lines(file: str, text: str) -> list[Point]:
    points = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            changes = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{file}:{number}: is not JSON ({error}); write an object a line") from None
        points.append(_point(file, number, changes))
    return points


def _csv(file: str, text: str) -> list[Point]:
    keys: list[str] = []
    points = []
    for line, cells in _lines(file, text):
        if not keys:
            keys = [cell.strip() for cell in cells]
            if len(set(keys)) < len(keys) or not all(keys):
                raise InputError(f"{file}:{line}: a key is empty or comes twice; name each column once")
            continue
        if len(cells) != len(keys):
            raise InputError(
                f"{file}:{line}: has {len(cells)} cells and the first line {len(keys)}; "
                "give one a key, and quote values with commas"
            )
        try:
            changes = {key: parse_value(cell) for key, cell in zip(keys, cells, strict=True) if cell.strip()}
        except InputError:
            raise InputError(f"{file}:{line}: a cell is no YAML value; quote it") from None
        points.append(_point(file, line, changes))
    return points


def _lines(file: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that are not empty, by number, in cells."""
    reader = csv.reader(text.splitlines(), skipinitialspace=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"{file}:{reader.line_num}: is not CSV ({error}); quote values with commas") from None


def _point(file: str, number: int, changes: Any) -> Point:
    if not isinstance(changes, dict) or not changes:
        raise InputError(f"{file}:{number}: changes nothing; give an object of dotted keys, or leave the line out")
    return Point(changes, Origin("list", file, number))

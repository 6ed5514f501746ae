"""The flags of an engine, and how one is found under the names it is written by."""

import csv
import difflib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from kvsim.capacity.arguments.command import Engine, Status
from kvsim.catalog.names import CLOSE

_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One flag of an engine, as data: the kind of its value, kvsim's names for it, what kvsim does with it."""

    flag: str
    kind: str
    key: str | None
    status: Status
    why: str
    scenario: str | None


def find(engine: Engine, name: str) -> Entry | None:
    """The flag written as `name` (dashes and all), or None.

    Underscores are dashes, and a beginning that only one flag has stands for it, as the engines' parsers take it.
    """
    known = _names(engine)
    name = name.replace("_", "-") if name.startswith("--") else name
    if name in known or not name.startswith("--"):
        return known.get(name)
    begun = {entry.flag: entry for written, entry in known.items() if written.startswith(name)}
    return next(iter(begun.values())) if len(begun) == 1 else None


def closest(engine: Engine, name: str) -> str | None:
    """The known name most like `name`, or None where none is."""
    bare = {known.lstrip("-"): known for known in _names(engine)}
    near = difflib.get_close_matches(name.replace("_", "-").lstrip("-"), bare, n=1, cutoff=CLOSE)
    return bare[near[0]] if near else None


@cache
def _names(engine: Engine) -> dict[str, Entry]:
    names: dict[str, Entry] = {}
    with (_DATA / f"{engine}.csv").open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            entry = Entry(
                flag=row["flag"],
                kind=row["kind"],
                key=row["key"] or None,
                status=cast(Status, row["status"]),
                why=row["why"],
                scenario=row["scenario"] or None,
            )
            for name in (row["flag"], *row["aliases"].split()):
                names[name if name.startswith("-") else f"--{name}"] = entry
    return names

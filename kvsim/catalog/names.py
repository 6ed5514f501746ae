"""How the catalogue's tables are read and how a name that a user or a log writes finds its row."""

import csv
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from kvsim.errors import InputError

DATA = Path(__file__).parent / "data"

CLOSE = 0.5
"""Names less alike than this (2 x matching letters / all letters) are no help to who mistyped one."""

LONGEST_SHOWN = 60

_SEPARATORS = re.compile(r"[^a-z0-9]+")


def read_table(file_name: str) -> list[dict[str, str]]:
    """Read one of the catalogue's tables: every row as a dict of text, in file order. An empty cell is ''."""
    with (DATA / file_name).open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def key(name: str, ignored: Collection[str] = ()) -> str:
    """Spell a name so that case and punctuation do not matter, leaving out the words in `ignored`.

    "Llama-3.1-8B", "llama3.1:8b" and "LLAMA_3.1_8B" have one key.
    """
    return "".join(word for word in _SEPARATORS.split(name.lower()) if word not in ignored)


def spellings(name: str, ignored: Collection[str] = ()) -> list[str]:
    """Return the keys a name may be found under, most exact first: whole, without owner, without ignored."""
    bare = name.rsplit("/", 1)[-1]
    found = dict.fromkeys((key(name), key(bare), key(bare, ignored)))
    return [spelling for spelling in found if spelling]


def index(named_rows: Iterable[tuple[int, Iterable[str]]], ignored: Collection[str] = ()) -> dict[str, int]:
    """Map every spelling of every row's names to the row's number.

    An exact name beats a shortened one: a row never loses its own name to the shortened name of another.
    """
    exact: dict[str, int] = {}
    shortened: dict[str, int] = {}
    for row, names in named_rows:
        for name in names:
            whole, *shorter = spellings(name, ignored)
            exact.setdefault(whole, row)
            for spelling in shorter:
                shortened.setdefault(spelling, row)
    return shortened | exact


def unknown(kind: str, name: str, names: Iterable[str], hint: str) -> InputError:
    """Return the error for a name that nothing has: the closest, at most three, and where all are listed."""
    import difflib  # late: only a wrong name needs it

    by_lower = {known.lower(): known for known in names}
    bare = name.rsplit("/", 1)[-1].lower()
    closest = [by_lower[match] for match in difflib.get_close_matches(bare, by_lower, n=3, cutoff=CLOSE)]
    shown = name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}..."
    if not closest:
        return InputError(f"unknown {kind} {shown!r}: no name is close; {hint}")
    near = f"the closest are {', '.join(closest)}" if len(closest) > 1 else f"the closest is {closest[0]}"
    return InputError(f"unknown {kind} {shown!r}: {near}; {hint}")

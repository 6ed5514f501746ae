"""ServeGen: the clients behind a workload, each with its rates and lengths by window; a folder or a tar archive.

`chunk-N-trace.csv` has no header: window start (s), requests per second, CV of the gaps, family (Gamma, Weibull or
nothing), shape, scale. `chunk-N-dataset.json` maps window starts to fields, each a string with a Python dictionary of
value: probability, which is read by a parser of numbers alone. Some clients lack one of the two files, some windows
their family, and rates may be 0. Published at github.com/alibaba/ServeGen.
"""

import csv
import json
import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kvsim.errors import InputError
from kvsim.workload.readers.files import archive
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.json_values import no_number
from kvsim.workload.readers.interface import listed, shown

_NAME = re.compile(r"chunk-([0-9]+)-(trace\.csv|dataset\.json)")
_FAMILIES = ("", "Gamma", "Weibull")
_COLUMNS = 6
_MOST = 1e15
"""No time in seconds, rate, or count of tokens that anybody means is larger; sums of products of these are finite."""


class Window(NamedTuple):
    """How a client's requests come for a while: gaps of a law with this mean rate."""

    start_s: float
    rate_per_s: float
    cv: float
    family: str
    shape: float
    scale: float


class Law(NamedTuple):
    """A law of whole numbers: its values and their probabilities, which need not add up to 1."""

    values: "array[float]"
    weights: "array[float]"


@dataclass(slots=True)
class Client:
    """One client: its arrival windows, and by window start its laws by field (`input_tokens`, `output_tokens`, ...)."""

    number: int
    windows: list[Window] = field(default_factory=list)
    laws: dict[float, dict[str, Law]] = field(default_factory=dict)


@dataclass
class Population:
    """A pass over a ServeGen data set; `incomplete` counts clients that lack one of their files."""

    path: Path
    name: str
    clients: int = 0
    incomplete: int = 0

    def __iter__(self) -> Iterator[Client]:
        """The clients that have both files, one by one as these come. InputError where a file is damaged."""
        self.clients = self.incomplete = 0
        half: dict[int, Client] = {}
        for member, text in archive.texts(self.path, self.name):
            found = _NAME.fullmatch(os.path.basename(member))
            if found is None:
                continue
            client = half.setdefault(int(found[1]), Client(int(found[1])))
            place = f"{self.name}: {listed([member])}"
            if found[2] == "trace.csv":
                client.windows = _windows(text, place)
            else:
                client.laws = _laws(text, place)
            if client.windows and client.laws:
                del half[client.number]
                self.clients += 1
                yield client
        self.incomplete = len(half)
        if not self.clients:
            raise InputError(
                f"{self.name}: no client has both files; give a folder with chunk-0-trace.csv and -dataset.json"
            )


def is_population(head: Head) -> bool:
    """Whether a folder or an archive begins like this. Pure; never raises."""
    if head.kind == "folder":
        return any(_NAME.fullmatch(name) for name in head.names)
    return head.kind == "archive" and any(_NAME.fullmatch(name) for name in head.names)


def _windows(text: str, place: str) -> list[Window]:
    found = []
    for row, cells in enumerate(_rows(text, place), start=1):
        if not cells:
            continue
        if len(cells) != _COLUMNS:
            raise InputError(
                f"{place}: row {row}: {len(cells)} columns, not {_COLUMNS}; write start, rate, cv, family, shape, scale"
            )
        family = cells[3].strip()
        if family not in _FAMILIES:
            raise InputError(
                f"{place}: row {row}: {shown(family)} is no family of gaps; write Gamma, Weibull or nothing"
            )
        start, rate, cv, shape, scale = (_number(cells[at], place, row) for at in (0, 1, 2, 4, 5))
        found.append(Window(start, rate, cv, family, shape, scale))
    return found


def _rows(text: str, place: str) -> Iterator[list[str]]:
    table = csv.reader(text.splitlines())
    try:
        yield from table
    except csv.Error as error:
        raise InputError(f"{place}: line {table.line_num} is not CSV ({error}); fetch the file again") from None


def _laws(text: str, place: str) -> dict[float, dict[str, Law]]:
    try:
        windows = json.loads(text, parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON ({error}); fetch the file again") from None
    if not isinstance(windows, dict) or not all(isinstance(fields, dict) for fields in windows.values()):
        raise InputError(f"{place}: no object of windows; write {{start: {{field: law}}}}")
    return {
        _number(start, place, row): {
            name: _law(law, f"{place}: window {start}, {name}") for name, law in fields.items()
        }
        for row, (start, fields) in enumerate(windows.items(), start=1)
    }


def _law(text: object, place: str) -> Law:
    """A dictionary of numbers as Python writes it, in a string."""
    stripped = text.strip() if isinstance(text, str) else ""
    if not (stripped.startswith("{") and stripped.endswith("}")):
        raise InputError(f"{place}: {shown(text)} is no dictionary of value: probability in a string")
    law = Law(array("d"), array("d"))
    inside = stripped[1:-1].strip().removesuffix(",")
    for row, pair in enumerate(inside.split(",") if inside else (), start=1):
        value, colon, weight = pair.partition(":")
        law.values.append(_number(value, place, row))
        law.weights.append(_number(weight if colon else "", place, row))
    return law


def _number(text: str, place: str, row: int) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= _MOST or "_" in text:
        raise InputError(f"{place}: row {row}: {shown(text)} is no number of at least 0, and at most {_MOST:.0e}")
    return number

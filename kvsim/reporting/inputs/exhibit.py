"""A folder that holds no run: its figures as they lie there, and its JSON as tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvsim.reporting.inputs.sheet import Body, Cell, Sheet, cell
from kvsim.reporting.sweep.measures import KNOWN, Measure

DIGITS = 3
"""Behind the point at most."""

MOST_ROWS = 400
"""Rows of a table that a page shows; the file has all."""


@dataclass(frozen=True)
class Found:
    """A figure that lies in a folder: its stem, and its file in each form."""

    stem: str
    files: Mapping[str, Path]


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """What a folder shows beside runs: tables, figures, and what to know of them."""

    name: str
    kind: str
    sheets: Sequence[Sheet] = ()
    figures: Sequence[Found] = ()
    findings: Sequence[str] = ()
    provenance: Sequence[str] = ()
    notes: Sequence[str] = ()
    not_modelled: Sequence[str] = ()


def figures_in(folder: Path) -> list[Found]:
    """The figures of a folder by stem, in the order of their names."""
    files: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in (".png", ".svg", ".pdf") and not path.name.startswith("."):
            files.setdefault(path.stem, {})[path.suffix[1:]] = path
    return [Found(stem, forms) for stem, forms in files.items() if forms.keys() & {"png", "svg"}]


def sweep_exhibit(summary: Mapping[str, Any], folder: Path) -> Exhibit:
    """A sweep: a row for each variant at each point, with the mean of its replications."""
    points = summary["points"]
    keys = [axis["key"] for axis in summary["axes"]]
    known = [KNOWN.get(name, Measure(name, name)) for name in dict.fromkeys(n for p in points for n in p["metrics"])]
    variants = any(point["variant"] for point in points)
    rows = []
    for point in points:
        row = [cell(point["variant"])] if variants else []
        row += [_axis_cell(point["changes"].get(key)) for key in keys]
        for measure in known:
            spread = point["metrics"].get(measure.name)
            row.append(cell(spread["mean"] * measure.scale if spread else None))
        rows.append([*row, cell(point["pareto"]), cell(point["failed"])])
    heads = [*(["variant"] if variants else []), *keys, *(one.title for one in known), "on the front", "failed"]
    note = "Means over replications. On the front: no other point has both less latency and more throughput."
    return Exhibit(
        name=summary["scenario"],
        kind="sweep",
        findings=_reach(points, known),
        sheets=[Sheet(title="Points", columns=heads, bodies=[Body("", rows)], note=note)],
        figures=figures_in(folder),
        notes=_texts(summary.get("notes")),
        not_modelled=_texts(summary.get("not_modelled")),
    )


def _reach(points: Sequence[Mapping[str, Any]], known: Sequence[Measure]) -> list[str]:
    """How far apart the points are in what is told first, and which ones are at the ends."""
    if not known:
        return ["No run of these points has a result."]
    measure = known[0]
    there = [
        (spread["mean"] * measure.scale, _name(point))
        for point in points
        if (spread := point["metrics"].get(measure.name)) is not None
    ]
    if not there:
        return []
    (least, first), (most, last) = min(there), max(there)
    unit = f" {measure.unit}" if measure.unit else ""
    return [
        f"{len(points):,} points: {measure.label} goes from {cell(least).text}{unit} ({first}) to "
        f"{cell(most).text}{unit} ({last})."
    ]


def _name(point: Mapping[str, Any]) -> str:
    changes = [f"{key}={value}" for key, value in point["changes"].items()]
    return " ".join(([point["variant"]] if point["variant"] else []) + changes)


def _axis_cell(value: object) -> Cell:
    """A swept value as it was written, sorted by the number it begins with."""
    found = cell(value)
    if found.number is None:
        digits = found.text.split("/")[0].strip()
        try:
            return Cell(found.text, float(digits))
        except ValueError:
            return found
    return found


def any_exhibit(record: Mapping[str, Any], kind: str, folder: Path) -> Exhibit:
    """What any JSON record says: its lists of records as tables in the order of the file, what is single as facts."""
    told = {key: value for key, value in record.items() if key not in SAID}
    facts = [[Cell(key), cell(value, DIGITS)] for key, value in _facts(told) if value is not None]
    sheets = []
    for key, value in told.items():
        if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            sheets.append(_records(key, value))
    if facts:
        sheets.append(Sheet(title="Facts", columns=["fact", "value"], bodies=[Body("", facts)]))
    return Exhibit(
        name=str(record.get("name") or record.get("scenario") or folder.resolve().name),
        kind=kind,
        sheets=sheets,
        figures=figures_in(folder),
        findings=_texts(record.get("answer", record.get("verdict"))),
        provenance=_texts(record.get("provenance")),
        notes=_texts(record.get("notes")),
        not_modelled=_texts(record.get("not_modelled")),
    )


SAID = ("schema", "name", "scenario", "answer", "verdict", "notes", "provenance", "not_modelled")
"""Keys that a report has a place of its own for, or that nobody asks about."""


def _facts(record: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _facts(value, f"{name}.")
        elif not isinstance(value, list) or not any(isinstance(one, Mapping | list) for one in value):
            yield name, value


def _records(title: str, records: Sequence[Mapping[str, Any]]) -> Sheet:
    flat = [dict(_facts(record)) for record in records[:MOST_ROWS]]
    heads = list(dict.fromkeys(key for record in flat for key in record))
    more = len(records) - len(flat)
    return Sheet(
        title=title.replace("_", " ").capitalize(),
        columns=heads,
        bodies=[Body("", [[cell(record.get(head), DIGITS) for head in heads] for record in flat])],
        note=f"The first {len(flat)} of {len(records):,}; the file has all." if more else "",
    )


def _texts(value: object) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{key}: {one}" for key, one in value.items()]
    return [str(one) for one in value] if isinstance(value, list) else [value] if isinstance(value, str) else []

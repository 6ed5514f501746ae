"""What a simulated allocator did, as a trace that a real one can replay: `a ID BYTES` and `f ID`, a line each.

The operations are read off the address records of a run (`kvsim run --addresses`): a region that appears is allocated,
one whose slots come free is freed. A real allocator cannot lengthen what it gave out, so a region that grew in place is
allocated anew and the old one freed.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from kvsim.errors import InputError

REGIONS = ("contiguous", "reserve")
"""Allocators that give a request one region; blocks of one size fragment nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One change: from `start` on so many slots are of this class, for this sequence."""

    time_s: float
    start: int
    slots: int
    owner: Any
    kind: str

    @property
    def end(self) -> int:
        """The slot behind the last one."""
        return self.start + self.slots


@dataclass(slots=True)
class _Region:
    end: int
    owner: Any
    id: int | None = None
    grown: bool = True


@dataclass(slots=True)
class _Space:
    """Live regions by where they start."""

    slot_bytes: int
    regions: dict[int, _Region] = field(default_factory=dict)
    given: int = 0

    def free(self, row: Row) -> Iterator[str]:
        for start in sorted(start for start in self.regions if row.start <= start < row.end):
            region = self.regions.pop(start)
            if region.id is not None:
                yield f"f {region.id}"

    def paint(self, row: Row) -> None:
        for region in (one for start, one in self.regions.items() if start <= row.start < one.end):
            region.grown |= row.end > region.end
            region.end = max(region.end, row.end)
            return
        for region in self.regions.values():
            # The target of a copy beside its source is a region of its own.
            if region.end == row.start and region.owner == row.owner and (region.grown or row.kind != "moving"):
                region.end, region.grown = row.end, True
                return
        self.regions[row.start] = _Region(row.end, row.owner)

    def settle(self) -> Iterator[str]:
        for start in sorted(start for start, one in self.regions.items() if one.grown):
            region, before = self.regions[start], self.regions[start].id
            region.id, region.grown = self.given, False
            self.given += 1
            yield f"a {region.id} {(region.end - start) * self.slot_bytes}"
            if before is not None:
                yield f"f {before}"


def operations(rows: Iterator[Row], slot_bytes: int) -> Iterator[str]:
    """The lines of a trace. `rows` in the order of time; at one time what came free is first."""
    space = _Space(slot_bytes)
    for _, at_once in groupby(rows, key=lambda row: row.time_s):
        for row in at_once:
            if row.kind == "free":
                yield from space.free(row)
            else:
                space.paint(row)
        yield from space.settle()


def write_trace(run: Path, to: Path, *, name: str, most: int) -> int:
    """Write the first `most` operations of the run in folder `run` as a trace called `name`; returns how many.

    Raises InputError for a folder without address records, or of an allocator that gives no regions.
    """
    if not name or name.split() != [name]:
        raise InputError(f"--name: {name!r} is no name; give one word")
    lines: list[str] = []
    for line in operations(_rows(run), _slot_bytes(run)):
        if len(lines) == most:
            break
        lines.append(line)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text("\n".join([f"# name {name}", *lines]) + "\n", encoding="utf-8")
    return len(lines)


def _slot_bytes(run: Path) -> int:
    try:
        metrics = json.loads((run / "summary.json").read_text(encoding="utf-8"))["metrics"]
        allocator = json.loads((run / "resolved.json").read_text(encoding="utf-8"))["allocator.name"]["value"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{run}: is no run folder; write one with `kvsim run FILE --addresses -o DIR`") from None
    if allocator not in REGIONS:
        raise InputError(
            f"{run}: its allocator is {allocator}, which gives no regions; take a run of {' or '.join(REGIONS)}"
        )
    return int(metrics["device_bytes"]["pool"] // metrics["pool_tokens"])


def _rows(run: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = run / "addresses.parquet"
    if not path.is_file():
        raise InputError(f"{path}: is not there; run again with `kvsim run FILE --addresses -o DIR`")
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    owner = (row["request"], row["sample"])
                    yield Row(row["time_s"], row["start"], row["length"], owner, row["class"])
    except (pa.ArrowException, OSError, KeyError):
        raise InputError(f"{path}: holds no address records, or is damaged; write the run folder again") from None

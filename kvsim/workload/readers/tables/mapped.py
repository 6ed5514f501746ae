"""Any table of one request a row (CSV, JSON lines, Parquet), told which column is which.

Columns go by `options.columns`; those not named there have the names of `NAMES`. `options.time_unit` is the unit of the
times; in a CSV, times may also be wall-clock times as Azure's traces write them.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from itertools import chain
from typing import Any, ClassVar

from kvsim.workload.readers.base import BaseReader, Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.source import Source, damaged_parquet
from kvsim.workload.readers.interface import Identity, Intake, Scope, listed
from kvsim.workload.readers.options import TIME_UNITS, ReadOptions
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.tables.csv_file import Cells
from kvsim.workload.readers.values.clock import RIGHT, WallClock
from kvsim.workload.readers.values.times import ps_of, why_no_time

NAMES: Mapping[str, str] = {
    "time": "arrival_s",
    "prompt": "prompt_tokens",
    "output": "output_tokens",
    "session": "session",
    "hash_ids": "hash_ids",
    "priority": "priority",
    "tenant": "tenant",
}
"""Columns where the map says nothing."""
_NEEDED = ("prompt", "output")
_BATCH_ROWS = 4096


class TableReader(BaseReader):
    """A table without times is one of lengths; one with `hash_ids` needs `block_tokens` too."""

    format: ClassVar[str] = "table"
    columns: ClassVar[tuple[str, ...]] = (NAMES["time"], NAMES["prompt"], NAMES["output"])
    time_unit: ClassVar[str] = "as told"
    prefix_identity: ClassVar[Identity] = "real"
    hash_scope: ClassVar[Scope] = "global"

    def recognises(self, head: Head) -> bool:
        """Prompt and output tokens under kvsim's own names."""
        return {NAMES[name] for name in _NEEDED} <= (head.keys or set(head.names))

    def identity(self, source: Source, options: ReadOptions) -> Identity:
        """Real where there is a column of ids."""
        names = source.head.keys or set(source.head.names)
        return "real" if options.columns.get("hash_ids", NAMES["hash_ids"]) in names else "absent"

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Calls in file order."""
        asked = intake.options.columns
        names = {**NAMES, **asked}
        rows = _rows(source, intake)
        first = next(rows, None)
        if first is None:
            return
        for name in (*_NEEDED, *asked):
            if names[name] not in first:
                raise intake.wrong(
                    f"column {names[name]} ({name}) is missing; the columns are {listed(first)}; "
                    f"say which is which: --columns {name}=ITS-NAME, or in a scenario workload.read.columns: "
                    f"{{{name}: ITS-NAME}}"
                )
        intake.ignored_columns = tuple(name for name in first if name not in names.values())
        digits = TIME_UNITS[intake.options.time_unit]
        clock, links = WallClock(), Links(intake)
        for row in chain([first], rows):
            prompt = json_lines.read_count(row, names["prompt"], "prompt", intake)
            output = prompt and json_lines.read_count(row, names["output"], "output", intake)
            if not output:
                continue
            id = str(intake.row)
            request = TraceRequest(id, prompt, output)
            if names["time"] in first:
                request.arrival_ps = _time_ps(row, names["time"], digits, clock, intake)
                if request.arrival_ps is None:
                    continue
            if not _add_others(request, row, names, intake):
                continue
            if request.session:
                request.after = links.goes_on(request.session, id)
            yield request


def _add_others(request: TraceRequest, row: dict[str, Any], names: Mapping[str, str], intake: Intake) -> bool:
    """What may be in a row and need not; whether the row is good. Mutates."""
    ids = row.get(names["hash_ids"])
    if ids is not None and ids != "":
        size = intake.options.block_tokens
        if size is None:
            raise intake.wrong("the table has ids of blocks; say how many tokens a block has (--block-tokens)")
        if isinstance(ids, str):
            row = row | {names["hash_ids"]: ids.strip("[]").replace(",", " ").split()}
        found = json_lines.read_ids(row, names["hash_ids"], request.prompt_tokens, size, intake)
        if found is None:
            return False
        request.blocks, request.block_tokens = tuple(found), size
    priority = row.get(names["priority"])
    if priority not in (None, ""):
        try:
            request.priority = int(str(priority))
        except ValueError:
            intake.bad(names["priority"], priority, "not a whole number", "write a whole number")
            return False
    session, tenant = row.get(names["session"]), row.get(names["tenant"])
    request.session = "" if session is None else str(session)
    request.tenant = "" if tenant is None else str(tenant)
    return True


def _time_ps(row: dict[str, Any], column: str, digits: int, clock: WallClock, intake: Intake) -> int | None:
    value = row[column]
    time_ps = ps_of(value, digits)
    if time_ps is None and isinstance(value, str) and "-" in value.strip()[1:] and ":" in value:
        try:
            return clock.read_ps(value)
        except ValueError as reason:
            intake.bad(column, value, str(reason), RIGHT)
            return None
    if time_ps is None:
        unit = intake.options.time_unit
        intake.bad(
            column, value, why_no_time(value), f"write a number (of {unit}; --time-unit says of what), or a time"
        )
    return time_ps


def _rows(source: Source, intake: Intake) -> Iterator[dict[str, Any]]:
    if source.head.kind == "parquet":
        return _parquet_rows(source, intake)
    if source.head.keys:
        return json_lines.objects(source.lines(), intake)
    return _csv_rows(source, intake)


def _csv_rows(source: Source, intake: Intake) -> Iterator[dict[str, Any]]:
    cells_of = Cells(source.lines(), intake)
    twice = next((name for name in cells_of.names if cells_of.names.count(name) > 1), None)
    if twice is not None:
        raise intake.wrong(f"column {listed([twice])} is there twice; give every column a name of its own")
    for cells in cells_of.rows():
        yield dict(zip(cells_of.names, cells, strict=True))


def _parquet_rows(source: Source, intake: Intake) -> Iterator[dict[str, Any]]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(source.path) as file:
            for batch in file.iter_batches(_BATCH_ROWS):
                for row in batch.to_pylist():
                    intake.row += 1
                    yield {name: _plain(value) for name, value in row.items()}
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        # A value may be one that Python has none for, such as a date in the year 30,000.
        raise damaged_parquet(f"{source.name}: after row {intake.row}", error) from None


def _plain(value: Any) -> Any:
    """Numbers as JSON would give them; times as text."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else Decimal(repr(value))
    return value.isoformat(" ") if isinstance(value, datetime) else value

"""What a run leaves behind: its numbers, its tables, and the exact scenario they came from.

A Result is plain data. Printing its summary needs neither pandas nor pyarrow; the data frames and the Parquet
files load them on first use.
"""

import io
import json
import math
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.errors import InputError
from kvsim.metrics.columns import COLUMNS as COLUMNS
from kvsim.metrics.columns import ON_REQUEST, TYPES
from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.prefix.kv_events import KvEventLog, line_of
from kvsim.metrics.requests.refusals import Refusals
from kvsim.metrics.tables import FileTables

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
"""Version of the JSON contract; keys may be added under it, none taken away."""

KV_EVENTS = "kv_events.jsonl"
"""The file of the KV events in a run folder."""

OF_A_RUN = ("name", "seed", "version", "provenance", "not_modelled", "metrics", "pools")
"""What the summary of every run holds."""

_RIGHT = "a run folder is what `kvsim run -o DIR` writes"

GAPS = "gaps.json"
"""The file of the gaps between tokens in a run folder."""


@dataclass
class Result:
    """The outcome of one run: a value that depends on the scenario and the seed alone.

    `metrics` and `pools` follow the JSON contract (shares are fractions of the pool, times seconds, None
    where a number does not exist). `tables` maps each name of `COLUMNS`, and those of `ON_REQUEST` that
    were asked for, to its columns; all columns of a table are equally long. `scenario_given` is the
    scenario's text, `scenario_resolved` maps every dotted key to its value and source. `provenance` says
    where each family of numbers comes from, `expected_error` how far step times are off in runs like it (shares of TPOT
    and TTFT, and of which runs; see `timing.expected`), `not_modelled` what the run leaves out, `notes` what else the
    reader should know about this scenario, `published` what a paper prints for some of the metrics. `kv_events` are
    the batches that a router would hear of the prefix cache (`prefix.kv_events`), None where they were not asked for.
    `gaps` counts every gap between two tokens of a sequence; None: the folder was written before they were kept.
    `refusals` tells of the prompts that were rejected; None: the tables do. `wall_s` is the time the simulation itself
    took; it is shown to people and never stored, so that equal runs leave equal bytes.
    """

    name: str
    seed: int
    version: str
    scenario_given: str
    scenario_resolved: dict[str, Any]
    provenance: dict[str, str]
    not_modelled: list[str]
    metrics: dict[str, Any]
    pools: list[dict[str, Any]]
    tables: Mapping[str, Mapping[str, Sequence[Any]]]
    notes: Sequence[str] = ()
    published: Mapping[str, Any] = field(default_factory=dict)
    kv_events: Iterable[Mapping[str, Any]] | None = None
    wall_s: float | None = None
    refusals: Refusals | None = None
    expected_error: Mapping[str, Any] = field(default_factory=dict)
    gaps: DurationHistogram | None = None

    @property
    def summary(self) -> dict[str, Any]:
        """The object that `kvsim run --json` prints and `summary.json` holds."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "seed": self.seed,
            "version": self.version,
            "provenance": self.provenance,
            **({"expected_error": dict(self.expected_error)} if self.expected_error else {}),
            "not_modelled": self.not_modelled,
            "notes": list(self.notes),
            **({"published": dict(self.published)} if self.published else {}),
            "metrics": self.metrics,
            "pools": self.pools,
            **({"replicas": self._replica_rows()} if "replicas" in self.tables else {}),
        }

    @property
    def requests(self) -> "pd.DataFrame":
        """One row per request that arrived: lengths in tokens, times in seconds, how it ended."""
        return self._frame("requests")

    @property
    def steps(self) -> "pd.DataFrame":
        """One row per step, or per leap over `steps` equal ones: token counts are sums over them."""
        return self._frame("steps")

    @property
    def memory(self) -> "pd.DataFrame":
        """Slots in each class from a row's time to the next row's; inside a leap `used` grows linearly."""
        return self._frame("memory")

    @property
    def events(self) -> "pd.DataFrame":
        """One row per request and episode in which an allocation could not be met at once."""
        return self._frame("events")

    @property
    def preemptions(self) -> "pd.DataFrame":
        """One row per preemption: when, who, and how many tokens it lost."""
        return self._frame("preemptions")

    @property
    def addresses(self) -> "pd.DataFrame":
        """One row per change of what a run of slots holds, and for whom; ValueError where it was not recorded."""
        if "addresses" not in self.tables:
            raise ValueError("addresses were not recorded; run again with addresses=True (`kvsim run --addresses`)")
        return self._frame("addresses")

    @property
    def prompts(self) -> "pd.DataFrame":
        """One row per run of a prompt: what it shares with others; ValueError where it was not recorded."""
        if "prompts" not in self.tables:
            raise ValueError("prompts were not recorded; run again with prompts=True (`kvsim run --prompts`)")
        return self._frame("prompts")

    @property
    def replicas(self) -> "pd.DataFrame":
        """One row per replica of a fleet; ValueError where the run is none."""
        if "replicas" not in self.tables:
            raise ValueError("the run has one replica; give its scenario a fleet")
        return self._frame("replicas")

    def save(self, folder: str | Path) -> list[Path]:
        """Write the run folder: the scenario as given and as resolved, the summary, Parquet tables, and KV events.

        Everything is rendered before anything is written, and each file appears whole or not at all. Equal
        results give equal bytes. Returns the paths written. Raises ValueError for NaN or infinity in the JSON
        part or for columns of unequal length, OSError where the folder cannot be written.
        """
        folder = Path(folder)
        contents: dict[str, bytes | Iterable[bytes]] = {
            "scenario.yaml": self.scenario_given.encode(),
            "resolved.json": to_json(self.scenario_resolved).encode(errors="backslashreplace"),  # names of files
            "summary.json": to_json(self.summary).encode(),
        }
        written = self.tables if isinstance(self.tables, FileTables) else None
        fleet = "replicas" in self.tables
        for name in TYPES:
            if written is None and (name in self.tables or not (fleet or name in ON_REQUEST)):
                contents[f"{name}.parquet"] = self._parquet(name)
        if self.kv_events is not None:
            contents[KV_EVENTS] = self.kv_event_lines()
        if self.gaps is not None:
            contents[GAPS] = json.dumps(self.gaps.telling()).encode() + b"\n"
        folder.mkdir(parents=True, exist_ok=True)
        for name in (KV_EVENTS, GAPS, *(f"{table}.parquet" for table in (TYPES if fleet else ON_REQUEST))):
            if name not in contents:
                # An earlier run may have left one there.
                (folder / name).unlink(missing_ok=True)
        paths = [write_whole(folder / name, content) for name, content in contents.items()]
        if written is not None:
            paths += [written.put(name, folder / f"{name}.parquet") for name in written]
        return paths

    def kv_event_lines(self) -> Iterator[bytes]:
        """The KV events as JSON Lines; ValueError where they were not recorded."""
        if self.kv_events is None:
            raise ValueError("KV events were not recorded; run again with kv_events=True (`kvsim run --kv-events`)")
        return self.kv_events.lines() if isinstance(self.kv_events, KvEventLog) else map(line_of, self.kv_events)

    @classmethod
    def load(cls, folder: str | Path, *, in_files: bool = False) -> "Result":
        """Read a run folder back; with `in_files` its tables stay where they are, and are read when asked for.

        Raises InputError naming the file that is missing, damaged, older or newer.
        """
        folder = Path(folder)
        summary = read_object(folder / "summary.json")
        if summary.get("schema") != SCHEMA:
            raise InputError(
                f"{folder / 'summary.json'}: schema is {summary.get('schema')!r}; this version reads {SCHEMA}"
            )
        if "metrics" not in summary:
            raise InputError(
                f"{folder / 'summary.json'}: holds no metrics of one run; name the sub-folder of a variant"
            )
        absent = [name for name in OF_A_RUN if name not in summary]
        if absent or not isinstance(summary["metrics"], dict):
            raise InputError(
                f"{folder / 'summary.json'}: {absent[0] if absent else 'metrics'} is not what a run writes there; "
                "write the run folder again"
            )
        fleet = (folder / "replicas.parquet").exists()
        paths = {
            name: folder / f"{name}.parquet"
            for name in TYPES
            if not (fleet or name in ON_REQUEST) or (folder / f"{name}.parquet").exists()
        }
        return cls(
            name=summary["name"],
            seed=summary["seed"],
            version=summary["version"],
            scenario_given=_read_text(folder / "scenario.yaml"),
            scenario_resolved=_read_resolved(folder / "resolved.json"),
            provenance=summary["provenance"],
            expected_error=summary.get("expected_error", {}),
            not_modelled=summary["not_modelled"],
            notes=summary.get("notes", ()),
            published=summary.get("published", {}),
            metrics=summary["metrics"],
            pools=summary["pools"],
            tables=_tables_in(paths) if in_files else {name: _read_parquet(name, path) for name, path in paths.items()},
            gaps=_read_gaps(folder / GAPS) if (folder / GAPS).exists() else None,
            kv_events=_read_json_lines(folder / KV_EVENTS) if (folder / KV_EVENTS).exists() else None,
        )

    def _replica_rows(self) -> list[dict[str, Any]]:
        columns = self.tables["replicas"]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _columns(self, table: str) -> dict[str, Sequence[Any]]:
        columns = self.tables.get(table, {})
        known = TYPES[table]
        if set(columns) - set(known):
            raise ValueError(f"tables[{table!r}] has no column {sorted(set(columns) - set(known))[0]!r}")
        # Tables that were saved before a column was added have nothing there.
        nothing = [None] * len(next(iter(columns.values()), ()))
        whole = {name: columns.get(name, nothing) for name in known}
        lengths = {name: len(values) for name, values in whole.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"tables[{table!r}] has columns of unequal length: {lengths}")
        return whole

    def _frame(self, table: str) -> "pd.DataFrame":
        import pandas as pd

        from kvsim.metrics.tables.arrow import plain

        frame = {}
        for name, values in self._columns(table).items():
            kind = TYPES[table][name]
            if kind == "double":
                frame[name] = pd.Series(plain(values), dtype="float64")
            elif kind == "string":
                frame[name] = pd.Series(plain(values), dtype="string")
            else:
                missing = not isinstance(values, array) and any(value is None for value in values)
                frame[name] = pd.Series(plain(values), dtype="Int64" if missing else "int64")
        return pd.DataFrame(frame)

    def _parquet(self, table: str) -> bytes:
        from kvsim.metrics.tables.arrow import as_arrow
        from kvsim.metrics.tables.files import InOrder

        stream = io.BytesIO()
        file = InOrder(table, stream)
        file.add_arrow(as_arrow(table, self._columns(table)))
        file.close()
        return stream.getvalue()


def to_json(value: object) -> str:
    """Render as JSON text that every parser reads: two-space indent, keys in order, a final newline.

    Raises ValueError that names the key of a NaN or an infinity: a number that does not exist is null.
    """
    _refuse_non_numbers(value, "")
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_whole(path: Path, content: bytes | Iterable[bytes]) -> Path:
    """Write a file, and the folders it is in, so that a reader, or a crash in between, never sees half of it.

    `content` may come in parts. Returns the path.
    """
    part = path.with_name(f".{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with part.open("wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return path


def _refuse_non_numbers(value: object, key: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{key or 'value'} is {value}: a number that does not exist is null in JSON")
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _refuse_non_numbers(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            _refuse_non_numbers(inner, f"{key}[{index}]")


def read_object(path: Path, right: str = _RIGHT) -> dict[str, Any]:
    """Read a JSON object of a folder that kvsim wrote. Raises InputError; `right` says what could be read instead."""
    try:
        value = json.loads(_read(path, right), parse_constant=_no_number)
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error}); write the run folder again") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: holds a {type(value).__name__}, not an object; write the run folder again")
    return value


def _no_number(text: str) -> None:
    """Python reads NaN and infinities, which JSON does not have."""
    raise ValueError(f"{text} is no JSON")


def _read(path: Path, right: str = _RIGHT) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {right}") from error


def _read_text(path: Path) -> str:
    try:
        return _read(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 ({error.reason}); write the run folder again") from error


def _read_resolved(path: Path) -> dict[str, Any]:
    resolved = read_object(path)
    strange = [key for key, setting in resolved.items() if not isinstance(setting, dict)]
    if strange:
        raise InputError(f"{path}: {strange[0]} is no setting with its value and source; write the run folder again")
    return resolved


def _read_gaps(path: Path) -> DurationHistogram:
    told = read_object(path)
    try:
        return DurationHistogram.of(told)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: is no histogram of gaps; write the run folder again") from error


def _read_json_lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in _read(path).splitlines()]
    except ValueError as error:
        raise InputError(f"{path}: is not JSON Lines ({error}); write the run folder again") from error


def _tables_in(paths: Mapping[str, Path]) -> FileTables:
    """Tables that stay in their files, which are all there, whole, and have the columns of today."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, path in paths.items():
        try:
            there = pq.read_schema(path).names
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path}: is not a Parquet file ({error}); write the run folder again") from error
        missing = [column for column in TYPES[name] if column not in there]
        if missing:
            raise InputError(f"{path}: has no column {missing[0]}, as an older version wrote it; run it again")
    return FileTables(paths)


def _read_parquet(name: str, path: Path) -> dict[str, Sequence[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(_read(path)))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: is not a Parquet file ({error}); write the run folder again") from error
    columns: dict[str, Sequence[Any]] = table.to_pydict()
    foreign = [column for column in columns if column not in TYPES[name]]
    if foreign or not columns:
        what = f"has a column {foreign[0]}" if foreign else "has no columns"
        raise InputError(f"{path}: {what}, unlike the table {name} of a run; write the run folder again")
    return columns

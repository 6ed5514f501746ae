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

from kvsim.metrics.columns import COLUMNS as COLUMNS
from kvsim.metrics.columns import ON_REQUEST, TYPES
from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.prefix.kv_events import KvEventLog, line_of
from kvsim.metrics.requests.refusals import Refusals
from kvsim.metrics.run_files import (
    read_gaps,
    read_json_lines,
    read_parquet,
    read_resolved,
    read_summary,
    read_text,
    tables_in,
)
from kvsim.metrics.tables import FileTables

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
"""Version of the JSON contract; keys may be added under it, none taken away."""

KV_EVENTS = "kv_events.jsonl"
"""The file of the KV events in a run folder."""

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
        summary = read_summary(folder / "summary.json", SCHEMA)
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
            scenario_given=read_text(folder / "scenario.yaml"),
            scenario_resolved=read_resolved(folder / "resolved.json"),
            provenance=summary["provenance"],
            expected_error=summary.get("expected_error", {}),
            not_modelled=summary["not_modelled"],
            notes=summary.get("notes", ()),
            published=summary.get("published", {}),
            metrics=summary["metrics"],
            pools=summary["pools"],
            tables=tables_in(paths) if in_files else {name: read_parquet(name, path) for name, path in paths.items()},
            gaps=read_gaps(folder / GAPS) if (folder / GAPS).exists() else None,
            kv_events=read_json_lines(folder / KV_EVENTS) if (folder / KV_EVENTS).exists() else None,
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

"""What a microbenchmark run writes, one JSON object a line: `env`, `point`, `skip`, `error`, `end`; read strictly.

Times are seconds, bytes the fewest that an operation needs. Fields that are not known are ignored, missing or
impossible ones are refused with file and line. A file may hold several runs one after the other, each begun by its
`env`.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from kvsim.errors import InputError
from kvsim.microbench.benches import check_params
from kvsim.microbench.values import flag, number, text, whole

SCHEMA = 1
BACKENDS = ("cuda", "emulated", "fake")
ROLES = ("fit", "holdout", "anchor")
UNSAID = frozenset({"context_sum", "context_max", "head_dim", "hidden", "intermediate"})
RECORD = "type"
"""The key that says which record a line is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Env:
    """The machine and the build that measured. `fields` is the record as it was written."""

    backend: str
    device: str
    uuid_hash: str
    source_sha256: str
    sm_count: int
    l2_bytes: int
    fields: Mapping[str, Any]

    @property
    def emulated(self) -> bool:
        """No GPU took these times, whatever the device calls itself."""
        return self.backend != "cuda" or self.device.strip().lower().split(" ")[0] in ("fake", "emulated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measured operation. `verified` None: it computes nothing that could be checked."""

    line: int
    bench: str
    variant: str
    params: Mapping[str, Any]
    role: str
    median_s: float
    p10_s: float
    p90_s: float
    bytes: int
    flops: int
    verified: bool | None
    t_offset_s: float
    fields: Mapping[str, Any]

    @property
    def label(self) -> str:
        """For people: the bench, the variant and the sizes, but those that follow from others or hold everywhere."""
        sizes = ", ".join(f"{name} {value}" for name, value in self.params.items() if name not in UNSAID)
        return f"{self.bench} {self.variant}: {sizes}"


@dataclass(frozen=True, slots=True)
class End:
    """A run came to its end: how many points it wrote, how many failed, and whether none was skipped."""

    points: int
    failed: int
    complete: bool


@dataclass(slots=True)
class Run:
    """One run of the harness; `end` None: it was cut short."""

    env: Env
    points: list[Point] = field(default_factory=list)
    skipped: list[Mapping[str, Any]] = field(default_factory=list)
    errors: list[Mapping[str, Any]] = field(default_factory=list)
    end: End | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """A file of results: its runs, at least one, and the SHA-256 of its bytes."""

    path: Path
    sha256: str
    runs: Sequence[Run]

    @property
    def points(self) -> list[Point]:
        """Of all runs, in file order."""
        return [point for run in self.runs for point in run.points]


def read_results(path: Path) -> Results:
    """The results in a JSON Lines file. Raises InputError naming file and line, what is wrong, what would be right."""
    try:
        written = path.read_bytes()
        lines = written.decode("utf-8").splitlines()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); give a file that `kvsim calibrate run` wrote"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is no text in UTF-8; give a file that `kvsim calibrate run` wrote") from None
    runs: list[Run] = []
    for number_of_line, record in _records(path, lines):
        try:
            _take(runs, number_of_line, record)
        except InputError as error:
            raise InputError(f"{path}, line {number_of_line}: {error}") from None
    if not runs:
        raise InputError(f"{path}: holds no record; give a file that `kvsim calibrate run` wrote")
    return Results(path, sha256(written).hexdigest(), runs)


def _records(path: Path, lines: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for at, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            cut = "; the file may be cut short" if at == len(lines) else ""
            raise InputError(
                f"{path}, line {at}: is no JSON ({error}){cut}; every line must be one JSON object"
            ) from None
        if not isinstance(record, dict):
            raise InputError(f"{path}, line {at}: is a {type(record).__name__}; every line must be one JSON object")
        yield at, record


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON; write null")


def _take(runs: list[Run], line: int, record: dict[str, Any]) -> None:
    kind = record.get(RECORD)
    if kind == "env":
        runs.append(Run(_env(record)))
        return
    if kind not in ("point", "skip", "error", "end"):
        raise InputError(f"{RECORD} is {kind!r}; it must be env, point, skip, error or end")
    if not runs and kind == "error":
        raise InputError(f"nothing was measured: {text(record, 'message')}")
    if not runs:
        raise InputError(f"is a {kind} before any env; a run begins with its env record")
    run = runs[-1]
    if run.end is not None:
        raise InputError(f"is a {kind} after the end of its run; another run begins with an env record")
    if kind == "point":
        run.points.append(_point(line, record))
    elif kind == "skip":
        run.skipped.append({"bench": text(record, "bench"), "reason": text(record, "reason")})
    elif kind == "error":
        run.errors.append({"bench": text(record, "bench"), "message": text(record, "message")})
    else:
        run.end = End(whole(record, "points"), whole(record, "failed"), flag(record, "complete") is True)


def _env(record: Mapping[str, Any]) -> Env:
    schema = whole(record, "schema")
    if schema != SCHEMA:
        raise InputError(f"schema is {schema}; this kvsim reads {SCHEMA}, take the one that measured")
    return Env(
        backend=text(record, "backend", BACKENDS),
        device=text(record, "device"),
        uuid_hash=text(record, "uuid_hash", empty=True),
        source_sha256=text(record, "source_sha256"),
        sm_count=whole(record, "sm_count", least=1),
        l2_bytes=whole(record, "l2_bytes"),
        fields={name: value for name, value in record.items() if name != RECORD},
    )


def _point(line: int, record: Mapping[str, Any]) -> Point:
    bench, variant = text(record, "bench"), text(record, "variant")
    params = record.get("params")
    if not isinstance(params, dict):
        raise InputError(f"params is {params!r}; it must be an object of the sizes of {bench}")
    check_params(bench, variant, params)
    median, p10, p90 = (number(record, name, positive=True) for name in ("median_s", "p10_s", "p90_s"))
    if not p10 <= median <= p90 or not math.isfinite(p90):
        raise InputError(f"p10_s {p10}, median_s {median} and p90_s {p90} are not in order; they must be")
    return Point(
        line=line,
        bench=bench,
        variant=variant,
        params=params,
        role=text(record, "role", ROLES),
        median_s=median,
        p10_s=p10,
        p90_s=p90,
        bytes=whole(record, "bytes"),
        flops=whole(record, "flops"),
        verified=flag(record, "verified", null=True),
        t_offset_s=number(record, "t_offset_s"),
        fields={name: value for name, value in record.items() if name not in (RECORD, "params")},
    )

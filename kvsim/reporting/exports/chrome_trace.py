"""A run as a timeline for Perfetto and chrome://tracing: requests, steps, memory, in the Trace Event Format.

The format: docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. Times are whole microseconds since
the run began. Events lie in three processes: requests (a thread for each of as many as are in the system at once, each
request in the lowest that is free), the engine (a complete event a step, or a leap over several equal ones) and the
KV memory (counters, and an instant for each allocation that could not be met). The order of events is not that of time,
which the format leaves open.
"""

import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kvsim.metrics.result import Result
from kvsim.reporting.exports.interface import Export, Files, Options, Source
from kvsim.reporting.exports.rows import named_rows
from kvsim.step import CLASSES

REQUESTS, ENGINE, MEMORY = 1, 2, 3
"""Process ids, in the order in which they are shown."""
PROCESSES = {REQUESTS: "requests", ENGINE: "engine", MEMORY: "KV memory"}
STEPS, BLOCKED = 1, 1
"""Threads of the engine and of the memory."""
US_PER_S = 1e6

STEP_COLUMNS = ("start_s", "duration_s", "steps", "prefill_tokens", "decode_tokens", "padding_tokens",
                "context_tokens", "running", "waiting")  # fmt: skip
REQUEST_COLUMNS = ("arrival_s", "first_scheduled_s", "first_token_s", "end_s")
TOLD = ("prompt_tokens", "generated_tokens", "hit_tokens", "end", "finish_reason", "preemptions", "recomputed_tokens",
        "tenant", "slo_class", "session", "turn")  # fmt: skip
"""What is told of a request when it is clicked on, where there is anything to tell."""
BLOCKED_COLUMNS = ("time_s", "request", "cause", "outcome", "need_tokens", "free_tokens", "largest_hole_tokens")

Event = dict[str, Any]
Span = tuple[int, int]


def _files(source: Source, options: Options) -> Files:
    result = source.recorded(CHROME_TRACE.name, "requests", "steps", "memory", "events", "preemptions")
    yield "trace.json", _lines(result)


def _lines(result: Result) -> Iterator[str]:
    head = {
        "displayTimeUnit": "ms",
        "otherData": {
            "name": result.name,
            "producer": f"kvsim {result.version}",
            "seed": result.seed,
            **{f"provenance of {family}": text for family, text in result.provenance.items()},
            "not modelled": "; ".join(result.not_modelled),
        },
    }
    yield json.dumps(head)[:-1] + ', "traceEvents": [\n'
    first = True
    for event in trace_events(result):
        yield ("" if first else ",\n") + json.dumps(event, separators=(",", ":"))
        first = False
    yield "\n]}\n"


def trace_events(result: Result) -> Iterator[Event]:
    """Every event of a run whose tables were recorded: metadata, steps, memory, requests, what was blocked."""
    for pid, name in PROCESSES.items():
        yield _metadata("process_name", pid, 0, name=name)
        yield _metadata("process_sort_index", pid, 0, sort_index=pid)
    yield _metadata("thread_name", ENGINE, STEPS, name="steps")
    yield _metadata("thread_name", MEMORY, BLOCKED, name="allocations that could not be met")
    yield from _steps(result)
    yield from _memory(result)
    yield from _blocked(result)
    yield from _requests(result)


def microseconds(time_s: float) -> int:
    """Whole microseconds; the order of times stays, so that what touches or lies within goes on doing so."""
    return round(time_s * US_PER_S)


def _metadata(kind: str, pid: int, tid: int, **args: object) -> Event:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": args}


def _complete(name: str, category: str, pid: int, tid: int, span: Span, args: Mapping[str, object]) -> Event:
    begin, end = span
    return {"name": name, "cat": category, "ph": "X", "ts": begin, "dur": end - begin, "pid": pid, "tid": tid,
            "args": dict(args)}  # fmt: skip


def _steps(result: Result) -> Iterator[Event]:
    for row in named_rows(result.tables["steps"], STEP_COLUMNS):
        start_s, told = row.pop("start_s"), row
        # The end is taken from the sum: rounding the length by itself would let neighbours overlap.
        span = microseconds(start_s), microseconds(start_s + told.pop("duration_s"))
        yield _complete(_kind_of_step(told), "step", ENGINE, STEPS, span, told)


def _kind_of_step(told: Mapping[str, int]) -> str:
    if not told["steps"]:
        return "cut by the horizon"
    computed = [kind for kind in ("prefill", "decode") if told[f"{kind}_tokens"]]
    return " + ".join(computed) or "nothing computed"


def _memory(result: Result) -> Iterator[Event]:
    counts = ("running", "waiting")
    for row in named_rows(result.tables["memory"], ("time_s", *CLASSES, *counts, "host")):
        at = {"ph": "C", "ts": microseconds(row["time_s"]), "pid": MEMORY, "tid": 0}
        yield {
            "name": "KV memory by class (tokens)",
            "cat": "memory",
            **at,
            "args": {name: row[name] for name in CLASSES},
        }
        yield {"name": "sequences", "cat": "memory", **at, "args": {name: row[name] for name in counts}}
        if row["host"]:
            yield {"name": "in host memory (tokens)", "cat": "memory", **at, "args": {"host": row["host"]}}


def _blocked(result: Result) -> Iterator[Event]:
    for row in named_rows(result.tables["events"], BLOCKED_COLUMNS):
        time_s, outcome, cause = (row.pop(name) for name in ("time_s", "outcome", "cause"))
        yield _instant(f"{outcome}: {cause}", "blocked", MEMORY, BLOCKED, microseconds(time_s), row)


def _instant(name: str, category: str, pid: int, tid: int, time_us: int, args: Mapping[str, object]) -> Event:
    return {"name": name, "cat": category, "ph": "i", "s": "t", "ts": time_us, "pid": pid, "tid": tid,
            "args": dict(args)}  # fmt: skip


def _requests(result: Result) -> Iterator[Event]:
    table = result.tables["requests"]
    losses = _losses(result.tables["preemptions"])
    columns = {name: table[name] for name in ("id", *REQUEST_COLUMNS, *TOLD)}
    arrivals = columns["arrival_s"]
    lanes = _Lanes()
    for place in sorted(range(len(arrivals)), key=arrivals.__getitem__):
        row = {name: _plain(column[place]) for name, column in columns.items()}
        begin, end = (microseconds(row[name]) for name in ("arrival_s", "end_s"))
        lane = lanes.take(begin, end)
        if lanes.new:
            yield _metadata("thread_name", REQUESTS, lane, name=f"request slot {lane}")
        number, own = row["id"], losses.get(row["id"], [])
        told = {name: row[name] for name in TOLD if row[name] not in (None, 0)}
        yield _complete(f"request {number}", "request", REQUESTS, lane, (begin, end), told)
        for phase, span, args in _phases(row, own):
            yield _complete(phase, "phase", REQUESTS, lane, span, args)
        for loss in own:
            tokens = {name: loss[name] for name in ("lost_tokens", "swapped_tokens")}
            yield _instant("preempted", "preemption", REQUESTS, lane, microseconds(loss["time_s"]), tokens)


def _phases(row: Mapping[str, Any], losses: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Span, Event]]:
    """What a request was doing when, one phase after the other from its arrival to its end.

    A request of several samples counts as preempted while any of them is.
    """
    arrival, end = microseconds(row["arrival_s"]), microseconds(row["end_s"])
    scheduled, token = (
        end if row[name] is None else microseconds(row[name]) for name in ("first_scheduled_s", "first_token_s")
    )
    if arrival < scheduled:
        yield "waiting", (arrival, scheduled), {}
    now, lost = scheduled, 0
    for loss in losses:
        left = microseconds(loss["time_s"])
        back = end if loss["resumed_s"] is None else microseconds(loss["resumed_s"])
        yield from _at_work(now, left, token, lost)
        if max(left, now) < back:
            yield "preempted", (max(left, now), back), {}
        now, lost = max(now, back), lost + loss["lost_tokens"]
    yield from _at_work(now, end, token, lost)


def _at_work(begin: int, end: int, token: int, lost_tokens: int) -> Iterator[tuple[str, Span, Event]]:
    """The time in which it runs, cut where its first token comes."""
    args = {"computes_again_tokens": lost_tokens} if lost_tokens else {}
    for phase, since, until in (("prefill", begin, min(end, token)), ("decode", max(begin, token), end)):
        if since < until:
            yield phase, (since, until), args


def _losses(table: Mapping[str, Sequence[Any]]) -> dict[int, list[Event]]:
    """The preemptions of each request, in the order of time."""
    found: dict[int, list[Event]] = {}
    for row in named_rows(table, ("time_s", "resumed_s", "request", "lost_tokens", "swapped_tokens")):
        found.setdefault(row.pop("request"), []).append(row)
    return found


class _Lanes:
    """Gives each of some requests, in the order of arrival, the lowest lane in which no other one is any more."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._busy: list[tuple[int, int]] = []
        self._used = 0
        self.new = False
        """The lane that was taken last had never been taken before."""

    def take(self, begin: int, end: int) -> int:
        """The lane of a request that is there from `begin` to `end`. Mutates."""
        while self._busy and self._busy[0][0] <= begin:
            heapq.heappush(self._free, heapq.heappop(self._busy)[1])
        self.new = not self._free
        if self.new:
            self._used += 1
        lane = self._used if self.new else heapq.heappop(self._free)
        heapq.heappush(self._busy, (end, lane))
        return lane


def _plain(value: Any) -> Any:
    """A number of numpy's as one of Python's, which JSON knows."""
    return value.item() if hasattr(value, "item") else value


CHROME_TRACE = Export(
    name="chrome-trace",
    meaning="a timeline for ui.perfetto.dev and chrome://tracing: requests, steps, memory, preemptions",
    files=_files,
)

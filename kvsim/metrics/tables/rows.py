"""From records to rows: plain columns, of all records or of some; those of `columns.COLUMNS`.

Times are in seconds, lengths in tokens, None stands for what does not exist.
"""

from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from kvsim.content import LAYERS
from kvsim.metrics.memory import SERIES, AddressLog
from kvsim.metrics.prefix.prompts import PromptLog
from kvsim.metrics.requests import Ended, Event, Loss, whose
from kvsim.request import PS_PER_S
from kvsim.step import CLASSES

Table = dict[str, list[Any]]

_WIDTH = len(SERIES)


def request_rows(ended: Sequence[Ended], replicas: Mapping[int, int] | None = None) -> Table:
    """A row for each, in the order of id; `replicas` says by id which one it came to (None: there is one)."""
    records = sorted(ended)
    return {
        "id": [r.id for r in records],
        "arrival_s": [r.arrival_ps / PS_PER_S for r in records],
        "prompt_tokens": [r.prompt_tokens for r in records],
        "output_tokens": [r.output_tokens for r in records],
        "max_tokens": [r.max_tokens for r in records],
        "priority": [r.priority for r in records],
        "tenant": [r.tenant or None for r in records],
        "slo_class": [r.slo_class or None for r in records],
        "session": [r.session for r in records],
        "turn": [r.turn for r in records],
        "first_scheduled_s": [_seconds(r.first_scheduled_ps) for r in records],
        "first_token_s": [_seconds(r.first_token_ps) for r in records],
        "end_s": [r.end_ps / PS_PER_S for r in records],
        "end": [r.end for r in records],
        "finish_reason": [r.finish_reason for r in records],
        "generated_tokens": [r.generated_tokens for r in records],
        "preemptions": [r.preemptions for r in records],
        "lost_tokens": [r.lost_tokens for r in records],
        "recomputed_tokens": [r.recomputed_tokens for r in records],
        "swapped_tokens": [r.swapped_tokens for r in records],
        "hit_tokens": [r.hit_tokens for r in records],
        "rehit_tokens": [r.rehit_tokens for r in records],
        **{f"hit_{layer}_tokens": [r.hit_layers[place] for r in records] for place, layer in enumerate(LAYERS)},
        "regret_tokens": [r.regret_tokens for r in records],
        "samples": [r.samples for r in records],
        "queue_s": [_seconds(r.queue_ps) for r in records],
        "prefill_s": [_seconds(r.prefill_ps) for r in records],
        "ttft_s": [_seconds(r.ttft_ps) for r in records],
        "tpot_s": [_seconds(r.tpot_ps) for r in records],
        "e2e_s": [(r.end_ps - r.arrival_ps) / PS_PER_S for r in records],
        "replica": [0 if replicas is None else replicas[r.id] for r in records],
    }


def _seconds(time_ps: float | None) -> float | None:
    return None if time_ps is None else time_ps / PS_PER_S


def _columns(series: "array[int]") -> dict[str, list[int]]:
    return {name: series[index::_WIDTH].tolist() for index, name in enumerate(SERIES)}


def step_rows(series: "array[int]") -> Table:
    """A row for each step or leap of the record of steps."""
    rows = _columns(series)
    counts, decodes = rows["steps"], rows["decode_tokens"]
    return {
        "start_s": [start / PS_PER_S for start in rows["start_ps"]],
        "duration_s": [duration / PS_PER_S for duration in rows["duration_ps"]],
        "steps": counts,
        # A step that the horizon cut counts for none and computed nothing.
        "prefill_tokens": [p if k else 0 for p, k in zip(rows["prefill_tokens"], counts, strict=True)],
        "decode_tokens": [d * k for d, k in zip(decodes, counts, strict=True)],
        "padding_tokens": [p * k for p, k in zip(rows["padding_tokens"], counts, strict=True)],
        # Every row attends to one token more in each step of a leap, in which the only padding is whole rows.
        "context_tokens": [
            c * k + (d + p) * (k * (k - 1) // 2)
            for c, d, p, k in zip(rows["context_tokens"], decodes, rows["padding_tokens"], counts, strict=True)
        ],
        "running": rows["running"],
        "waiting": rows["waiting"],
        "request_s": [stay / PS_PER_S for stay in rows["stay_ps"]],
    }


class MemoryRows:
    """Levels from each row's time on, with rows for the idle stretches and one for the end."""

    def __init__(self, pool_slots: int, *, has_holes: bool) -> None:
        self._pool_slots = pool_slots
        self._has_holes = has_holes
        self._over_ps = 0

    def of(self, series: "array[int]", rests: Mapping[int, int], *, last: bool) -> Table:
        """The rows of what comes next of the record of steps, with that for the end of the run behind the `last`.

        `rests`: the slots that stay cached while nothing runs, by when that began, where there are any. Mutates.
        """
        rows = _columns(series)
        table: Table = {"time_s": [], **{name: [] for name in (*_LEVELS, "fragmentation", "unusable")}}
        emptied = deque(sorted(time_ps for time_ps, cached in rests.items() if not cached))
        for index, start_ps in enumerate(rows["start_ps"]):
            if start_ps > self._over_ps:
                self._rest(table, rests)
                self._empty(table, emptied, start_ps)
            self._add(table, start_ps, {name: rows[name][index] for name in (*_LEVELS, "rounding")})
            self._over_ps = start_ps + rows["duration_ps"][index]
        if last:
            self._rest(table, rests)
            self._empty(table, emptied, None)
        return table

    def _rest(self, table: Table, rests: Mapping[int, int]) -> None:
        self._idle(table, self._over_ps, rests.get(self._over_ps, 0))

    def _empty(self, table: Table, emptied: "deque[int]", until_ps: int | None) -> None:
        """A row for each time at which the cache was emptied while nothing ran, before `until_ps`. Uses them up."""
        while emptied and (until_ps is None or emptied[0] < until_ps):
            time_ps = emptied.popleft()
            if time_ps > self._over_ps:
                self._idle(table, time_ps, 0)

    def _idle(self, table: Table, time_ps: int, cached: int) -> None:
        free = self._pool_slots - cached
        levels = {"cached": cached, "free": free, "largest_hole": free}
        self._add(table, time_ps, dict.fromkeys((*_LEVELS, "rounding"), 0) | levels)

    def _add(self, table: Table, time_ps: int, levels: Mapping[str, int]) -> None:
        table["time_s"].append(time_ps / PS_PER_S)
        for name in _LEVELS:
            table[name].append(levels[name])
        free, holes = levels["free"] + levels["external"] - levels["rounding"], self._has_holes
        table["fragmentation"].append(1 - levels["largest_hole"] / free if free and holes else None)
        lost = levels["external"] - levels["rounding"]
        table["unusable"].append(lost / free if free and holes and levels["waiting"] else None)


_LEVELS = (*CLASSES, "running", "waiting", "host", "shared", "duplicate", "largest_hole")


def event_rows(events: Sequence[Event]) -> Table:
    """A row for each allocation that could not be met at once."""
    return {
        "time_s": [event.time_ps / PS_PER_S for event in events],
        "request": [event.request for event in events],
        "cause": [event.cause for event in events],
        "outcome": [event.outcome for event in events],
        "need_tokens": [event.need_slots for event in events],
        "free_tokens": [event.free_slots for event in events],
        "largest_hole_tokens": [event.largest_hole_slots for event in events],
    }


def preemption_rows(losses: Sequence[Loss]) -> Table:
    """A row for each preemption."""
    return {
        "time_s": [loss.time_ps / PS_PER_S for loss in losses],
        "resumed_s": [_seconds(loss.resumed_ps) for loss in losses],
        "request": [loss.request for loss in losses],
        "lost_tokens": [loss.tokens for loss in losses],
        "swapped_tokens": [loss.swapped_tokens for loss in losses],
    }


def prompt_rows(log: PromptLog) -> Table:
    """A row for each run of each prompt."""
    columns: dict[str, Any] = {
        "request": log.request,
        "start": log.start,
        "stream": log.stream,
        "offset": log.offset,
        "tokens": log.tokens,
    }
    return columns


def address_rows(log: AddressLog) -> Table:
    """A row for each change of what a run of slots holds."""
    owners = {sequence: whose(sequence) for sequence in set(log.sequence)}
    requests = [
        None if CLASSES[kind] in ("free", "cached") else owners[id_]
        for kind, id_ in zip(log.kind, log.sequence, strict=True)
    ]
    # Rows can be millions: numbers stay in typed arrays.
    columns: dict[str, Any] = {
        "time_s": array("d", (time_ps / PS_PER_S for time_ps in log.time_ps)),
        "start": log.start,
        "length": log.slots,
        "request": [owner and owner[0] for owner in requests],
        "sample": [owner and owner[1] for owner in requests],
        "class": [CLASSES[kind] for kind in log.kind],
    }
    return columns

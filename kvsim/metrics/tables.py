"""The records of a run as tables: plain columns, made when somebody asks for them."""

from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kvsim.content import LAYERS
from kvsim.metrics.memory import SERIES
from kvsim.metrics.requests import whose
from kvsim.metrics.summary import Run, prefill_ps, queue_ps, tpot_ps, ttft_ps
from kvsim.request import PS_PER_S
from kvsim.step import CLASSES

Table = dict[str, list[Any]]

_WIDTH = len(SERIES)


class Tables(Mapping[str, Table]):
    """ "requests", "steps", "memory", "events" and "preemptions" of a run, each built once, on first use.

    And "addresses", where they were recorded.

    The columns are those of `result.COLUMNS`; times in seconds, lengths in tokens, None for what does not exist.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._makers: dict[str, Callable[[Run], Table]] = {
            "requests": _requests,
            "steps": _steps,
            "memory": _memory,
            "events": _events,
            "preemptions": _preemptions,
        }
        if run.addresses is not None:
            self._makers["addresses"] = _addresses
        self._made: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._made:
            self._made[name] = self._makers[name](self._run)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def _requests(run: Run) -> Table:
    records = sorted(run.requests.ended)
    return {
        "id": [r.id for r in records],
        "arrival_s": [r.arrival_ps / PS_PER_S for r in records],
        "prompt_tokens": [r.prompt_tokens for r in records],
        "output_tokens": [r.output_tokens for r in records],
        "max_tokens": [r.max_tokens for r in records],
        "priority": [r.priority for r in records],
        "tenant": [r.tenant for r in records],
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
        "queue_s": [_seconds(queue_ps(r)) for r in records],
        "prefill_s": [_seconds(prefill_ps(r)) for r in records],
        "ttft_s": [_seconds(ttft_ps(r)) for r in records],
        "tpot_s": [_seconds(tpot_ps(r)) for r in records],
        "e2e_s": [(r.end_ps - r.arrival_ps) / PS_PER_S for r in records],
    }


def _seconds(time_ps: float | None) -> float | None:
    return None if time_ps is None else time_ps / PS_PER_S


def _columns(run: Run) -> dict[str, list[int]]:
    series = run.memory.series
    return {name: series[index::_WIDTH].tolist() for index, name in enumerate(SERIES)}


def _steps(run: Run) -> Table:
    rows = _columns(run)
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


def _memory(run: Run) -> Table:
    """Levels from each row's time on, with rows for the idle stretches and one for the end."""
    rows = _columns(run)
    names = (*CLASSES, "running", "waiting", "host", "shared", "duplicate", "largest_hole")
    table: Table = {"time_s": [], **{name: [] for name in (*names, "fragmentation", "unusable")}}
    pool, holes = run.memory.pool_slots, run.memory.has_holes

    def add(time_ps: int, levels: Mapping[str, int]) -> None:
        table["time_s"].append(time_ps / PS_PER_S)
        for name in names:
            table[name].append(levels[name])
        free = levels["free"] + levels["external"] - levels["rounding"]
        table["fragmentation"].append(1 - levels["largest_hole"] / free if free and holes else None)
        lost = levels["external"] - levels["rounding"]
        table["unusable"].append(lost / free if free and holes and levels["waiting"] else None)

    def rest(time_ps: int) -> None:
        cached = run.memory.rests.get(time_ps, 0)
        levels = {"cached": cached, "free": pool - cached, "largest_hole": pool - cached}
        add(time_ps, dict.fromkeys((*names, "rounding"), 0) | levels)

    over_ps = 0
    for index, start_ps in enumerate(rows["start_ps"]):
        if start_ps > over_ps:
            rest(over_ps)
        add(start_ps, {name: rows[name][index] for name in (*names, "rounding")})
        over_ps = start_ps + rows["duration_ps"][index]
    rest(over_ps)
    return table


def _events(run: Run) -> Table:
    events = run.requests.events
    return {
        "time_s": [event.time_ps / PS_PER_S for event in events],
        "request": [event.request for event in events],
        "cause": [event.cause for event in events],
        "outcome": [event.outcome for event in events],
        "need_tokens": [event.need_slots for event in events],
        "free_tokens": [event.free_slots for event in events],
        "largest_hole_tokens": [event.largest_hole_slots for event in events],
    }


def _preemptions(run: Run) -> Table:
    losses = run.requests.losses
    return {
        "time_s": [loss.time_ps / PS_PER_S for loss in losses],
        "request": [loss.request for loss in losses],
        "lost_tokens": [loss.tokens for loss in losses],
        "swapped_tokens": [loss.swapped_tokens for loss in losses],
    }


def _addresses(run: Run) -> Table:
    log = run.addresses
    assert log is not None
    owners = {sequence: whose(sequence) for sequence in set(log.sequence)}
    requests = [
        None if CLASSES[kind] == "free" else owners[id_] for kind, id_ in zip(log.kind, log.sequence, strict=True)
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

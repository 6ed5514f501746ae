"""Requests of any trace as Mooncake JSON lines (vLLM, SGLang, aiperf, Dynamo) or as Vidur's CSV.

What a form cannot say is counted in `Losses`, never made up: a request without a time of its own has none in Mooncake's
form (a later turn has its `delay`), and cannot be in Vidur's.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count

from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.workload.readers.request import BlockId, TraceRequest

_PS_PER_MS = PS_PER_S // 1000
_OWN = "\0own"
"""The scope of blocks that no other prompt has; no file's scope is written so."""


@dataclass
class Losses:
    """How many requests went out whole, and what was left behind by reason."""

    written: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    def note(self, reason: str) -> None:
        """Count one more. Mutates."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1


def mooncake_lines(requests: Iterable[TraceRequest], losses: Losses, block_tokens: int = 0) -> Iterator[str]:
    """One JSON object a request, times from the first request's in milliseconds, ids renumbered from 0 in order.

    `block_tokens` is the size of the trace's blocks, 0 where it has none; the first line has it. Whole blocks of a
    prompt that have no ids get ids like no other's, as the form wants an id a block. InputError where a request has
    blocks of another size, which the form cannot say.
    """
    numbers: dict[BlockId, int] = {}
    own = count()
    first_ps: int | None = None
    for request in _whole(requests, losses):
        row: dict[str, object] = {}
        if request.session:
            row["session_id"] = request.session
        turns = [link for link in request.after if link.relation == "turn"]
        if request.arrival_ps is not None:
            first_ps = request.arrival_ps if first_ps is None else first_ps
            row["timestamp"] = _number(request.arrival_ps - first_ps, _PS_PER_MS)
        elif not turns:
            losses.note("a call with no time, and none to wait for: written without either")
        if turns and turns[0].trigger == "end" and turns[0].delay_ps is not None:
            row["delay"] = _number(turns[0].delay_ps, _PS_PER_MS)
        if len(request.after) > len(turns):
            losses.note("a call that also waits for other sessions: that wait was left out")
        row |= {"input_length": request.prompt_tokens, "output_length": request.output_tokens}
        if block_tokens:
            if request.blocks and request.block_tokens != block_tokens:
                raise InputError(
                    f"{request.id}: has blocks of {request.block_tokens} tokens where others have {block_tokens}; "
                    "Mooncake's form has one size for all"
                )
            if not losses.written:
                row["block_size"] = block_tokens
            blocks: list[BlockId] = list(request.keyed_blocks)
            blocks += [(_OWN, next(own)) for _ in range(request.prompt_tokens // block_tokens - len(blocks))]
            row["hash_ids"] = [numbers.setdefault(block, len(numbers)) for block in blocks]
        if request.priority:
            row["priority"] = request.priority
        losses.written += 1
        yield json.dumps(row) + "\n"


def vidur_lines(requests: Iterable[TraceRequest], losses: Losses, block_tokens: int = 0) -> Iterator[str]:
    """A header, and a line a request in file order, times in seconds from the first request's.

    A trace without any times becomes one of lengths alone.
    """
    first_ps: int | None = None
    timed: bool | None = None
    for request in _whole(requests, losses):
        if timed is None:
            timed = request.arrival_ps is not None
            yield ("arrived_at," if timed else "") + "num_prefill_tokens,num_decode_tokens\n"
        if request.blocks:
            losses.note("a call with ids of prefix blocks: they were left out")
        time = ""
        if timed:
            if request.arrival_ps is None:
                losses.note("a call with no time of its own: left out")
                continue
            first_ps = request.arrival_ps if first_ps is None else first_ps
            time = f"{_number(request.arrival_ps - first_ps, PS_PER_S)},"
        losses.written += 1
        yield f"{time}{request.prompt_tokens},{request.output_tokens}\n"


WRITERS: dict[str, Callable[[Iterable[TraceRequest], Losses, int], Iterator[str]]] = {
    "mooncake": mooncake_lines,
    "vidur": vidur_lines,
}
"""Writers by the name of the form."""


def _whole(requests: Iterable[TraceRequest], losses: Losses) -> Iterator[TraceRequest]:
    for request in requests:
        if request.failed:
            losses.note("a failed call: left out")
        else:
            yield request


def _number(time_ps: int, unit_ps: int) -> int | float:
    """Whole where it is whole; else the nearest number of six digits behind the point."""
    whole, rest = divmod(time_ps, unit_ps)
    return whole if not rest else float(round(Decimal(time_ps) / unit_ps, 6))

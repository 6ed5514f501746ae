"""LLMServingSim traces: JSON lines of nanoseconds and tokens, a request a line or a session a line.

A request may have its token ids, of which blocks are made here. A session has `sub_requests`, each with its whole
prompt and with how long a tool ran behind it (`tool_duration_ns`). From github.com/casys-kaist/LLMServingSim.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kvsim.workload.readers.base import BaseReader
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Identity, Intake, Scope
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.readers.request import After, TraceRequest
from kvsim.workload.readers.values.chain import BLOCK_TOKENS, chained_blocks

_TIME, _PROMPT, _OUTPUT, _IDS = "arrival_time_ns", "input_toks", "output_toks", "input_tok_ids"
_TURNS, _TOOL, _SESSION = "sub_requests", "tool_duration_ns", "session_id"
_NANOSECONDS = 9
_RIGHT = "write nanoseconds, 0 or more"


class LlmServingSimReader(BaseReader):
    """Later turns of a session have no time of their own: they come when the tool is done."""

    format: ClassVar[str] = "llmservingsim"
    columns: ClassVar[tuple[str, ...]] = (_TIME, _PROMPT, _OUTPUT)
    time_unit: ClassVar[str] = "nanoseconds"
    prefix_identity: ClassVar[Identity] = "real"
    hash_scope: ClassVar[Scope] = "global"

    def recognises(self, head: Head) -> bool:
        """A time and a length, or a time and turns."""
        return _TIME in head.keys and bool({_PROMPT, _TURNS} & head.keys)

    def identity(self, source: Source, options: ReadOptions) -> Identity:
        """Real where the first row has its token ids."""
        return "real" if _IDS in source.head.keys else "absent"

    def block_tokens(self, source: Source) -> int:
        """Blocks are made here."""
        return BLOCK_TOKENS

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Calls in file order; those of a session one behind the other."""
        for row in json_lines.objects(source.lines(), intake):
            time_ps = json_lines.read_time_ps(row, _TIME, _NANOSECONDS, _RIGHT, intake)
            if time_ps is None:
                continue
            if _TURNS in row:
                yield from _session(row, time_ps, intake)
                continue
            prompt = json_lines.read_count(row, _PROMPT, "prompt", intake)
            output = prompt and json_lines.read_count(row, _OUTPUT, "output", intake)
            if not output:
                continue
            request = TraceRequest(str(intake.row), prompt, output, time_ps)
            ids = row.get(_IDS)
            if ids is not None:
                if not isinstance(ids, list) or len(ids) != prompt or not all(type(id) is int for id in ids):
                    intake.bad(_IDS, ids, f"no list of {prompt} token ids", "write one id a prompt token")
                    continue
                size = intake.options.block_tokens or BLOCK_TOKENS
                request.blocks, request.block_tokens = chained_blocks(ids, size), size
            yield request


def _session(row: dict[str, Any], time_ps: int, intake: Intake) -> Iterator[TraceRequest]:
    turns = row[_TURNS]
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, dict) for turn in turns):
        intake.bad(_TURNS, turns, "no list of calls", "write a list of objects, one a call")
        return
    session = f"{row.get(_SESSION, '')}#{intake.row}"
    before, delay_ps = "", 0
    for number, turn in enumerate(turns):
        prompt = json_lines.read_count(turn, _PROMPT, "prompt", intake)
        output = prompt and json_lines.read_count(turn, _OUTPUT, "output", intake)
        tool_ps = json_lines.read_time_ps({_TOOL: 0} | turn, _TOOL, _NANOSECONDS, _RIGHT, intake) if output else None
        if tool_ps is None or tool_ps < 0:
            if tool_ps is not None:
                intake.bad(_TOOL, turn[_TOOL], "a negative duration", _RIGHT)
            # What comes behind a call that is left out hangs in the air.
            return
        request = TraceRequest(f"{intake.row}.{number}", prompt, output, session=session)
        if before:
            request.after = (After(before, delay_ps),)
        else:
            request.arrival_ps = time_ps
        before, delay_ps = request.id, tool_ps
        yield request

"""Applied Compute's agentic traces: a JSON line per agent, told by how much each turn adds.

`input_prompt_length` starts it; every turn is an answer (`assistant_response_length`), a tool's output that joins the
prompt (`tool_call_output_length`) and how long the tool ran (`tool_call_latency`, seconds); a last answer ends it.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, ClassVar

from kvsim.workload.readers.base import BaseReader
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import After, TraceRequest
from kvsim.workload.readers.values.times import ps_of

_TURNS, _FIRST, _LAST = "num_turns", "input_prompt_length", "final_assistant_response_length"
_ANSWERS, _TOOLS, _WAITS = "assistant_response_length", "tool_call_output_length", "tool_call_latency"
_SECONDS = 0


class AppliedComputeReader(BaseReader):
    """Agents have no times: when they begin is up to whoever replays them."""

    format: ClassVar[str] = "applied-compute"
    columns: ClassVar[tuple[str, ...]] = (_TURNS, _FIRST, _ANSWERS)
    time_unit: ClassVar[str] = "seconds"

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Calls in file order, those of an agent one behind the other; prompts are sums."""
        for row in json_lines.objects(source.lines(), intake):
            lists = _lists(row, intake)
            if lists is None:
                continue
            answers, tools, waits = lists
            held, before, delay_ps = 0, "", 0
            added = json_lines.read_count(row, _FIRST, "prompt", intake)
            for number, answer in enumerate(answers):
                if not added:
                    break
                request = TraceRequest(f"{intake.row}.{number}", held + added, answer, session=str(intake.row))
                request.new_prompt_tokens = added
                if before:
                    request.after = (After(before, delay_ps),)
                else:
                    request.session_time_ps = 0
                before, held = request.id, request.prompt_tokens + answer
                yield request
                if number < len(tools):
                    added, delay_ps = tools[number], waits[number]


def _lists(row: dict[str, Any], intake: Intake) -> tuple[list[int], list[int], list[int]] | None:
    """Answers, tool outputs (tokens) and waits (picoseconds); None after the row was handed to `intake.bad`."""
    turns = row.get(_TURNS)
    found: dict[str, list[Any]] = {}
    for column in (_ANSWERS, _TOOLS, _WAITS):
        values = row.get(column, [])
        if not isinstance(values, list) or len(values) != turns:
            intake.bad(column, values, f"no list of {_TURNS} = {turns} numbers", "write one number a turn")
            return None
        found[column] = values
    answers = [json_lines.read_count({_ANSWERS: one}, _ANSWERS, "output", intake) for one in found[_ANSWERS]]
    tools = [json_lines.read_count({_TOOLS: one}, _TOOLS, "prompt", intake) for one in found[_TOOLS]]
    waits = [ps_of(one, _SECONDS) if isinstance(one, int | Decimal) else None for one in found[_WAITS]]
    if row.get(_LAST) is not None:
        answers.append(json_lines.read_count(row, _LAST, "output", intake))
    if not all(answers) or not all(tools):
        return None
    good = [wait for wait in waits if wait is not None and wait >= 0]
    if len(good) < len(waits):
        intake.bad(_WAITS, row[_WAITS], "not all are seconds, 0 or more", "write seconds")
        return None
    return answers, tools, good

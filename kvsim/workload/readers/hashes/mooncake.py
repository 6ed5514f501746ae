"""Mooncake traces: JSON lines of milliseconds, tokens, and ids of the prompt's prefix blocks.

Published at github.com/kvcache-ai/Mooncake (FAST25-release). Ids are prefix hashes, made small, of one namespace for
the file: equal ids mean equal tokens behind an equal prefix. Others (aiperf, Dynamo) write the same form with other
blocks (`block_size`), with `session_id` and `delay` (milliseconds after the session's last answer, in place of a time
or beside it), with `priority` and `request_id`, and with rows that tell only what they add to their session.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kvsim.workload.readers.base import BaseReader, Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Call, Identity, Intake, Prompt, Row, Scope
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.readers.request import TraceRequest

_TIME, _PROMPT, _OUTPUT, _IDS, _BLOCK = "timestamp", "input_length", "output_length", "hash_ids", "block_size"
_SESSION, _DELAY, _ID, _PRIORITY = "session_id", "delay", "request_id", "priority"
_RIGHT = "write a number; a turn that waits for its session's last answer (`delay`) needs a time of its own too"
_RIGHT_DELAY = "write milliseconds, 0 or more"
_DELTA_NOTE = "prompts are sums of what their sessions' rows add, answers included; ids of blocks were left out"


class MooncakeReader(BaseReader):
    """Keys are found by name; those that are not read are left alone."""

    format: ClassVar[str] = "mooncake"
    columns: ClassVar[tuple[str, ...]] = (_TIME, _PROMPT, _OUTPUT, _IDS)
    time_unit: ClassVar[str] = "milliseconds"
    prefix_identity: ClassVar[Identity] = "real"
    hash_scope: ClassVar[Scope] = "global"
    _published_block_tokens: ClassVar[int] = 512
    """README of the release; its files do not say."""
    _unit_digits: ClassVar[int] = 3

    def recognises(self, head: Head) -> bool:
        """Lengths under these names, of no other format: time or ids may be missing, and the message says so."""
        others = {"chat_id", "type", "play_id", "dependencies"}
        return {_PROMPT, _OUTPUT} <= head.keys and not others & head.keys

    def rows(self, source: Source, intake: Intake) -> Iterator[Row]:
        """Rows in file order; ids are not looked at."""
        if intake.options.prompts == "delta":
            yield from super().rows(source, intake)
            return
        for row in json_lines.objects(source.lines(), intake):
            if (call := self._call(row, intake)) is not None:
                yield call

    def calls(self, source: Source, intake: Intake, block_tokens: int) -> Iterator[Call]:
        """Rows in file order, with the ids of their prompts."""
        if intake.options.prompts == "delta":
            yield from super().calls(source, intake, block_tokens)
            return
        for row in json_lines.objects(source.lines(), intake):
            call = self._call(row, intake)
            ids = call and json_lines.read_ids(row, _IDS, call[1], block_tokens, intake)
            if call is not None and ids is not None:
                yield Call(call, tuple(ids), _session(row))

    def _call(self, row: dict[str, Any], intake: Intake) -> Row | None:
        time_ps = json_lines.read_time_ps(row, _TIME, self._unit_digits, _RIGHT, intake)
        if time_ps is None:
            return None
        prompt = json_lines.read_count(row, _PROMPT, "prompt", intake)
        output = prompt and json_lines.read_count(row, _OUTPUT, "output", intake)
        return (time_ps, prompt, output) if output else None

    def identity(self, source: Source, options: ReadOptions) -> Identity:
        """Real where the first row has ids and whole prompts."""
        return "real" if _IDS in source.head.keys and options.prompts == "whole" else "absent"

    def block_tokens(self, source: Source) -> int:
        """`block_size` of the first row, else as published."""
        said = source.head.row.get(_BLOCK)
        return said if type(said) is int and said > 0 else self._published_block_tokens

    def prompts(self, source: Source, intake: Intake, block_tokens: int) -> Iterator[Prompt]:
        """Prompts in file order; times and outputs are not looked at."""
        for row in json_lines.objects(source.lines(), intake):
            prompt = json_lines.read_count(row, _PROMPT, "prompt", intake)
            if prompt:
                ids = json_lines.read_ids(row, _IDS, prompt, block_tokens, intake)
                if ids is not None:
                    yield Prompt(prompt, tuple(ids))

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Calls in file order; a row without ids shares nothing that anybody knows of."""
        size = intake.options.block_tokens or self.block_tokens(source)
        links = Links(intake)
        held: dict[str, int] = {}
        for row in json_lines.objects(source.lines(), intake):
            prompt = json_lines.read_count(row, _PROMPT, "prompt", intake)
            output = prompt and json_lines.read_count(row, _OUTPUT, "output", intake)
            if not output:
                continue
            request = TraceRequest(str(intake.row), prompt, output)
            if not self._add_identity(request, row, size, intake):
                continue
            if not self._add_links(request, row, links, intake):
                continue
            if intake.options.prompts == "delta" and request.session:
                _accumulate(request, held)
                intake.note(_DELTA_NOTE)
            yield request

    def _add_identity(self, request: TraceRequest, row: dict[str, Any], size: int, intake: Intake) -> bool:
        if row.get(_IDS) is not None:
            ids = json_lines.read_ids(row, _IDS, request.prompt_tokens, size, intake)
            if ids is None:
                return False
            request.blocks, request.block_tokens = tuple(ids), size
        return True

    def _add_links(self, request: TraceRequest, row: dict[str, Any], links: Links, intake: Intake) -> bool:
        """Id, session, priority and times; whether the row is good. Mutates."""
        if row.get(_ID) is not None:
            request.id = str(row[_ID])
            if not links.is_new(request.id, _ID):
                return False
        priority = row.get(_PRIORITY, 0)
        if type(priority) is not int:
            intake.bad(_PRIORITY, priority, "not a whole number", "write a whole number")
            return False
        request.priority = priority
        request.session = _session(row)
        waits = request.session and row.get(_DELAY) is not None and links.last(request.session) is not None
        delay_ps = None
        if waits:
            read_ps = json_lines.read_time_ps(row, _DELAY, self._unit_digits, _RIGHT_DELAY, intake)
            if read_ps is None or read_ps < 0:
                if read_ps is not None:
                    intake.bad(_DELAY, row[_DELAY], "a negative delay", _RIGHT_DELAY)
                return False
            delay_ps = read_ps
        if row.get(_TIME) is not None or not waits:
            request.arrival_ps = json_lines.read_time_ps(row, _TIME, self._unit_digits, _RIGHT, intake)
            if request.arrival_ps is None:
                return False
        if request.session:
            request.after = links.goes_on(request.session, request.id, delay_ps)
        return True


def _session(row: dict[str, Any]) -> str:
    return "" if row.get(_SESSION) is None else str(row[_SESSION])


def _accumulate(request: TraceRequest, held: dict[str, int]) -> None:
    """Put the session's history in front of what a row adds. Mutates."""
    added = request.prompt_tokens
    request.new_prompt_tokens = added
    request.prompt_tokens = held.get(request.session, 0) + added
    held[request.session] = request.prompt_tokens + request.output_tokens
    # Blocks of an addition do not lie where the prompt's blocks do.
    request.blocks, request.block_tokens = (), 0

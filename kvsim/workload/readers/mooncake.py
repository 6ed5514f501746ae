"""Mooncake traces: JSON lines of milliseconds, tokens, and ids of the prompt's prefix blocks.

Published at github.com/kvcache-ai/Mooncake (FAST25-release). Ids are prefix hashes, made small, of one namespace for
the file: equal ids mean equal tokens behind an equal prefix. Others write the same form with other blocks, with
`session_id`, `delay` (milliseconds after the session's last answer, in place of a time) or `priority`: these are not
read, and a prompt is taken as it stands, not as an addition to its session's last.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kvsim.workload.readers import json_lines
from kvsim.workload.readers.interface import BlockId, Identity, Intake, Prompt, Row

_TIME, _PROMPT, _OUTPUT, _IDS, _BLOCK = "timestamp", "input_length", "output_length", "hash_ids", "block_size"
_RIGHT = "write a number; a turn that waits for its session's last answer (`delay`) needs a time of its own too"


class MooncakeReader:
    """Keys are found by name; those that are not read are left alone."""

    format: ClassVar[str] = "mooncake"
    columns: ClassVar[tuple[str, ...]] = (_TIME, _PROMPT, _OUTPUT, _IDS)
    time_unit: ClassVar[str] = "milliseconds"
    prefix_identity: ClassVar[Identity] = "real"
    _published_block_tokens: ClassVar[int] = 512
    """README of the release; its files do not say."""
    _unit_digits: ClassVar[int] = 3

    def recognises(self, first_line: str) -> bool:
        """Lengths under these names, without a chat: time or ids may be missing, and the message says so."""
        row = json_lines.first_object(first_line)
        return {_PROMPT, _OUTPUT} <= row.keys() and "chat_id" not in row

    def rows(self, lines: Iterator[str], intake: Intake) -> Iterator[Row]:
        """Rows in file order; ids are not looked at."""
        for row in json_lines.objects(lines, intake):
            if (call := self._call(row, intake)) is not None:
                yield call

    def _call(self, row: dict[str, Any], intake: Intake) -> Row | None:
        time_ps = json_lines.read_time_ps(row, _TIME, self._unit_digits, _RIGHT, intake)
        if time_ps is None:
            return None
        prompt = json_lines.read_count(row, _PROMPT, "prompt", intake)
        output = prompt and json_lines.read_count(row, _OUTPUT, "output", intake)
        return (time_ps, prompt, output) if output else None

    def block_tokens(self, first_line: str) -> int:
        """`block_size` of the first row, else as published."""
        said = json_lines.first_object(first_line).get(_BLOCK)
        return said if type(said) is int and said > 0 else self._published_block_tokens

    def prompts(self, lines: Iterator[str], intake: Intake, block_tokens: int) -> Iterator[Prompt]:
        """Prompts in file order; times and outputs are not looked at."""
        for row in json_lines.objects(lines, intake):
            prompt = json_lines.read_count(row, _PROMPT, "prompt", intake)
            if prompt:
                ids = json_lines.read_ids(row, _IDS, prompt, block_tokens, intake)
                if ids is not None:
                    yield Prompt(prompt, tuple(ids))

    def calls(
        self, lines: Iterator[str], intake: Intake, block_tokens: int
    ) -> Iterator[tuple[Row, tuple[BlockId, ...]]]:
        """Rows in file order, with the ids of their prompts."""
        for row in json_lines.objects(lines, intake):
            call = self._call(row, intake)
            ids = call and json_lines.read_ids(row, _IDS, call[1], block_tokens, intake)
            if call is not None and ids is not None:
                yield call, tuple(ids)

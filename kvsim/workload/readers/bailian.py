"""Qwen-Bailian traces: Mooncake's form in seconds and blocks of 16 tokens, with the chat that a call goes on with.

Published at github.com/alibaba-edu/qwen-bailian-usagetraces-anon. Every call has its whole prompt. Where a turn's
answer replaced the padding of the last block, or thinking was cut out, the next turn's ids go other ways from there on.
"""

from typing import ClassVar

from kvsim.workload.readers import json_lines
from kvsim.workload.readers.mooncake import MooncakeReader


class BailianReader(MooncakeReader):
    """`chat_id`, `parent_chat_id`, `type` and `turn` are not read: the ids say what a turn shares with its parent."""

    format: ClassVar[str] = "bailian"
    columns: ClassVar[tuple[str, ...]] = (*MooncakeReader.columns, "chat_id")
    time_unit: ClassVar[str] = "seconds"
    _published_block_tokens: ClassVar[int] = 16
    """README of the publication."""
    _unit_digits: ClassVar[int] = 0

    def recognises(self, first_line: str) -> bool:
        """A chat and a length."""
        row = json_lines.first_object(first_line)
        return {"chat_id", "input_length"} <= row.keys()

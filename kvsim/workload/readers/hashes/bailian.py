"""Qwen-Bailian traces: Mooncake's form in seconds and blocks of 16 tokens, with the chat that a call goes on with.

Published at github.com/alibaba-edu/qwen-bailian-usagetraces-anon. Every call has its whole prompt. Where a turn's
answer replaced the padding of the last block, or thinking was cut out, the next turn's ids go other ways from there on.
"""

from typing import Any, ClassVar

from kvsim.workload.readers.base import Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.hashes.mooncake import MooncakeReader
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import After, TraceRequest

_CHAT, _PARENT, _TYPE, _TIME = "chat_id", "parent_chat_id", "type", "timestamp"
_NO_PARENT = -1
_RIGHT = "write seconds"


class BailianReader(MooncakeReader):
    """A session is a first call and all that go on from it; it is named by the first call's chat."""

    format: ClassVar[str] = "bailian"
    columns: ClassVar[tuple[str, ...]] = (*MooncakeReader.columns, _CHAT)
    time_unit: ClassVar[str] = "seconds"
    _published_block_tokens: ClassVar[int] = 16
    """README of the publication."""
    _unit_digits: ClassVar[int] = 0

    def recognises(self, head: Head) -> bool:
        """A chat and a length."""
        return {_CHAT, "input_length"} <= head.keys

    def _add_links(self, request: TraceRequest, row: dict[str, Any], links: Links, intake: Intake) -> bool:
        request.arrival_ps = json_lines.read_time_ps(row, _TIME, self._unit_digits, _RIGHT, intake)
        if request.arrival_ps is None:
            return False
        chat, parent = row.get(_CHAT), row.get(_PARENT, _NO_PARENT)
        for column, value in ((_CHAT, chat), (_PARENT, parent)):
            if type(value) not in (int, str):
                intake.bad(column, value, "missing" if value is None else "no id", "write the id of a call")
                return False
        request.id = str(chat)
        goes_on = parent != _NO_PARENT
        # Looked up first: a call that names itself as its parent does not exist yet.
        if goes_on and not links.knows(str(parent), _PARENT):
            return False
        if not links.is_new(request.id, _CHAT):
            return False
        request.session = request.id
        if goes_on:
            request.session, parent_start_ps = links.where(str(parent))
            # The trace does not tell when an answer ended: from start to start.
            request.after = (After(str(parent), max(0, request.arrival_ps - parent_start_ps), "start"),)
        links.place(request.id, request.session, request.arrival_ps)
        if row.get(_TYPE) is not None:
            request.tags = {_TYPE: str(row[_TYPE])}
        return True

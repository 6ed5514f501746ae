"""ServeGen's offline traces: JSON lines of jobs without times; content hashes of 16-token blocks, or lengths alone.

`{request_id, type, input_length, hash_ids, img_ids}` has no outputs: `output_tokens` of the options says how long they
are. `{request_id, type, input_length, output_length, duration}` has no ids. Published at github.com/alibaba/ServeGen.
"""

from collections.abc import Iterator
from typing import ClassVar

from kvsim.workload.readers.base import BaseReader, Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Identity, Intake, Scope
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.values.times import ps_of

_PROMPT, _OUTPUT, _IDS, _ID, _TYPE, _DURATION = (
    "input_length",
    "output_length",
    "hash_ids",
    "request_id",
    "type",
    "duration",
)
_MILLISECONDS = 3


class ServeGenOfflineReader(BaseReader):
    """Ids are of contents: the same id behind another block than before is the same text, and no shared prefix."""

    format: ClassVar[str] = "servegen-offline"
    columns: ClassVar[tuple[str, ...]] = (_ID, _TYPE, _PROMPT)
    time_unit: ClassVar[str] = "none"
    prefix_identity: ClassVar[Identity] = "real"
    hash_scope: ClassVar[Scope] = "global"

    def recognises(self, head: Head) -> bool:
        """A typed length without a time."""
        return {_TYPE, _PROMPT} <= head.keys and not {"chat_id", "timestamp"} & head.keys

    def identity(self, source: Source, options: ReadOptions) -> Identity:
        """Real where the first row has ids."""
        return "real" if _IDS in source.head.keys else "absent"

    def block_tokens(self, source: Source) -> int:
        """16, as the README of the publication has it."""
        return 16

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Jobs in file order; `duration` is in milliseconds."""
        size = intake.options.block_tokens or self.block_tokens(source)
        links = Links(intake)
        for row in json_lines.objects(source.lines(), intake):
            prompt = json_lines.read_count(row, _PROMPT, "prompt", intake)
            if not prompt:
                continue
            output = intake.options.output_tokens if _OUTPUT not in row else None
            if output is not None:
                intake.note(f"outputs are {output} tokens each, as told: the trace has none")
            elif _OUTPUT not in row:
                right = "say how long they are (--output-tokens 128)"
                intake.bad(_OUTPUT, None, "the trace does not tell how long outputs are", right)
                continue
            output = output or json_lines.read_count(row, _OUTPUT, "output", intake)
            ids = [] if row.get(_IDS) is None else json_lines.read_ids(row, _IDS, prompt, size, intake)
            id = str(row.get(_ID, intake.row))
            if not output or ids is None or not links.is_new(id, _ID):
                continue
            request = TraceRequest(id, prompt, output, blocks=tuple(ids), block_tokens=size if ids else 0)
            request.duration_ps = ps_of(row.get(_DURATION), _MILLISECONDS)
            request.tags = {_TYPE: str(row.get(_TYPE, ""))}
            yield request

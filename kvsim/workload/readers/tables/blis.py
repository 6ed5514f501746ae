"""BLIS trace v2: a CSV with tenants, classes of service, sessions and shared prefixes; times in microseconds.

`prefix_length` tokens that all of a `prefix_group` begin with come in front of `input_tokens`; where there is no group
the server's own count (`server_input_tokens`), if any, is the prompt. A call is taken as sent at `send_time_us`, if
that is there. As the replay of github.com/inference-sim/inference-sim reads them (`sim/workload/replay.go`).
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from kvsim.workload.readers.base import BaseReader, Links
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Identity, Intake, Scope
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.tables.csv_file import Cells, read_count, read_number_ps
from kvsim.workload.readers.values.chain import BLOCK_TOKENS
from kvsim.workload.readers.values.times import ps_of
from kvsim.workload.readers.values.tokens import read_tokens

_TIME, _PROMPT, _OUTPUT, _ID = "arrival_time_us", "input_tokens", "output_tokens", "request_id"
_OTHERS = (
    *("tenant_id", "slo_class", "session_id", "model", "status", "deadline_us", "send_time_us", "last_chunk_time_us"),
    *("prefix_group", "prefix_length", "server_input_tokens"),
)
_MICROSECONDS = 6
_RIGHT = "write whole microseconds, such as 2500000"
_TIMEOUT = "timeout"


class BlisReader(BaseReader):
    """A call whose status is `timeout` was given up at its deadline; its output tokens are those it would have had."""

    format: ClassVar[str] = "blis"
    columns: ClassVar[tuple[str, ...]] = (_TIME, _PROMPT, _OUTPUT)
    time_unit: ClassVar[str] = "microseconds"
    prefix_identity: ClassVar[Identity] = "real"
    hash_scope: ClassVar[Scope] = "global"

    def block_tokens(self, source: Source) -> int:
        """Groups are of tokens: any block would do."""
        return BLOCK_TOKENS

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Calls in file order; a group's whole blocks have ids, what follows is like no other's."""
        cells_of = Cells(source.lines(), intake)
        at_time, at_prompt, at_output = (cells_of.at(column, self.columns) for column in self.columns)
        at_id = cells_of.maybe_at(_ID)
        places = {name: at for name in _OTHERS if (at := cells_of.maybe_at(name)) is not None}
        links = Links(intake)
        times_ps: dict[str, int] = {}
        for cells in cells_of.rows():
            also = {name: cells[at].strip() for name, at in places.items()}
            time_ps = read_number_ps(cells[at_time], _TIME, _MICROSECONDS, _RIGHT, intake)
            prompt = 0 if time_ps is None else read_count(cells[at_prompt], _PROMPT, "prompt", intake)
            output = prompt and read_count(cells[at_output], _OUTPUT, "output", intake)
            id = str(intake.row) if at_id is None else cells[at_id].strip()
            if time_ps is None or not output or (at_id is not None and not links.is_new(id, _ID)):
                continue
            group, shared = also.get("prefix_group", ""), read_tokens(also.get("prefix_length", ""))
            if not group:
                shared = 0
                prompt = read_tokens(also.get("server_input_tokens", "")) or prompt
            request = TraceRequest(id, shared + prompt, output, _positive_ps(also, "send_time_us") or time_ps)
            block = intake.options.block_tokens or BLOCK_TOKENS
            request.block_tokens = block
            request.blocks = tuple(f"{group}/{number}" for number in range(shared // block))
            request.tenant = also.get("tenant_id", "")
            request.tags = {key: also[key] for key in ("slo_class", "model", "status") if also.get(key)}
            request.deadline_ps = _positive_ps(also, "deadline_us")
            if also.get("status") == _TIMEOUT:
                request.cancel_at_ps = request.deadline_ps
            end_ps = _positive_ps(also, "last_chunk_time_us")
            if end_ps is not None and request.arrival_ps is not None and end_ps >= request.arrival_ps:
                request.duration_ps = end_ps - request.arrival_ps
            session = request.session = also.get("session_id", "")
            if session:
                # From start to start: the trace does not tell thinking from serving.
                gap_ps = max(0, time_ps - times_ps.get(session, time_ps))
                request.after = tuple(one._replace(trigger="start") for one in links.goes_on(session, id, gap_ps))
                times_ps[session] = time_ps
            yield request


def _positive_ps(cells: Mapping[str, str], column: str) -> int | None:
    """Picoseconds of a time that is 0 where there is none."""
    time_ps = ps_of(cells.get(column, ""), _MICROSECONDS)
    return time_ps if time_ps and time_ps > 0 else None

"""A trace as whole requests: sessions, links, shared prefixes and all else that its format tells."""

import os
from collections.abc import Iterator
from itertools import islice

from kvsim.workload.arguments import check_whole
from kvsim.workload.readers.interface import Identity, Intake, OnBadRow, Report
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.trace.files import nothing_kept, opened, trace_path


class Recording:
    """Reads a trace as often as it is iterated; holds its report, never its requests.

    `trace` is a path, of a file or a folder, or the name of a packaged trace; `format` a name in `READERS` (None: found
    by how it begins). `on_bad_row` "drop" leaves bad rows out and counts them. `requests` keeps the first so many.
    ValueError on a wrong argument; InputError, here or from iterating, on a wrong trace.
    """

    def __init__(
        self,
        trace: str | os.PathLike[str],
        *,
        format: str | None = None,
        on_bad_row: OnBadRow = "error",
        requests: int | None = None,
        options: ReadOptions | None = None,
    ) -> None:
        if on_bad_row not in ("error", "drop"):
            raise ValueError(f"on_bad_row: must be error or drop; got {on_bad_row!r}")
        if requests is not None:
            check_whole("requests", requests, 1)
        self.trace = str(trace)
        self.reader, self._source = opened(trace_path(trace), self.trace, format)
        self._on_bad_row: OnBadRow = on_bad_row
        self._requests = requests
        self._options = options or ReadOptions()
        self._report: Report | None = None

    def __iter__(self) -> Iterator[TraceRequest]:
        """The requests in file order, not sorted by time. Leaves the report behind at its end."""
        intake = Intake(self.trace, self._on_bad_row, self._options)
        kept, tells_identity, block_tokens = 0, False, 0
        first_ps: int | None = None
        last_ps = 0
        for request in islice(self.reader.requests(self._source, intake), self._requests):
            kept += 1
            tells_identity = tells_identity or bool(request.blocks) or request.new_prompt_tokens is not None
            block_tokens = block_tokens or request.block_tokens
            time_ps = request.arrival_ps
            if time_ps is not None:
                first_ps = time_ps if first_ps is None else min(first_ps, time_ps)
                last_ps = max(last_ps, time_ps)
            yield request
        if kept == 0:
            raise intake.wrong(nothing_kept(intake))
        identity: Identity = "absent"
        if tells_identity:
            identity = "synthesised" if self._options.shared_system else "real"
        self._report = Report(
            format=self.reader.format,
            time_unit=self.reader.time_unit,
            rows_read=intake.row,
            rows_kept=kept,
            dropped=dict(sorted(intake.dropped.items())),
            ignored_columns=intake.ignored_columns,
            span_ps=0 if first_ps is None else last_ps - first_ps,
            prefix_identity=identity,
            hash_scope=self.reader.hash_scope if block_tokens else "none",
            block_tokens=block_tokens,
            notes=intake.notes,
        )

    @property
    def block_tokens(self) -> int:
        """Tokens of the trace's blocks, by how it begins; 0 where it tells prompts apart by none."""
        if self.reader.identity(self._source, self._options) == "absent":
            return 0
        return self._options.block_tokens or self.reader.block_tokens(self._source)

    @property
    def report(self) -> Report:
        """What the trace holds; reads it once if nobody has."""
        if self._report is None:
            for _ in self:
                pass
        assert self._report is not None
        return self._report

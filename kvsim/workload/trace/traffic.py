"""Recorded traffic: the rows of a trace, times counted from its first row, at its own rate or another."""

import os
from array import array
from collections.abc import Iterator
from itertools import islice, tee

from kvsim.content import Content, Layers
from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.workload.arguments import check_positive, check_whole
from kvsim.workload.arrivals import as_written
from kvsim.workload.readers import READERS
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Call, Identity, Intake, OnBadRow, Reader, Report, Row, Surveyed
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.streams import Streams
from kvsim.workload.trace.contents import prompt_contents, prompt_layers
from kvsim.workload.trace.files import nothing_kept, opened, trace_path

_PEEKED = 64
"""Rows in which a trace that has sessions shows a second call of one, most often."""


class TraceTraffic(Surveyed):
    """Requests as a trace recorded them: time, prompt tokens, output tokens; and what prompts share, if it says so.

    `trace` is a path or a name in `PACKAGED`; `format` a name in `READERS` (None: found by the header).
    `on_bad_row` "drop" leaves bad rows out and counts them. `sort` puts rows in order of time (equal times
    stay in file order) and holds some 60 bytes a row; without it rows out of order are an error. `requests`
    keeps the first so many rows. With `identities` the requests get what the trace tells of their prompts' contents,
    and a row whose ids are wrong is a bad row. `options` are what a reader must be told.

    The first kept row arrives at 0. `rate` (per second) warps time, so that the mean gap between the kept
    rows is 1 / rate: bursts keep their shape. `time_scale` multiplies every gap instead. At most one of the
    two.

    ValueError on a wrong argument; InputError, from `rows` and `survey`, on a wrong file.
    """

    def __init__(
        self,
        trace: str | os.PathLike[str],
        *,
        format: str | None = None,
        on_bad_row: OnBadRow = "error",
        sort: bool = False,
        requests: int | None = None,
        rate: float | None = None,
        time_scale: float | None = None,
        options: ReadOptions | None = None,
        identities: bool = False,
    ) -> None:
        if format is not None and format not in READERS:
            raise ValueError(f"format: must be one of {', '.join(READERS)}; got {format!r}")
        if on_bad_row not in ("error", "drop"):
            raise ValueError(f"on_bad_row: must be error or drop; got {on_bad_row!r}")
        if requests is not None:
            check_whole("requests", requests, 1)
        if rate is not None and time_scale is not None:
            raise ValueError(f"time_scale: give either rate or time_scale, not both; got {time_scale!r}")
        if rate is not None:
            check_positive("rate", rate)
        if time_scale is not None:
            check_positive("time_scale", time_scale)
        self.trace = str(trace)
        self._path = trace_path(trace)
        self._format = format
        self._options = options or ReadOptions()
        self._on_bad_row: OnBadRow = on_bad_row
        self._sort = sort
        self._requests = requests
        self._rate = rate
        self._time_scale = time_scale
        self._identities = identities
        self._report: Report | None = None

    @property
    def prefix_identity(self) -> Identity:
        """Whether the trace tells which prompts begin alike. Reads its first line."""
        reader, source = opened(self._path, self.trace, self._format)
        return reader.identity(source, self._options)

    @property
    def block_tokens(self) -> int | None:
        """By how many tokens it tells prompts apart; None: it does not, or is not asked. Reads its first line."""
        return self._told_block_tokens(*opened(self._path, self.trace, self._format))

    def _told_block_tokens(self, reader: Reader, source: Source) -> int | None:
        if not self._identities or reader.identity(source, self._options) == "absent":
            return None
        return self._options.block_tokens or reader.block_tokens(source)

    @property
    def ignores_sessions(self) -> bool:  # type: ignore[override]
        """See `Surveyed`; by the first rows of the trace."""
        return any(request.session and request.after for request in self._peeked())

    @property
    def ignores_tags(self) -> bool:  # type: ignore[override]
        """See `Surveyed`; by the first rows of the trace."""
        return any(request.tenant or request.priority for request in self._peeked())

    def _peeked(self) -> Iterator[TraceRequest]:
        reader, source = opened(self._path, self.trace, self._format)
        return islice(reader.requests(source, Intake(self.trace, "drop", self._options)), _PEEKED)

    def survey(self) -> Report:
        """Read the trace once, up to the last row that will be a request, and say what is in it.

        Every bad row shows here, before a run begins. Keeps the result, not the rows. About 3 us a row.
        """
        if self._report is None:
            for _ in self._recorded():
                pass
        assert self._report is not None
        return self._report

    @property
    def report(self) -> Report | None:
        """What the last pass that came to its end found; None where none did."""
        return self._report

    def rows(self, streams: Streams) -> Iterator[Row]:
        """(arrival in picoseconds, prompt tokens, output tokens), arrivals from 0 and never decreasing.

        Reads the file as it goes; with `rate` it is read once more beforehand, for its span. Draws nothing.
        """
        numerator, denominator = self._warp()
        if numerator == denominator:
            return self._recorded()
        half = denominator // 2
        return (
            ((time_ps * numerator + half) // denominator, prompt, output)
            for time_ps, prompt, output in self._recorded()
        )

    def contents(self) -> Iterator[Content] | None:
        """What the prompt of each row is, in the order of `rows`; reads the file once more. None: nothing is told.

        With `sort` it holds the ids of all prompts.
        """
        reader, source = opened(self._path, self.trace, self._format)
        size = self._told_block_tokens(reader, source)
        if size is None:
            return None
        return prompt_contents(((call.row[1], call.blocks) for call in self._calls(reader, source, size)), size)

    def layers(self) -> Layers:
        """What all of its prompts begin with is the system's; what one session alone has is the session's, and what
        several have a group's. Without sessions the rest is not known. Reads the file once more.
        """
        reader, source = opened(self._path, self.trace, self._format)
        size = self._told_block_tokens(reader, source)
        if size is None:
            return Layers()
        calls, again = tee(islice(self._calls(reader, source, size), self._requests))
        contents = prompt_contents(((call.row[1], call.blocks) for call in calls), size)
        return prompt_layers(zip(contents, (call.session for call in again), strict=True), size)

    def sessions(self) -> list[str]:
        """The session of each row, in the order of `rows`; "" where the file knows none. Reads it once more."""
        reader, source = opened(self._path, self.trace, self._format)
        size = self._told_block_tokens(reader, source)
        if size is not None:
            calls = self._calls(reader, source, size)
            return [call.session for call in islice(calls, self._requests)]
        intake = Intake(self.trace, self._on_bad_row, self._options)
        requests = (one for one in reader.requests(source, intake) if not one.failed and one.arrival_ps is not None)
        in_order = sorted(requests, key=lambda one: one.arrival_ps or 0) if self._sort else requests
        return [one.session for one in islice(in_order, self._requests)]

    def _calls(self, reader: Reader, source: Source, block_tokens: int) -> Iterator[Call]:
        calls = reader.calls(source, Intake(self.trace, self._on_bad_row, self._options), block_tokens)
        return iter(sorted(calls, key=lambda call: call.row[0])) if self._sort else calls

    def more_outputs(self, streams: Streams) -> None:
        """A trace tells one length a request: further samples are as long."""

    def describe(self) -> dict[str, object]:
        """The report for the run folder: rows read, kept and dropped by reason, how time was scaled."""
        report = self.survey()
        numerator, denominator = self._warp()
        scaled_span_ps = (report.span_ps * numerator + denominator // 2) // denominator
        return {
            **report.describe(self.trace, self._requests),
            "ignored_columns": list(report.ignored_columns),
            "sorted_here": self._sort,
            "span_s": scaled_span_ps / PS_PER_S,
            "rate_per_s": _rate(report.rows_kept, scaled_span_ps),
            "recorded_span_s": report.span_ps / PS_PER_S,
            "recorded_rate_per_s": _rate(report.rows_kept, report.span_ps),
            "time_warp": numerator / denominator,
        }

    def _warp(self) -> tuple[int, int]:
        """By what ratio times are multiplied; exact, so that warped times round once."""
        if self._time_scale is not None:
            return as_written(self._time_scale).as_integer_ratio()
        if self._rate is None:
            return 1, 1
        report = self.survey()
        if report.span_ps == 0:
            raise InputError(
                f"{self.trace}: all {report.rows_kept} rows used have the same time, so there is no rate to "
                "scale; leave `rate` out or use more rows"
            )
        span_ps = (report.rows_kept - 1) * PS_PER_S / as_written(self._rate)
        return (span_ps / report.span_ps).as_integer_ratio()

    def _recorded(self) -> Iterator[Row]:
        """One pass over the file in the trace's own time; leaves the report behind at its end."""
        intake = Intake(self.trace, self._on_bad_row, self._options)
        reader, source = opened(self._path, self.trace, self._format)
        size = self._told_block_tokens(reader, source)
        if size is None:
            found = reader.rows(source, intake)
        else:
            found = (call.row for call in reader.calls(source, intake, size))
        in_order = _sorted_by_time(found) if self._sort else found
        kept = 0
        first_ps = last_ps = 0
        for time_ps, prompt, output in islice(in_order, self._requests):
            if kept == 0:
                first_ps = last_ps = time_ps
            if time_ps < last_ps:
                raise intake.wrong(
                    f"{intake.place}, column {reader.columns[0]}: "
                    f"{(last_ps - time_ps) / PS_PER_S:g} s earlier than the row before; "
                    "put the rows in order of time or set `sort: true`"
                )
            last_ps = time_ps
            kept += 1
            yield time_ps - first_ps, prompt, output
        if kept == 0:
            raise intake.wrong(nothing_kept(intake))
        identity = reader.identity(source, self._options)
        self._report = Report(
            format=reader.format,
            time_unit=reader.time_unit,
            rows_read=intake.row,
            rows_kept=kept,
            dropped=intake.dropped,
            ignored_columns=intake.ignored_columns,
            span_ps=last_ps - first_ps,
            prefix_identity=identity,
            hash_scope="none" if identity == "absent" else reader.hash_scope,
            block_tokens=0 if identity == "absent" else self._options.block_tokens or reader.block_tokens(source),
            notes=intake.notes,
        )


def _sorted_by_time(rows: Iterator[Row]) -> Iterator[Row]:
    # Three columns, so that a million rows do not become a million tuples. Times are Python ints: a trace of
    # months does not fit 64-bit picoseconds, and need not before it is scaled.
    times_ps: list[int] = []
    prompts, outputs = array("q"), array("q")
    for time_ps, prompt, output in rows:
        times_ps.append(time_ps)
        prompts.append(prompt)
        outputs.append(output)
    for i in sorted(range(len(times_ps)), key=times_ps.__getitem__):
        yield times_ps[i], prompts[i], outputs[i]


def _rate(rows: int, span_ps: int) -> float | None:
    return (rows - 1) * PS_PER_S / span_ps if span_ps else None

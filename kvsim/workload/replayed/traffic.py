"""The traffic of a trace whose calls wait for each other: which of them come, and when their sessions begin."""

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Literal

from kvsim.content import Layers
from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.workload.arguments import check_positive
from kvsim.workload.arrivals import ArrivalProcess, as_written
from kvsim.workload.lengths import LONGEST, LengthDistribution
from kvsim.workload.readers.interface import Identity, OnBadRow, Report, Surveyed
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.replayed.calls import CallGraph, Group, graph_of
from kvsim.workload.replayed.contents import Contents
from kvsim.workload.replayed.loop import RecordedLoop, attempts_of
from kvsim.workload.replayed.waits import ThinkBounds, Wait
from kvsim.workload.reshape import Reshape, scaled
from kvsim.workload.sessions.drive import LoopTraffic
from kvsim.workload.sessions.laws import PS_PER_MS, ClientLoop, OnFailure
from kvsim.workload.sessions.loop import Sources
from kvsim.workload.streams import Streams
from kvsim.workload.trace.recording import Recording

_LEFT_OUT = "a call that waits for one that was left out"

_DECIDE = "say when sessions begin: arrivals at a rate, or clients (workload.arrivals and rate, or workload.clients)"


class ReplayTraffic(LoopTraffic, Surveyed):
    """The sessions of a trace, in a loop.

    `loop` "closed": a call comes when those it waits for have been answered, and the pause that was recorded is over
    (see `waits`; `bounds` cut it, `think_ms` is drawn in its place). "open": at its recorded time. Sessions begin as
    recorded, by `arrivals`, or one after the other at each of so many `clients`, who pause between two as `rest_ms`
    says. `rate` is that of sessions: recorded times are stretched to it, in a closed loop those alone at which sessions
    begin. `reshape` takes whole sessions. `answers` "repeated": where prompts are told by blocks, an answer is taken to
    be what its session's next prompt has behind the prompt before. Rows need not be in order of time. Everything else
    is as for `TraceTraffic`. The whole trace is held: some 600 bytes a call, and what its prompts hold. ValueError on a
    wrong argument, InputError on a wrong trace.
    """

    def __init__(
        self,
        trace: str | os.PathLike[str],
        *,
        loop: Literal["closed", "open"] = "closed",
        format: str | None = None,
        on_bad_row: OnBadRow = "error",
        requests: int | None = None,
        rate: float | None = None,
        arrivals: ArrivalProcess | None = None,
        clients: ClientLoop | None = None,
        rest_ms: LengthDistribution | None = None,
        think_ms: LengthDistribution | None = None,
        bounds: ThinkBounds | None = None,
        on_failure: OnFailure | None = None,
        reshape: Reshape | None = None,
        answers: Literal["unlike", "repeated"] = "unlike",
        options: ReadOptions | None = None,
        identities: bool = False,
    ) -> None:
        if loop not in ("closed", "open"):
            raise ValueError(f"loop: must be closed or open; got {loop!r}")
        if clients is not None and (loop == "open" or arrivals is not None or rate is not None):
            raise ValueError("clients: a loop of clients is closed, and has no rate or arrivals of its own")
        if rate is not None:
            check_positive("rate", rate)
        if answers not in ("unlike", "repeated"):
            raise ValueError(f"answers: must be unlike or repeated; got {answers!r}")
        self._recording = Recording(trace, format=format, on_bad_row=on_bad_row, requests=requests, options=options)
        self.trace = self._recording.trace
        self.closed = loop == "closed"
        self._requests = requests
        self._rate = rate
        self._arrivals = arrivals
        self._clients = clients
        self._rest_ms = rest_ms
        self._think_ms = think_ms
        self._bounds = bounds
        self._rule = on_failure or OnFailure()
        self.attempts = attempts_of(self._rule)
        """Ids of one call and its further attempts: call k has those from k times this on."""
        self._reshape = reshape or Reshape()
        self._repeated = answers == "repeated"
        self.told_answers = 0
        """Calls whose answers are known, of those that were read."""
        self._contents = Contents() if identities else None
        self._made: CallGraph | None = None
        self._sampled: tuple[int, CallGraph] | None = None

    # What the trace holds.

    def survey(self) -> Report:
        """What was read; reads the trace if nobody has."""
        graph = self._graph()
        report = self._recording.report
        if not graph.left_out:
            return report
        dropped = report.dropped | {_LEFT_OUT: graph.left_out}
        return replace(report, rows_kept=len(graph.calls), dropped=dropped)

    @property
    def report(self) -> Report | None:
        """The same, None where the trace was not read yet."""
        return None if self._made is None else self.survey()

    @property
    def prefix_identity(self) -> Identity:
        """Whether the trace tells which prompts begin alike."""
        return self.survey().prefix_identity

    @property
    def block_tokens(self) -> int | None:
        """By how many tokens it tells prompts apart; None: not by blocks."""
        return self.survey().block_tokens or None

    @property
    def stands_alone(self) -> bool:  # type: ignore[override]
        """No call has anything to do with another."""
        graph = self._graph()
        return len(graph.groups) == len(graph.calls)

    def layers(self, shared: Layers) -> Layers:
        """See `LoopTraffic`, as far as the trace tells; it shares no texts but its own."""
        graph = self._graph()
        if self._contents is None:
            return Layers()
        return self._contents.layers(
            (call.content, str(call.session)) for call in graph.calls if call.content is not None
        )

    def _graph(self) -> CallGraph:
        """The calls of the trace, read once."""
        if self._made is None:
            shape = self._reshape
            self._made = graph_of(self._requests_of_trace(), self._contents)
            if shape.prompt_times != 1 and self._contents is not None and self._contents.block_tokens:
                raise InputError(
                    "reshape.prompt_times: the trace says which prompts begin alike, which longer ones would not; "
                    "leave it out, or turn prefix caching off"
                )
            if not self.closed:
                self._check_times(self._made)
            if self._repeated and self._made.block_tokens:
                self.told_answers = self._made.tell_answers()
        return self._made

    def _requests_of_trace(self) -> Iterator[TraceRequest]:
        requests = (request for request in self._recording if not request.failed)
        shape = self._reshape
        if shape.prompt_times == 1 and shape.output_times == 1:
            return requests
        return map(self._lengthened, requests)

    def _lengthened(self, request: TraceRequest) -> TraceRequest:
        prompts, outputs = scaled(self._reshape.prompt_times), scaled(self._reshape.output_times)
        request.prompt_tokens, request.output_tokens = prompts(request.prompt_tokens), outputs(request.output_tokens)
        if request.new_prompt_tokens:
            request.new_prompt_tokens = min(LONGEST, prompts(request.new_prompt_tokens))
        return request

    def _check_times(self, graph: CallGraph) -> None:
        lacking = next((call.number for call in graph.calls if call.time_ps is None), None)
        if lacking is not None:
            raise InputError(
                f"{self.trace}: request {lacking + 1} of those kept has no time of its own, and an open loop sends "
                "each at its time; set workload.sessions.loop: closed"
            )

    # What comes.

    def loop(self, sources: Sources) -> RecordedLoop:
        """The calls of one run, from the beginning."""
        streams = sources.streams
        graph = self._chosen(streams)
        begin_ps = [] if self._clients is not None else self._begin_ps(graph, streams)
        return RecordedLoop(
            self._with_think(graph, streams).named(self.attempts),
            closed=self.closed,
            begin_ps=begin_ps,
            clients=self._clients,
            rests_ps=self._rests_ps(graph, streams),
            on_failure=self._rule,
            bounds=self._bounds,
            kinds=_kinds(graph, sources),
            patiences_ps=_patiences(graph, sources),
            stretch=self._stretch(graph) if not self.closed and self._arrivals is None else (1, 1),
        )

    def _chosen(self, streams: Streams) -> CallGraph:
        """The groups that the reshaping leaves."""
        graph, shape = self._graph(), self._reshape
        if shape.keeps_all:
            return graph
        if self._sampled is not None and self._sampled[0] == streams.seed:
            return self._sampled[1]
        from_ps = round(as_written(shape.from_s) * PS_PER_S)
        until_ps = None if shape.until_s is None else round(as_written(shape.until_s) * PS_PER_S)
        zero_ps = 0
        if from_ps or until_ps is not None:
            zero_ps = min(self._start_of(group) for group in graph.groups)
        kept = []
        draws = streams.generator("sample").random(len(graph.groups)).tolist() if shape.share < 1 else None
        for number, group in enumerate(graph.groups):
            if from_ps or until_ps is not None:
                time_ps = self._start_of(group) - zero_ps
                if time_ps < from_ps or (until_ps is not None and time_ps >= until_ps):
                    continue
            if draws is None or draws[number] < shape.share:
                kept.append(number)
        if not kept:
            raise InputError("reshape: no session is left; widen the window, or keep a larger share")
        chosen = graph.only(kept, repeat=shape.repeat)
        if shape.repeat > 1 and self._clients is None and self._arrivals is None:
            _one_after_the_other(chosen.groups, shape.repeat, until_ps and until_ps - from_ps)
        self._sampled = streams.seed, chosen
        return chosen

    def _start_of(self, group: Group) -> int:
        if group.start_ps is None:
            raise InputError(f"{self.trace}: not every session has a time at which it began; {_DECIDE}")
        return group.start_ps

    def _begin_ps(self, graph: CallGraph, streams: Streams) -> list[int]:
        if self._arrivals is not None:
            times_ps = self._arrivals.arrivals_ps(streams.generator("arrivals"))
            return list(islice(times_ps, len(graph.groups)))
        starts_ps = [self._start_of(group) for group in graph.groups]
        first_ps = min(starts_ps)
        numerator, denominator = self._stretch(graph)
        return [((time - first_ps) * numerator + denominator // 2) // denominator for time in starts_ps]

    def _stretch(self, graph: CallGraph) -> tuple[int, int]:
        """By what ratio recorded times are multiplied; exact, so that they round once."""
        if self._rate is None:
            return self._reshape.warp
        starts_ps = [self._start_of(group) for group in graph.groups]
        span_ps = max(starts_ps) - min(starts_ps)
        if not span_ps:
            raise InputError(f"{self.trace}: all its sessions begin at one time, so there is no rate to stretch")
        wanted_ps = (len(starts_ps) - 1) * PS_PER_S / as_written(self._rate)
        return (wanted_ps / span_ps).as_integer_ratio()

    def _rests_ps(self, graph: CallGraph, streams: Streams) -> list[int] | None:
        """The pause of the client before each group, in their order."""
        if self._rest_ms is None:
            return None
        pauses = self._rest_ms.lengths(streams.generator("rest"), 1 << 10)
        return [pause * PS_PER_MS for pause in islice(pauses, len(graph.groups))]

    def _with_think(self, graph: CallGraph, streams: Streams) -> CallGraph:
        """The same calls with pauses that are drawn, one for each turn in the order of the trace, where they are."""
        if self._think_ms is None:
            return graph
        calls = graph.only(range(len(graph.groups))).calls
        pauses = self._think_ms.lengths(streams.generator("think"), 1 << 10)
        drawn: dict[tuple[int, int], Wait] = {}
        for call in calls:
            for before, wait in call.waits:
                if wait.relation == "turn":
                    drawn[before, call.number] = Wait("end", next(pauses) * PS_PER_MS, "turn")
        for call in calls:
            call.waits = tuple((before, drawn.get((before, call.number), wait)) for before, wait in call.waits)
            call.followers = [(after, drawn.get((call.number, after), wait)) for after, wait in call.followers]
        return CallGraph(calls, graph.groups)

    def describe(self) -> dict[str, object]:
        """The report for the run folder: what was read, how sessions begin, and how their calls come."""
        report, graph = self.survey(), self._graph()
        begin: dict[str, object] = {"arrivals": "as recorded", "clients": None}
        if self._arrivals is not None:
            begin["arrivals"] = self._arrivals.describe()
        if self._clients is not None:
            begin = {"arrivals": None, "clients": {"clients": self._clients.clients, "ramp_s": self._clients.ramp_s}}
        failure: dict[str, Any] = {"then": self._rule.then}
        return {
            **report.describe(self.trace, self._requests),
            "loop": "closed" if self.closed else "open",
            "sessions": len(graph.groups),
            **begin,
            "rate_per_s": self._rate,
            "answers": "repeated" if self._repeated else "unlike",
            "think": "as recorded" if self._think_ms is None else self._think_ms.describe(),
            "on_failure": failure | ({"retries": self._rule.retries} if self._rule.then == "retry" else {}),
            "reshape": self._reshape.describe(),
        }


def _kinds(graph: CallGraph, sources: Sources) -> list[int] | None:
    """The kind of client of each group, by its number."""
    if sources.mix is None:
        return None
    return list(islice(sources.mix.draws(sources.streams.generator("tags")), len(graph.groups)))


def _patiences(graph: CallGraph, sources: Sources) -> list[int | None] | None:
    if sources.cancel is None:
        return None
    return list(islice(sources.cancel.patiences_ps(sources.streams.generator("cancel")), len(graph.calls)))


def _one_after_the_other(groups: list[Group], repeat: int, period_ps: int | None) -> None:
    """Put repetitions behind each other. Mutates."""
    each = len(groups) // repeat
    starts_ps = [group.start_ps or 0 for group in groups[:each]]
    span_ps = max(starts_ps) - min(starts_ps)
    period_ps = period_ps or span_ps + -(-span_ps // max(1, each - 1))
    for place, group in enumerate(groups):
        if group.start_ps is not None:
            group.start_ps += place // each * period_ps

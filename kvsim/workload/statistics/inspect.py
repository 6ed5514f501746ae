"""A trace read once: its report, its statistics, and the samples that a figure or a fit needs."""

from array import array
from dataclasses import asdict, dataclass
from typing import Any

from kvsim.workload.readers.interface import Report
from kvsim.workload.statistics.arrivals import Arrivals, arrivals
from kvsim.workload.statistics.lengths import Spread, rank_correlation, spread
from kvsim.workload.statistics.sessions import Sessions, SessionsCount
from kvsim.workload.statistics.sharing import Sharing, SharingCount
from kvsim.workload.trace.recording import Recording


@dataclass(frozen=True)
class Inspection:
    """`prompts`, `outputs` and `times_ps` are in file order; lengths are of calls that did not fail, times of all."""

    trace: str
    report: Report
    failed: int
    prompts: "array[int]"
    outputs: "array[int]"
    times_ps: list[int]
    prompt_tokens: Spread | None
    output_tokens: Spread | None
    rank_correlation: float | None
    arrivals: Arrivals | None
    sharing: Sharing
    sessions: Sessions | None

    def record(self) -> dict[str, Any]:
        """Everything but the samples, as plain values ready for JSON."""
        return {
            "trace": self.trace,
            "report": asdict(self.report) | {"span_s": self.report.span_ps / 10**12},
            "failed": self.failed,
            "prompt_tokens": self.prompt_tokens and asdict(self.prompt_tokens),
            "output_tokens": self.output_tokens and asdict(self.output_tokens),
            "rank_correlation": self.rank_correlation,
            "arrivals": self.arrivals and asdict(self.arrivals),
            "sharing": asdict(self.sharing),
            "sessions": self.sessions and asdict(self.sessions),
        }


def inspect(recording: Recording) -> Inspection:
    """Read a trace to its end. Holds 24 bytes a request, some 60 a distinct block, and a number a session."""
    prompts, outputs, times_ps = array("q"), array("q"), list[int]()
    failed = 0
    sharing, sessions = SharingCount(), SessionsCount()
    for request in recording:
        if request.arrival_ps is not None:
            times_ps.append(request.arrival_ps)
        if request.failed:
            failed += 1
            continue
        prompts.append(request.prompt_tokens)
        outputs.append(request.output_tokens)
        sharing.add(request)
        sessions.add(request)
    return Inspection(
        trace=recording.trace,
        report=recording.report,
        failed=failed,
        prompts=prompts,
        outputs=outputs,
        times_ps=times_ps,
        prompt_tokens=spread(prompts),
        output_tokens=spread(outputs),
        rank_correlation=rank_correlation(prompts, outputs),
        # A part of the times alone would tell a rate that is none.
        arrivals=arrivals(times_ps) if len(times_ps) == len(prompts) + failed else None,
        sharing=sharing.result(),
        sessions=sessions.result(),
    )

"""How long a recorded call waits for those before it: as the trace says, or as its times tell.

A recorded delay is taken as it is. Where a trace has none, or only the time from start to start, its times tell: if it
says how long the call before took, the pause is what lies between that end and the next start; if not, the next call
keeps its distance from start to start, and never comes before the answer that it waits for.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from kvsim.workload.readers.request import After, TraceRequest

Trigger = Literal["end", "start", "paced"]


class Wait(NamedTuple):
    """A call comes `delay_ps` after another has ended or was sent; `paced`: since that was sent, and not before its
    end. `relation` is that of `readers.request.After`."""

    trigger: Trigger
    delay_ps: int
    relation: str


@dataclass(frozen=True, kw_only=True)
class ThinkBounds:
    """The shortest and the longest pause between an answer and the next turn of its session, in picoseconds."""

    least_ps: int = 0
    most_ps: int | None = None

    def between(self, pause_ps: int) -> int:
        """The pause, put within the bounds."""
        pause_ps = max(pause_ps, self.least_ps)
        return pause_ps if self.most_ps is None else min(pause_ps, self.most_ps)


def wait_for(link: After, call: TraceRequest, before: TraceRequest) -> Wait:
    """What `call` waits for in `before`, an earlier one."""
    gap_ps = _between(before, call)
    from_start = link.relation == "turn" and link.trigger == "start"
    if link.delay_ps is not None and not (from_start and gap_ps is not None):
        return Wait(link.trigger, link.delay_ps, link.relation)
    if gap_ps is None:
        return Wait("end", 0, link.relation)
    if before.duration_ps is not None:
        return Wait("end", max(0, gap_ps - before.duration_ps), link.relation)
    return Wait("paced", max(0, gap_ps), link.relation)


def _between(before: TraceRequest, call: TraceRequest) -> int | None:
    """From start to start; None where the trace does not tell both."""
    for earlier, later in ((before.arrival_ps, call.arrival_ps), (before.session_time_ps, call.session_time_ps)):
        if earlier is not None and later is not None:
            return later - earlier
    return None

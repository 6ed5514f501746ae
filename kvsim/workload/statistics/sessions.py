"""Sessions in a few numbers: how many calls, how long between an answer and the next, what each turn adds."""

from array import array
from dataclasses import dataclass

from kvsim.request import PS_PER_S
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.statistics.lengths import Spread, spread


@dataclass(frozen=True)
class Sessions:
    """`wait_s` lies between the end of an answer and the next call of its session where the trace tells the end, and
    between two starts where it does not (`wait_from`: end, start, or mixed)."""

    sessions: int
    single_share: float
    calls: Spread
    wait_from: str
    wait_s: Spread | None
    new_prompt_tokens: Spread | None


class SessionsCount:
    """Counts as requests come by; holds a number a session and two a turn."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self._waits_s, self._new = array("d"), array("q")
        self._triggers: set[str] = set()

    def add(self, request: TraceRequest) -> None:
        """Count one request. Mutates."""
        if request.session:
            self._calls[request.session] = self._calls.get(request.session, 0) + 1
        for link in request.after:
            if link.relation == "turn" and link.delay_ps is not None:
                self._waits_s.append(link.delay_ps / PS_PER_S)
                self._triggers.add(link.trigger)
        if request.new_prompt_tokens is not None and request.after:
            self._new.append(request.new_prompt_tokens)

    def result(self) -> Sessions | None:
        """What was counted so far; None where the trace knows no sessions."""
        calls = spread(list(self._calls.values()))
        if calls is None:
            return None
        return Sessions(
            sessions=len(self._calls),
            single_share=sum(count == 1 for count in self._calls.values()) / len(self._calls),
            calls=calls,
            wait_from="none" if not self._triggers else "mixed" if len(self._triggers) > 1 else min(self._triggers),
            wait_s=spread(self._waits_s),
            new_prompt_tokens=spread(self._new),
        )

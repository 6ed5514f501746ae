"""Which requests are over with what they alone had: those whose own tokens no prompt to come holds."""

from heapq import heappop, heappush

import pytest

from kvsim.content import own_stream
from kvsim.request import PS_PER_S
from kvsim.workload.arrivals import Poisson
from kvsim.workload.layers import Shared
from kvsim.workload.lengths import Constant, Uniform
from kvsim.workload.sessions.history import Window
from kvsim.workload.sessions.laws import Agents, ClientLoop, OnFailure, SessionLaws
from kvsim.workload.sessions.loop import SessionTraffic
from kvsim.workload.stream import GeneratedTraffic, Workload

LENGTHS = {"prompt_tokens": Uniform(min=20, max=200), "output_tokens": Uniform(min=2, max=40)}
TURNS = {"turns": Uniform(min=1, max=5), "new_tokens": Uniform(min=5, max=60), "think_ms": Constant(value=900)}
AGENTS = Agents(share=0.6, relation="fork", count=Constant(value=2), turns=Uniform(min=1, max=2))


def sessions(begin=None, closed=False, **laws):
    begin = begin or {"arrivals": Poisson(rate=2)}
    return SessionTraffic(SessionLaws(**LENGTHS, **TURNS, **laws), closed=closed, requests=80, **begin)


TRAFFICS = {
    "alone": GeneratedTraffic(arrivals=Poisson(rate=5), **LENGTHS, requests=80),
    "by the clock": sessions(),
    "by the answers": sessions(closed=True),
    "windows": sessions(history=Window(turns=1)),
    "agents": sessions(agents=AGENTS, closed=True),
    "agents by the clock": sessions(agents=AGENTS),
    "clients that try again": sessions(
        {"clients": ClientLoop(clients=4)}, on_failure=OnFailure(then="retry", retries=2, back_off_s=1)
    ),
}


@pytest.mark.parametrize("name", TRAFFICS)
def test_no_prompt_to_come_holds_own_tokens_of_a_request_that_is_over(name):
    workload = Workload(TRAFFICS[name], layers=[Shared(name="system", tokens=10)])
    workload.follow()
    stream, running, over, told, came = iter(workload), [], set(), [], 0
    coming = [(request.arrival_ps, request.id, request) for request in stream] if workload.closed else []
    upcoming = next(stream, None)
    while coming or running or upcoming:
        if upcoming and not coming:
            coming.append((upcoming.arrival_ps, upcoming.id, upcoming))
            upcoming = next(stream, None)
        if coming and (not running or coming[0][0] <= running[0][0]):
            arrival_ps, number, request = heappop(coming)
            came += 1
            assert not over & {run.stream for run in request.content.runs}
            # Two seconds are more than the pause between two turns.
            heappush(running, (arrival_ps + 2 * PS_PER_S, number, request))
            continue
        end_ps, number, request = heappop(running)
        if workload.closed:
            end, tokens = ("finished", request.output_tokens) if number % 3 else ("cancelled", 0)
            for more in workload.after(number, end_ps, end, tokens):
                heappush(coming, (more.arrival_ps, more.id, more))
        ids = workload.over(request)
        told += ids
        over |= set(map(own_stream, ids))
    assert len(told) == len(set(told)) == came
    assert came >= 25

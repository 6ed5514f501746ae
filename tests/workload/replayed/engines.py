"""Engines that serve closed loops in no memory at all: what follows what, and when, is theirs to decide."""

from heapq import heappop, heappush

from kvsim.request import PS_PER_S


def served(workload, *, takes_s=1.0, ends=lambda request: "finished", tokens=lambda request: request.output_tokens):
    """All requests of a closed loop in the order of their arrival; each takes `takes_s` (a number, or by request)."""
    coming = [(request.arrival_ps, request.id, request) for request in workload]
    running, done = [], []
    while coming or running:
        if coming and (not running or coming[0][0] <= running[0][0]):
            now_ps, number, request = heappop(coming)
            done.append(request)
            duration_s = takes_s(request) if callable(takes_s) else takes_s
            heappush(running, (now_ps + round(duration_s * PS_PER_S), number, request))
            continue
        end_ps, _, request = heappop(running)
        for following in workload.after(request.id, end_ps, ends(request), tokens(request)):
            assert following.arrival_ps >= end_ps
            heappush(coming, (following.arrival_ps, following.id, following))
    return done


def times(requests):
    """When each came, in seconds, by id."""
    return {request.id: request.arrival_ps / PS_PER_S for request in requests}

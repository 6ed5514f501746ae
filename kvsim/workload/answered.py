"""What a workload asks for, without an engine: each request is answered in full the moment it comes."""

from collections.abc import Iterator
from heapq import heappop, heappush

from kvsim.request import Request
from kvsim.workload.stream import Workload


def answered_at_once(workload: Workload) -> Iterator[Request]:
    """All its requests in order of arrival; in a closed loop those that come because others have ended, too."""
    starts, known = iter(workload), list[tuple[int, int, Request]]()
    coming = next(starts, None)
    while coming is not None or known:
        if coming is not None and (not known or (coming.arrival_ps, coming.id) < known[0][:2]):
            request, coming = coming, next(starts, None)
        else:
            request = heappop(known)[2]
        yield request
        if workload.closed:
            tokens = request.output_tokens + sum(request.more_outputs)
            for caused in workload.after(request.id, request.arrival_ps, "finished", tokens):
                heappush(known, (caused.arrival_ps, caused.id, caused))

"""How much of the prompts has come before: what a prefix cache without end would find of some requests."""

from collections.abc import Iterable
from itertools import islice

from kvsim.errors import KvsimError
from kvsim.request import Request
from kvsim.scenario.build import build
from kvsim.scenario.resolve import Scenario
from kvsim.study.planning.rates.screen import SAMPLE
from kvsim.study.planning.rates.sustained import PLAN

_CACHING = {"allocator": {"name": "paged", "prefix_caching": True}, "workload.requests": SAMPLE}


def repeated_share(scenario: Scenario) -> float:
    """The share of prompt tokens that begin as an earlier prompt of the scenario's traffic did.

    0 where the scenario caches prefixes already, where the traffic says nothing of them, and where the next request
    waits for an answer: nobody knows it before. Costs a second build, and the first `SAMPLE` requests.
    """
    own = build(scenario, scenario.seed).scheduler.allocator
    if own.caches or not own.keeps:
        return 0.0
    changes = _CACHING if scenario.trace is None else {"allocator": _CACHING["allocator"]}
    try:
        workload = build(scenario.changed(changes, PLAN), scenario.seed).workload
    except KvsimError:
        return 0.0
    return 0.0 if workload.closed else found_share(islice(workload, SAMPLE))


def found_share(requests: Iterable[Request]) -> float:
    """The same of some requests: a run counts as far as its stream was seen, up to the first that was not whole."""
    seen: dict[int, int] = {}
    found = asked = 0
    for request in requests:
        left, whole = request.prompt_tokens, True
        asked += left
        for stream, offset, tokens in [] if request.content is None else request.content.runs:
            here = min(tokens, left)
            known = max(0, min(here, seen.get(stream, 0) - offset))
            found += known if whole else 0
            whole = whole and known == here
            seen[stream] = max(seen.get(stream, 0), offset + here)
            left -= here
    return found / asked if asked else 0.0

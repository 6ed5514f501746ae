"""A workload without an engine: everything that would come if answers took no time."""

import pytest

from kvsim.scenario import Scenario
from kvsim.scenario.build import build
from kvsim.workload.answered import answered_at_once

LENGTHS = {"prompt_tokens": 100, "output_tokens": 20}
SESSIONS = {"turns": 4, "new_tokens": 50, "think": "2s"}


def workload(**traffic):
    data = {"model": "llama-3.1-8b", "gpu": "H100", "pool": {"tokens": 9999}, "workload": LENGTHS | traffic}
    return build(Scenario.from_dict(data, name="here"), 0).workload


def test_an_open_stream_is_as_it_is():
    made = workload(rate="3/s", requests=50)
    assert list(answered_at_once(made)) == list(made)


@pytest.mark.parametrize(
    "traffic",
    [
        {"rate": "1/s", "requests": 40, "sessions": SESSIONS | {"loop": "closed"}},
        {"requests": 40, "sessions": SESSIONS, "clients": {"count": 3}},
        {"requests": 12, "clients": {"count": 3, "think": "1s"}},
        {"trace": "lmcache-web-agents", "sessions": {"loop": "closed"}},
    ],
)
def test_in_a_closed_loop_every_turn_comes_in_order_and_later_ones_are_longer(traffic):
    asked = {key: value for key, value in LENGTHS.items() if "trace" not in traffic} | traffic
    data = {"model": "llama-3.1-8b", "gpu": "H100", "pool": {"tokens": 99_999}, "workload": asked}
    came = list(answered_at_once(build(Scenario.from_dict(data, name="here"), 0).workload))
    assert len(came) == traffic.get("requests", 300)
    assert [request.arrival_ps for request in came] == sorted(request.arrival_ps for request in came)
    assert len({request.id for request in came}) == len(came)
    if "sessions" in traffic:
        first = [request.prompt_tokens for request in came if request.turn == 0]
        later = [request.prompt_tokens for request in came if request.turn > 0]
        assert sum(later) / len(later) > sum(first) / len(first)

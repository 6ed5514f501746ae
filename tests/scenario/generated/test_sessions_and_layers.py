"""Sessions, clients, layers, datasets and kinds of client in a scenario: what they become, and each mistake's place."""

from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from kvsim import Scenario, run
from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.scenario.build import build

TRAFFIC = {"rate": "2/s", "requests": 60, "prompt_tokens": 300, "output_tokens": 20}
LOOP = {"requests": 60, "prompt_tokens": 300, "output_tokens": 20}
CACHED = {"name": "paged", "prefix_caching": True}


def scenario(workload: dict[str, Any], **changes: Any) -> Scenario:
    data = {"model": "llama-3.1-8b", "gpu": "H100", "pool": {"tokens": 80000}, "workload": workload}
    return Scenario.from_dict(data | changes, name="here")


def requests(workload: dict[str, Any]) -> list[Any]:
    return list(build(scenario(workload), 0).workload)


def refused(workload: dict[str, Any]) -> str:
    with pytest.raises(InputError) as error:
        requests(workload)
    return str(error.value)


SESSIONS = {
    "loop": "open",
    "turns": 4,
    "new_tokens": {"distribution": "uniform", "min": 10, "max": 20},
    "think": {"distribution": "lognormal", "median": "30s", "sigma": 1, "max": "5min"},
    "history": {"keep": "truncate", "tokens": 500},
    "agents": {"share": 0.5, "count": 2, "relation": "spawn"},
}


def test_sessions_read_back_what_they_wrote() -> None:
    given = scenario(TRAFFIC | {"sessions": SESSIONS})
    again = Scenario.from_dict(given.to_dict(), name="here")
    assert again.settings == given.settings
    assert list(build(given, 3).workload) == list(build(again, 3).workload)


def test_a_session_has_turns_that_repeat_those_before() -> None:
    got = requests(TRAFFIC | {"sessions": {"loop": "open", "turns": 3, "new_tokens": 50, "think": "10s"}})
    assert Counter(request.turn for request in got) == {0: 20, 1: 20, 2: 20}
    assert {request.prompt_tokens for request in got} == {300, 370, 440}
    first = sorted((request for request in got if request.session == 0), key=lambda request: request.turn)
    assert [one.arrival_ps - first[0].arrival_ps for one in first] == [0, 10 * PS_PER_S, 20 * PS_PER_S]


def test_a_closed_loop_runs_to_its_end_and_finds_what_was_said_before() -> None:
    sessions = {"turns": 3, "new_tokens": 50, "think": "1s"}
    told = scenario(TRAFFIC | {"sessions": sessions}, allocator=CACHED)
    result = run(told)
    assert result.metrics["finished"] == 60
    # What is known of the second and third prompt, in whole blocks of 16: of 320 tokens 319 are written, of 390 389.
    assert result.metrics["hit_tokens"] == 20 * (304 + 384)
    assert run(told, stepwise=True).metrics == result.metrics


def test_clients_send_again_when_they_are_answered() -> None:
    told = scenario(LOOP | {"clients": {"count": 4, "think": "2s", "ramp": "1s"}})
    result = run(told)
    assert result.metrics["finished"] == 60
    assert result.metrics["max_running"] <= 4
    assert "sent by 4 clients in a loop" in result.provenance["workload"]
    frame = result.requests
    for client in range(4):
        own = frame[frame.id % 4 == client].sort_values("id")
        waits = own.arrival_s.to_numpy()[1:] - own.end_s.to_numpy()[:-1]
        assert waits == pytest.approx([2.0] * 14)


def test_the_same_requests_under_every_allocator_in_a_closed_loop() -> None:
    loop = LOOP | {"prompt_tokens": {"distribution": "exponential", "mean": 900}, "clients": {"count": 16}}
    frames = [
        run(scenario(loop, allocator=allocator, pool={"tokens": 8000})).requests.set_index("id")
        for allocator in ("paged", "contiguous", {"name": "reserve", "size": "pow2"})
    ]
    for frame in frames[1:]:
        assert frame.prompt_tokens.to_dict() == frames[0].prompt_tokens.to_dict()
        assert frame.output_tokens.to_dict() == frames[0].output_tokens.to_dict()
        assert frame.arrival_s.to_dict() != frames[0].arrival_s.to_dict()


def test_layers_are_a_list() -> None:
    layers = [
        {"name": "system", "tokens": 64},
        {"name": "tenant", "tokens": {"distribution": "uniform", "min": 20, "max": 40}, "texts": 5, "theta": 1},
        {"name": "documents", "tokens": 30, "texts": 50, "count": 2, "order": "fixed"},
    ]
    simulation = build(scenario(TRAFFIC | {"layers": layers}), 0)
    told = simulation.workload.layers()
    for request in simulation.workload:
        levels = [told.of(part.stream) for part in request.content.runs]
        assert levels == ["system", "group", "group", "group", None]


@pytest.mark.parametrize(
    ("dataset", "prompt_tokens", "prefix_tokens", "count"),
    [
        ("prefix_repetition", 512, 256, 60),
        ({"name": "prefix_repetition", "prefix_len": 100, "num_prefixes": 2}, 356, 100, 60),
        ({"name": "generated-shared-prefix", "num_groups": 4}, 2176, 2048, 64),
        ({"name": "shared_prefix", "num_groups": 2, "question_len": 10}, 110, 100, 20),
    ],
)
def test_a_dataset_of_a_load_generator(dataset: Any, prompt_tokens: int, prefix_tokens: int, count: int) -> None:
    workload: dict[str, Any] = {"rate": "5/s", "dataset": dataset}
    if count == 60:
        workload["requests"] = 60
    got = requests(workload)
    assert len(got) == count
    assert {request.prompt_tokens for request in got} == {prompt_tokens}
    assert {one.content.common(other.content) for one, other in combinations(got, 2)} == {0, prefix_tokens}


def test_a_preset_of_sessions_brings_turns_and_pauses() -> None:
    got = requests({"preset": "burstgpt-chat", "rate": "1/s", "requests": 3000, "sessions": {"loop": "open"}})
    sessions = Counter(request.session for request in got)
    assert sum(sessions.values()) / len(sessions) == pytest.approx(2.93, rel=0.15)
    resolved = scenario({"preset": "burstgpt-chat", "rate": "1/s", "requests": 9, "sessions": {}}).resolved()
    assert resolved["workload.sessions.think.preset"] == {"value": "burstgpt-chat", "source": "preset burstgpt-chat"}
    assert "workload.sessions.think.mean" not in resolved


def test_what_is_given_beside_a_preset_of_sessions_stays() -> None:
    sessions = {"turns": 2, "think": {"max": "5s"}, "loop": "open"}
    got = requests({"preset": "agentic-coding", "rate": "1/s", "requests": 200, "sessions": sessions})
    pauses = [two.arrival_ps - one.arrival_ps for one, two in combinations(got, 2) if one.session == two.session]
    assert len(pauses) == 100
    assert max(pauses) == 5 * PS_PER_S


def test_kinds_of_client_have_shares_and_tags() -> None:
    mix = [
        {"weight": 3, "tenant": "chat", "priority": 1, "slo_class": "interactive"},
        {"tenant": "batch", "max_tokens": 5},
    ]
    got = requests(TRAFFIC | {"requests": 2000, "mix": mix, "max_tokens": 64})
    assert {(r.tenant, r.priority, r.slo_class, r.max_tokens) for r in got} == {
        ("chat", 1, "interactive", 64),
        ("batch", 0, "", 5),
    }
    assert sum(request.tenant == "chat" for request in got) == pytest.approx(1500, abs=100)
    assert [r.prompt_tokens for r in got] == [r.prompt_tokens for r in requests(TRAFFIC | {"requests": 2000})]


def test_a_trace_may_have_kinds_of_client_too() -> None:
    got = requests({"trace": "azure-conv-2023", "mix": [{"tenant": "a"}, {"tenant": "b"}]})
    assert {request.tenant for request in got} == {"a", "b"}


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (TRAFFIC | {"clients": {"count": 3}}, "workload.rate: means nothing to a loop of clients"),
        (LOOP | {"clients": {"count": 3}, "arrivals": "gamma"}, "workload.arrivals: means nothing to a loop"),
        (LOOP | {"clients": {"count": 0}}, "workload.clients.count: 0 is below 1"),
        (LOOP | {"clients": {"count": 1}, "sessions": {"loop": "open"}}, "workload.sessions.loop: open goes with no"),
        (LOOP | {"clients": {"count": 1, "think": "1s"}, "sessions": {"think": "1s"}}, "given beside sessions.think"),
        (TRAFFIC | {"prefix": {"tokens": 9}, "layers": [{"name": "s", "tokens": 9}]}, "is given beside prefix"),
        (TRAFFIC | {"layers": [{"name": "s"}]}, "workload.layers.1.tokens: is missing"),
        (TRAFFIC | {"layers": [{"name": "s", "tokens": 0}]}, "workload.layers.1.tokens: 0 is below 1"),
        (TRAFFIC | {"layers": [{"name": "s", "tokens": {"distribution": "lognormal", "mean": 9}}]},
         "workload.layers.1.tokens.sigma: is missing"),
        (TRAFFIC | {"layers": [{"name": "s", "tokens": 9, "count": 2}]}, "count is 2, but there are 1 texts"),
        (TRAFFIC | {"dataset": "sharegpt"}, "workload.dataset"),
        (TRAFFIC | {"dataset": {"name": "shared_prefix", "prefix_len": 4}}, "4 is no option of shared_prefix"),
        (TRAFFIC | {"sessions": {"turns": {"distribution": "pareto", "alpha": 1}}}, "sessions.turns.min: is missing"),
        (TRAFFIC | {"sessions": {"think": 3}}, "workload.sessions.think"),
        (TRAFFIC | {"sessions": {"think": {"distribution": "gamma", "mean": "3s"}}}, "gamma pauses need cv, once"),
        (TRAFFIC | {"sessions": {"think": {"value": "3s", "max": "4s"}}}, "max means nothing to constant pauses"),
        (TRAFFIC | {"sessions": {"think": {"distribution": "preset", "preset": "azure-conv"}}}, "not tell of think_s"),
        (TRAFFIC | {"sessions": {"history": "window"}}, "turns is needed by a history of keep: window"),
        (TRAFFIC | {"sessions": {"history": {"tokens": 5}}}, "tokens means nothing to a history of keep: whole"),
        (TRAFFIC | {"sessions": {"loop": "open", "on_failure": "retry"}}, "nothing where every turn has its time"),
        (TRAFFIC | {"sessions": {"agents": {}}}, "workload.sessions.agents.share: is missing"),
        (TRAFFIC | {"sessions": {"on_failure": "panic"}}, "it must be end, go-on or retry"),
        ({"trace": "azure-conv-2023", "sessions": {"turns": 3}}, "workload.sessions.turns: a trace brings its own"),
        ({"rate": "1/s", "requests": 5, "lengths_of": "azure-conv-2023", "sessions": {}}, "give prompt_tokens and"),
        (TRAFFIC | {"mix": []}, "workload.mix"),
        (TRAFFIC | {"mix": [{"weight": 0}]}, "workload.mix.1.weight: 0 is not above 0"),
    ],
)  # fmt: skip
def test_each_mistake_is_told_with_its_key(workload: dict[str, Any], message: str) -> None:
    assert message in refused(workload)

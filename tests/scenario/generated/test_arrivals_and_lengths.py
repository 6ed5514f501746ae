"""Arrival processes, length laws and presets in a scenario: each by its keys, and each mistake with its place."""

from itertools import islice
from typing import Any

import numpy as np
import pytest

from kvsim import Scenario
from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.scenario.build import build

TRAFFIC = {"rate": "8/s", "requests": 400, "prompt_tokens": 300, "output_tokens": 20}


def requests(seed: int = 0, **changes: Any) -> list[Any]:
    workload = {key: value for key, value in (TRAFFIC | changes).items() if value is not None}
    return list(islice(build(scenario(workload), seed).workload, 4_000))


def scenario(workload: dict[str, Any]) -> Scenario:
    data = {"model": "llama-3.1-8b", "gpu": "H100", "pool": {"tokens": 80000}, "workload": workload}
    return Scenario.from_dict(data, name="here")


def refused(**changes: Any) -> str:
    with pytest.raises(InputError) as error:
        requests(**changes)
    return str(error.value)


PROCESSES = {
    "poisson": {},
    "constant": {},
    "gamma": {"cv": 2},
    "weibull": {"cv": 2},
    "mmpp": {"rates": ["0/s", "10/s"], "sojourns": ["1s", "3s"], "moves": [[0, 1], [1, 0]], "scale": "count"},
    "on-off": {"on": "2s", "off": "3s", "cv": 0.5},
    "diurnal": {"profile": [1, 2] * 12, "noise": 0.2, "day": "2min", "start_hour": 6},
    "spikes": {"factor": 5, "every": "20s", "spike": "2s", "first": "5s"},
    "ramp": {"ramp": "1min", "start": 0.5},
    "stages": {"stages": [{"rate": "2/s", "duration": "30s"}, {"rate": "0/s", "to": "8/s", "duration": "30s"}],
               "repeat": True},
    "clients": {"clients": 12, "theta": 1.1, "each": "gamma", "cv": 1.5},
    "bursty-code": {"scale": "count"},
    "diurnal-reasoning": {"noise": 0.1, "start_hour": 20},
}  # fmt: skip


@pytest.mark.parametrize("process", PROCESSES)
def test_each_process_brings_requests_and_reads_back_what_it_wrote(process: str) -> None:
    given = scenario(TRAFFIC | {"arrivals": {"process": process, **PROCESSES[process]}})
    first = list(build(given, 3).workload)
    assert len(first) == 400
    assert list(build(Scenario.from_dict(given.to_dict(), name="here"), 3).workload) == first
    assert list(build(given, 4).workload) != first or process == "constant"


def test_the_name_of_a_process_alone_is_enough() -> None:
    assert requests(arrivals="bursty-code") == requests(arrivals={"process": "bursty-code"})


@pytest.mark.parametrize(
    ("arrivals", "rate"),
    [("steady-chat", 5.94), ("bursty-code", 2.57),
     ({"process": "mmpp", "rates": ["3/s", "6/s"], "sojourns": ["1s", "2s"]}, 5)],
)  # fmt: skip
def test_a_process_with_a_rate_of_its_own_needs_no_other(arrivals: Any, rate: float) -> None:
    traffic = build(scenario({**TRAFFIC, "arrivals": arrivals, "rate": None} | {"rate": f"{rate}/s"}), 0).traffic
    own = {key: value for key, value in TRAFFIC.items() if key != "rate"} | {"arrivals": arrivals}
    assert build(scenario(own), 0).traffic.describe()["rate_per_s"] == pytest.approx(rate, rel=0.01)
    assert traffic.describe()["rate_per_s"] == rate


def test_stages_end_the_traffic_by_themselves() -> None:
    stages = [{"rate": "5/s", "duration": "40s"}, {"rate": "20/s", "duration": "10s"}]
    got = requests(arrivals={"process": "stages", "stages": stages}, rate=None, requests=None)
    late = sum(request.arrival_ps > 40 * PS_PER_S for request in got)
    assert len(got) - late == pytest.approx(200, abs=50)
    assert late == pytest.approx(200, abs=50)
    assert got[-1].arrival_ps < 50 * PS_PER_S


def test_a_preset_gives_both_lengths_and_says_so() -> None:
    workload = {"preset": "azure-conv", "rate": "4/s", "requests": 4_000}
    got = list(build(scenario(workload), 0).workload)
    assert np.median([request.prompt_tokens for request in got]) == pytest.approx(1014, rel=0.05)
    assert np.median([request.output_tokens for request in got]) == pytest.approx(115.5, rel=0.05)
    resolved = scenario(workload).resolved()
    assert resolved["workload.prompt_tokens.preset"] == {"value": "azure-conv", "source": "preset azure-conv"}


def test_what_is_given_beside_a_preset_changes_or_replaces_a_part_of_it() -> None:
    got = requests(preset="azure-conv", prompt_tokens={"max": 2000}, output_tokens=7)
    assert max(request.prompt_tokens for request in got) == 2000
    assert {request.output_tokens for request in got} == {7}


def test_a_mixture_of_laws_is_written_as_a_list() -> None:
    parts = [{"weight": 1, "distribution": "constant", "value": 5}, {"weight": 1, "distribution": "uniform", "min": 90,
                                                                    "max": 99}]  # fmt: skip
    got = [request.prompt_tokens for request in requests(prompt_tokens={"distribution": "mixture", "parts": parts})]
    assert set(got) <= {5, *range(90, 100)}
    assert got.count(5) == pytest.approx(200, abs=50)


def test_lengths_can_be_the_rows_of_a_trace() -> None:
    traced = list(build(scenario({"trace": "azure-conv-2023"}), 0).workload)
    rows = {(request.prompt_tokens, request.output_tokens) for request in traced}
    got = requests(lengths_of="azure-conv-2023", prompt_tokens=None, output_tokens=None, samples=2)
    assert {(request.prompt_tokens, request.output_tokens) for request in got} < rows
    assert all(request.more_outputs == (request.output_tokens,) for request in got)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrivals": "mmpp"}, "workload.arrivals.rates: is missing; mmpp arrivals need the rate in each state"),
        ({"arrivals": {"process": "clients", "clients": 3, "each": "gamma"}}, "workload.arrivals.cv: is missing"),
        ({"arrivals": {"process": "ramp", "ramp": "1min", "clients": 3}}, "workload.arrivals.clients: 3 means nothing"),
        ({"arrivals": {"process": "client-mix", "scale": "count"}}, "means nothing to client-mix arrivals"),
        ({"arrivals": {"process": "on-off", "on": "0s", "off": "1s"}}, "workload.arrivals.on: "),
        ({"arrivals": {"process": "diurnal", "profile": [1]}}, "workload.arrivals.profile"),
        ({"arrivals": "steady-chats"}, "did you mean steady-chat?"),
        ({"preset": "azure-con"}, "workload.preset: azure-con is no preset of lengths; did you mean azure-conv"),
        ({"lengths_of": "azure-conv-2023"}, "workload.prompt_tokens: is given beside lengths_of"),
        ({"lengths_of": "nowhere.csv", "prompt_tokens": None, "output_tokens": None}, "workload.lengths_of: nowhere"),
        ({"prompt_tokens": {"distribution": "mixture"}}, "workload.prompt_tokens.parts: is missing"),
        ({"prompt_tokens": {"distribution": "mixture", "parts": [{"distribution": "constant", "value": 3}]}},
         "workload.prompt_tokens.parts.1.weight: is missing; it is needed: its weight among the parts"),
        ({"prompt_tokens": {"distribution": "weibull", "mean": 5, "scale": 5, "shape": 1}}, "one of mean or scale"),
        ({"prompt_tokens": {"distribution": "preset", "preset": "azure-conv", "of": "turns"}}, "tell of turns"),
        ({"prompt_tokens": {"distribution": "constant", "value": 3, "outside": "clip"}}, "means nothing to constant"),
        ({"rate": None}, "workload.rate: is missing"),
        ({"arrivals": {"process": "mmpp", "rates": ["1/s", "2/s"], "sojourns": ["1s"]}}, "rates: must be two or more"),
    ],
)  # fmt: skip
def test_each_mistake_is_told_with_its_key(changes: dict[str, Any], message: str) -> None:
    assert message in refused(**changes)

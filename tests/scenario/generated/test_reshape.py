"""`workload.reshape` in a scenario: what becomes of a trace and of generated traffic."""

from typing import Any

import pytest

from kvsim import Scenario
from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.scenario.build import build

TRAFFIC = {"rate": "4/s", "prompt_tokens": 300, "output_tokens": 20}
TRACE = {"trace": "azure-conv-2023"}


def requests(workload: dict[str, Any], **changes: Any) -> list[Any]:
    data = {"model": "llama-3.1-8b", "gpu": "H100", "pool": {"tokens": 80000}, "workload": workload}
    return list(build(Scenario.from_dict(data | changes, name="here"), 0).workload)


def test_a_window_of_a_trace_twice_as_long_and_again() -> None:
    whole = [request for request in requests(TRACE) if 20 <= request.arrival_ps / PS_PER_S < 60]
    reshape = {"start": "20s", "until": "60s", "output_times": 2, "repeat": 2}
    got = requests(TRACE | {"reshape": reshape})
    assert len(got) == 2 * len(whole)
    assert [r.output_tokens for r in got] == [2 * r.output_tokens for r in whole] * 2
    assert got[len(whole)].arrival_ps == whole[0].arrival_ps + 20 * PS_PER_S


def test_a_window_ends_generated_traffic() -> None:
    assert len(requests(TRAFFIC | {"reshape": {"until": "100s"}})) == pytest.approx(400, abs=80)


def test_a_share_falls_by_count() -> None:
    assert len(requests(TRACE | {"reshape": {"share": "50%"}})) == pytest.approx(300, abs=50)


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (TRAFFIC | {"reshape": {"until": "0s"}}, "workload.reshape.until"),
        (TRAFFIC | {"reshape": {"start": "9s", "until": "5s"}}, "workload.reshape.until: 5s is not after start, 9s"),
        (TRAFFIC | {"reshape": {"until": "9s", "share": 0}}, "workload.reshape.share: 0 keeps nothing"),
        (TRAFFIC | {"reshape": {"share": 0.5}}, "workload.requests: is missing"),
        (
            TRAFFIC | {"sessions": {}, "requests": 5, "reshape": {"share": 0.5}},
            "reshape: is for requests that",
        ),
        (TRACE | {"reshape": {"start": "1h"}}, "no request is left"),
    ],
)
def test_each_mistake_is_told(workload: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        requests(workload)
    assert message in str(error.value)

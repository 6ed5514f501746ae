"""The names of metrics that are known beforehand are those of the numbers that runs have."""

import pytest

from kvsim import Scenario, run
from kvsim.metrics.names import OF_TENANTS, metric_names
from kvsim.study.sweeps.runs import flat
from tests.study.test_fleet import CACHED, scenario

SLO = {"ttft": "1s", "classes": {"gold": {"ttft": "1s"}}}


def numbers(metrics):
    found = {name for name, value in flat(metrics).items() if isinstance(value, int | float)}
    return {name for name in found if not name.startswith(OF_TENANTS)}


@pytest.mark.parametrize(
    "changes", [CACHED, {"allocator": "contiguous", "pool": None}, {"allocator": "no-cache", "pool": None}]
)
def test_every_number_of_a_run_has_a_name_that_was_known(changes):
    given = scenario(replicas=None, **changes).to_dict() | {"slo": SLO}
    given["workload"] |= {"requests": 20, "mix": [{"slo_class": "gold"}, {}]}
    found = numbers(run(Scenario.from_dict(given, name="here")).metrics)
    assert found <= set(metric_names(["gold"]))


def test_every_name_is_that_of_a_number_that_some_run_has():
    cached = scenario(replicas=None, **CACHED, pool={"tokens": 4000}).to_dict() | {"slo": SLO}
    cached["workload"] |= {"mix": [{"slo_class": "gold"}, {}]}
    contiguous = scenario(replicas=None, allocator="contiguous", pool=None, engine={"max_num_seqs": 300}).to_dict()
    holes = scenario(replicas=None, allocator="contiguous", pool={"tokens": 4000})
    found = [run(Scenario.from_dict(one, name="here")).metrics for one in (cached, contiguous)] + [run(holes).metrics]
    assert set(metric_names(["gold"])) == set().union(*map(numbers, found))

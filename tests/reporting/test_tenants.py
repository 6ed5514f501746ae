"""What each tenant got adds up to the run, and is what the table of requests says."""

import numpy as np
import pytest

from kvsim.metrics.requests.records import Ended
from kvsim.reporting.tenants import NOBODY, tenant_table
from kvsim.scenario import Scenario
from kvsim.study import run
from tests.fake_results import fake_result

SCENARIO = {
    "model": "llama-3.1-8b", "gpu": "RTX 4090", "pool": {"blocks": 200}, "slo": {"ttft": "4s"},
    "engine": {"profile": "vllm@0.33", "max_num_seqs": 16, "max_model_len": 2048},
    "workload": {
        "rate": "10/s", "requests": 80, "prefix": {"tokens": 48, "groups": 2, "theta": 1},
        "prompt_tokens": {"distribution": "uniform", "min": 60, "max": 2060},
        "output_tokens": {"distribution": "uniform", "min": 50, "max": 200},
        "mix": [{"tenant": "a", "max_tokens": 40}, {"tenant": "<b>", "weight": 2}, {"slo_class": "gold"}, {}],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def result():
    return run(Scenario.from_dict(SCENARIO))


@pytest.fixture(scope="module")
def told(result):
    return result.metrics["tenants"]


def test_every_request_is_somebodys_by_tenant_and_else_by_class_of_service(result, told):
    requests = result.requests
    whose = requests.tenant.fillna(requests.slo_class).fillna("")
    assert set(told) == set(whose) == {"a", "<b>", "gold", ""}
    for name, one in told.items():
        own = requests[whose == name]
        assert one["arrived"] == len(own)
        for end in ("finished", "rejected", "cancelled", "aborted", "unfinished"):
            assert one[end] == (own.end == end).sum()
        assert one["prompt_tokens"] == own.prompt_tokens.sum()
        assert one["output_tokens"] == own.generated_tokens.sum()
        assert one["hit_tokens"] == own.hit_tokens.sum()
        for latency in ("ttft_s", "tpot_s"):
            values = own[latency].dropna()
            assert one[latency]["mean"] == pytest.approx(values.mean(), rel=1e-12)
            assert one[latency]["p99"] == pytest.approx(np.percentile(values, 99), rel=1e-12)
    assert list(told) == sorted(told, key=lambda name: (-told[name]["arrived"], name))


def test_what_all_tenants_got_is_what_the_run_put_out(result, told):
    for name in ("finished", "rejected", "hit_tokens"):
        assert sum(one[name] for one in told.values()) == result.metrics[name]
    assert result.metrics["rejected"] > 0
    assert sum(one["goodput_per_s"] for one in told.values()) == pytest.approx(result.metrics["goodput_per_s"])
    assert result.metrics["goodput_per_s"] > 0


def test_kv_held_lies_between_what_was_valid_and_what_was_taken(result, told):
    memory = result.memory
    lasting = np.diff(memory.time_s)
    valid = memory.used + memory.shared
    taken = valid + memory.reserved + memory.internal + memory.dead + memory.moving
    least, most = (float((levels[:-1] * lasting).sum()) for levels in (valid, taken))
    assert result.metrics["preemptions"] > 0
    held = sum(one["kv_token_s"] for one in told.values())
    assert least <= held <= most
    shares = sum(one["pool_time_share"] for one in told.values())
    assert shares == pytest.approx(held / (result.metrics["pool_tokens"] * result.metrics["simulated_s"]))


def test_kv_held_by_one_request_by_hand():
    one = Ended(0, 0, 100, 11, None, 0, "", 1000, 3000, 9000, "finished", "eos", 11, 0, 0, 0, hit_tokens=40)
    # From 40 to 100 tokens for 2000, from 100 to 110 for 6000.
    assert one.held_token_ps == 70 * 2000 + 105 * 6000
    assert one._replace(preemptions=1, away_ps=1500).held_token_ps == 70 * 2000 + 105 * 4500
    assert one._replace(first_scheduled_ps=None).held_token_ps == 0


def test_the_table_has_a_column_for_each_and_shows_who_named_nobody(result, told):
    table = tenant_table(result)
    assert table.names == tuple(name or NOBODY for name in told)
    [group] = table.groups
    rows = {row.label: row for row in group.rows}
    assert rows["arrived"].values == tuple((one["arrived"],) for one in told.values())
    assert {"hit rate", "goodput", "TTFT, p50 / p99", "share of the pool's time"} <= set(rows)
    assert all(len(row.values) == 4 for row in group.rows)


def test_one_tenant_is_no_table():
    scenario = {**SCENARIO, "workload": {"rate": "9/s", "requests": 3, "prompt_tokens": 9, "output_tokens": 9,
                                         "tenant": "a"}}  # fmt: skip
    alone = run(Scenario.from_dict(scenario))
    assert "tenants" not in alone.metrics
    assert tenant_table(alone) is None


def test_of_many_tenants_those_with_the_most_requests_are_told():
    mix = [{"tenant": f"customer number {number:02d} of this cloud", "weight": 40 - number} for number in range(40)]
    lengths = {"prompt_tokens": 9, "output_tokens": 9}
    workload = {"rate": "99/s", "requests": 800, "mix": mix, **lengths}
    crowded = run(Scenario.from_dict({**SCENARIO, "pool": {"blocks": 2000}, "workload": workload}))
    table = tenant_table(crowded)
    assert len(table.names) == 32
    left_out = crowded.requests.tenant.nunique() - 32
    assert crowded.metrics["tenants_left_out"] == left_out > 3
    assert table.note.endswith(f"{left_out} tenants with fewer requests are left out.")
    assert all(len(name) <= 24 for name in table.names)


def test_a_fleet_has_one_account_for_each_tenant():
    fleet = {**SCENARIO, "fleet": {"replicas": 2, "router": "round-robin"}}
    told = run(Scenario.from_dict(fleet)).metrics["tenants"]
    assert set(told) == {"a", "<b>", "gold", ""}
    assert sum(one["arrived"] for one in told.values()) == 80
    alone = run(Scenario.from_dict(SCENARIO)).metrics["tenants"]
    assert {name: one["prompt_tokens"] for name, one in told.items()} == {
        name: one["prompt_tokens"] for name, one in alone.items()
    }


def test_results_of_before_have_none():
    assert tenant_table(fake_result()) is None

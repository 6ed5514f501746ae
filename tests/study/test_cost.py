"""What a run costs: its GPUs by the hour, whoever says their price, over what they put out."""

import pytest

import kvsim
from kvsim.catalog.gpus import gpu
from kvsim.errors import InputError

BASE = {
    "model": "llama-3.1-8b",
    "gpu": "RTX 4090",
    "pool": {"tokens": 20000},
    "engine": {"profile": "vllm@0.33-sync", "max_model_len": 4096},
    "workload": {"rate": "4/s", "requests": 40, "prompt_tokens": 500, "output_tokens": 100},
}


def ran(**changes):
    return kvsim.run(kvsim.Scenario.from_dict({**BASE, **changes}))


def test_a_run_costs_the_middle_of_the_catalogues_range_and_says_who_says_so():
    result = ran()
    cost, card = result.metrics["cost"], gpu("RTX 4090")
    hourly = (card.usd_per_hour_low + card.usd_per_hour_high) / 2
    assert cost["gpus"] == 1
    assert cost["usd_per_hour"] == hourly
    assert [cost["usd_per_gpu_hour_low"], cost["usd_per_gpu_hour_high"]] == [
        card.usd_per_hour_low,
        card.usd_per_hour_high,
    ]
    tokens_per_hour = 3600 * result.metrics["output_tokens_per_s"]
    assert cost["usd_per_million_output_tokens"] == pytest.approx(1e6 * hourly / tokens_per_hour)
    assert cost["usd_per_million_requests"] == pytest.approx(1e6 * hourly / (3600 * result.metrics["requests_per_s"]))
    assert card.source_price in result.provenance["price"]
    assert "0.30 to 0.75" in result.provenance["price"]


def test_every_gpu_of_every_replica_is_paid_at_the_price_that_the_scenario_gives():
    result = ran(tensor_parallel=2, pipeline_parallel=2, fleet={"replicas": 3}, price={"usd_per_gpu_hour": 2.5})
    assert result.metrics["cost"]["gpus"] == 12
    assert result.metrics["cost"]["usd_per_hour"] == 30.0
    assert result.provenance["price"] == "RTX-4090, 2.50 US dollars a GPU-hour (given in the scenario)"


def test_a_fleet_that_is_scaled_pays_for_the_time_that_its_replicas_were_there():
    scale = {"metric": "waiting", "target": 1, "interval": "2s", "start_up": "1s", "settle": "4s"}
    result = ran(
        fleet={"replicas": 4, "autoscale": scale}, workload={**BASE["workload"], "rate": "12/s", "requests": 90}
    )
    paid_s = sum(result.tables["replicas"]["paid_s"])
    there = paid_s / result.metrics["simulated_s"]
    assert 1 < there < 4
    assert result.metrics["cost"]["gpus"] == pytest.approx(there, rel=1e-9)


def test_without_a_known_price_there_is_no_cost_and_the_run_says_what_to_give():
    result = ran(gpu="A10")
    cost = result.metrics["cost"]
    assert cost["gpus"] == 1
    assert {value for name, value in cost.items() if name != "gpus"} == {None}
    assert "not known; give price.usd_per_gpu_hour" in result.provenance["price"]


@pytest.mark.parametrize("wrong", [0, -1, 1e308, "2.5USD"])
def test_a_price_is_a_number_above_zero_that_can_be_paid(wrong):
    with pytest.raises(InputError, match=r"price\.usd_per_gpu_hour"):
        kvsim.Scenario.from_dict({**BASE, "price": {"usd_per_gpu_hour": wrong}})


def test_a_comparison_and_a_sweep_tell_costs_too():
    from kvsim.reporting.comparison import comparison_table

    result = ran()
    [group] = [one for one in comparison_table([result]) if one.heading == "Cost"]
    assert [(row.label, row.unit, row.text(0)) for row in group.rows[:1]] == [("an hour", "USD", "0.53")]
    found = kvsim.sweep(BASE, grid={"workload.rate": ["2/s", "4/s"]}, jobs=1)
    assert (
        found.rows[1]["cost.usd_per_million_output_tokens"] == result.metrics["cost"]["usd_per_million_output_tokens"]
    )

"""`run`: one scenario, one seed, one Result that depends on nothing else."""

import json
from typing import Any

import pytest

from kvsim import Scenario, run
from kvsim.metrics.result import COLUMNS, Result, to_json
from kvsim.step import CLASSES

TRAFFIC = {
    "rate": "6/s",
    "requests": 60,
    "prompt_tokens": {"distribution": "lognormal", "median": 400, "sigma": 0.7, "min": 16, "max": 1500},
    "output_tokens": {"distribution": "lognormal", "median": 110, "sigma": 0.6, "min": 1, "max": 500},
}
# Tight enough that every allocator makes some requests wait.
DEFAULT: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "RTX 4090",
    "pool": {"tokens": 6144},
    "engine": {"max_model_len": 2048},
    "workload": TRAFFIC,
    "slo": {"ttft": "2s", "tpot": "50ms"},
}
ALLOCATORS = ("paged", "contiguous", "reserve")


def scenario(**changes: Any) -> Scenario:
    return Scenario.from_dict(DEFAULT | changes, name="small")


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_every_allocator_serves_a_scenario_under_check(allocator):
    result = run(scenario(allocator=allocator), check=True)
    found = result.metrics
    assert (result.name, result.seed) == ("small", 0)
    assert found["arrived"] == found["finished"] == 60
    assert sum(found["mean_share"].values()) == pytest.approx(1, abs=1e-12)
    assert found["blocked"]["capacity"] > 0
    assert 0 < found["goodput_per_s"] <= found["requests_per_s"]
    assert found["queue_s"]["max"] + found["prefill_s"]["max"] >= found["ttft_s"]["max"] > 0
    assert found["pool_tokens"] == 6144
    assert found["pool_blocks"] == (384 if allocator == "paged" else None)
    assert result.wall_s is not None
    assert json.loads(to_json(result.summary))["metrics"]["finished"] == 60


def test_what_each_allocator_wastes_is_what_it_is_known_for():
    found = {name: run(scenario(allocator=name)).metrics for name in ALLOCATORS}
    # Three regions of 2,048 slots fit; paged runs as many as there are blocks for.
    assert found["reserve"]["max_running"] == 3
    assert found["paged"]["max_running"] > 6
    assert found["reserve"]["mean_share"]["internal"] > 0.3
    assert found["paged"]["mean_share"]["internal"] < 0.05
    assert found["paged"]["mean_share"]["external"] == 0
    assert found["contiguous"]["mean_share"]["external"] > 0
    assert found["contiguous"]["copied_bytes"] > 0 == found["paged"]["copied_bytes"] == found["reserve"]["copied_bytes"]
    assert found["paged"]["mean_share"]["used"] > found["reserve"]["mean_share"]["used"]


def test_copied_bytes_are_whole_tokens():
    assert run(scenario(allocator="contiguous")).metrics["copied_bytes"] % 131072 == 0


def test_the_pool_of_the_card_is_used_where_none_is_given():
    data = {key: value for key, value in DEFAULT.items() if key != "pool"}
    assert run(Scenario.from_dict(data)).metrics["pool_tokens"] == 2596 * 16


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_the_same_scenario_and_seed_leave_the_same_bytes(tmp_path, allocator):
    for folder in ("a", "b"):
        run(scenario(allocator=allocator), seed=3).save(tmp_path / folder)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert set(names) >= {"summary.json", "scenario.yaml", "resolved.json", *(f"{table}.parquet" for table in COLUMNS)}
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_a_saved_run_is_read_back_with_its_frames(tmp_path):
    result = run(scenario())
    result.save(tmp_path)
    back = Result.load(tmp_path)
    assert back.summary == result.summary
    for table in COLUMNS:
        ours, theirs = getattr(result, table), getattr(back, table)
        assert ours.equals(theirs), table


def test_another_seed_brings_other_traffic():
    one, two = run(scenario(), seed=1), run(scenario(), seed=2)
    assert one.tables["requests"]["arrival_s"] != two.tables["requests"]["arrival_s"]
    assert one.metrics["e2e_s"] != two.metrics["e2e_s"]
    assert (one.seed, two.seed) == (1, 2)


def test_the_seed_is_the_scenarios_unless_one_is_given():
    assert run(scenario(seed=7)).seed == 7
    assert run(scenario(seed=7), seed=0).seed == 0
    assert run(scenario(seed=7)).metrics == run(scenario(), seed=7).metrics


def test_the_resolved_scenario_holds_the_seed_that_was_used():
    assert run(scenario(seed=7)).scenario_resolved["seed"]["value"] == 7
    assert run(scenario(seed=7), seed=9).scenario_resolved["seed"] == {"value": 9, "source": "--seed"}


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"window": {"warmup": "2s"}},
        {"window": {"until": "saturated"}},
        {"horizon": "7s"},
        {"workload": TRAFFIC | {"cancel": {"after": "3s", "share": 0.5}}},
    ],
    ids=["plain", "warm-up", "saturated", "horizon", "cancel"],
)
def test_stepwise_gives_the_same_summary(allocator, changes):
    leaping, stepping = (run(scenario(allocator=allocator, **changes), stepwise=how) for how in (False, True))
    assert leaping.summary == stepping.summary
    assert leaping.tables["requests"] == stepping.tables["requests"]
    assert leaping.tables["events"] == stepping.tables["events"]
    assert len(leaping.tables["steps"]["steps"]) < len(stepping.tables["steps"]["steps"])


def test_the_frames_are_those_of_the_tables():
    result = run(scenario())
    assert len(result.requests) == 60
    assert result.steps["steps"].sum() == result.metrics["steps"]
    assert (result.memory[list(CLASSES)].sum(axis=1) == 6144).all()
    assert len(result.events) == sum(result.metrics["blocked"].values())
    e2e = result.requests["e2e_s"]
    assert e2e.mean() == pytest.approx(run(scenario(window={"until": "last_finish"})).metrics["e2e_s"]["mean"])


def test_the_time_weighted_mean_of_the_memory_frame_is_the_mean_share():
    result = run(scenario(window={"until": "last_finish"}), stepwise=True)
    frame = result.memory
    length = frame["time_s"].diff().shift(-1).fillna(0)
    for name in CLASSES:
        mean = (frame[name] * length).sum() / length.sum() / 6144
        assert mean == pytest.approx(result.metrics["mean_share"][name], abs=1e-9), name


def test_a_horizon_leaves_requests_unfinished():
    found = run(scenario(horizon="4s")).metrics
    assert found["simulated_s"] == 4
    assert found["unfinished"] > 0
    assert found["arrived"] < 60
    assert found["arrived"] == found["finished"] + found["unfinished"]


def test_traffic_without_an_end_stops_at_the_horizon():
    traffic = {key: value for key, value in TRAFFIC.items() if key != "requests"}
    found = run(scenario(workload=traffic, horizon="20s")).metrics
    assert found["simulated_s"] == 20
    assert 80 < found["arrived"] < 160  # 6/s: 120, and some


def test_clients_that_lose_patience_are_cancelled_when_they_do():
    result = run(scenario(workload=TRAFFIC | {"cancel": {"after": "1s"}}))
    found = result.metrics
    assert found["cancelled"] > 10
    assert found["finished"] + found["cancelled"] == 60
    stays = result.requests.loc[result.requests["end"] == "cancelled", "e2e_s"]
    assert (stays >= 1).all()
    assert (stays < 1.5).all()  # one that runs leaves when its step is over


def test_a_limit_of_the_client_cuts_outputs():
    result = run(scenario(workload=TRAFFIC | {"max_tokens": 20}))
    assert max(result.tables["requests"]["generated_tokens"]) == 20
    assert set(result.tables["requests"]["finish_reason"]) == {"eos", "max_tokens"}


def test_a_prompt_over_the_models_limit_is_rejected_as_never():
    result = run(scenario(workload=TRAFFIC | {"prompt_tokens": 2048}))
    assert result.metrics["rejected"] == 60
    assert result.metrics["blocked"]["never"] == 60
    assert result.metrics["steps"] == 0
    to_json(result.summary)


def test_progress_rises_to_at_most_one():
    seen: list[tuple[float, str]] = []
    run(scenario(), progress=lambda share, what: seen.append((share, what)))
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.2
    assert shares[-1] == 1
    assert {what for _, what in seen} == {"small"}


def test_progress_of_a_trace_knows_its_length():
    shares: list[float] = []
    run(
        scenario(workload={"trace": "azure-conv-2023", "requests": 40}, pool={"tokens": 41408}, engine={}),
        progress=lambda share, _: shares.append(share),
    )
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_a_run_whose_length_nobody_knows_reports_no_progress():
    traffic = {key: value for key, value in TRAFFIC.items() if key != "requests"}
    seen: list[float] = []
    run(scenario(workload=traffic, horizon="3s"), progress=lambda share, _: seen.append(share))
    assert seen == []


def test_watching_changes_nothing():
    assert run(scenario(), progress=lambda *_: None, check=True).summary == run(scenario()).summary


def test_a_warm_up_is_left_out_of_what_is_measured_and_not_of_what_is_counted():
    whole, later = (run(scenario(window=window)) for window in ({}, {"warmup": "2s"}))
    arrivals = whole.tables["requests"]["arrival_s"]
    assert whole.metrics["window_s"] == [0, arrivals[-1]]
    assert later.metrics["window_s"] == [2, arrivals[-1]]
    assert later.metrics["finished"] == 60
    assert later.metrics["mean_share"]["used"] > whole.metrics["mean_share"]["used"]  # without the empty start
    measured = [e2e for arrival, e2e in zip(arrivals, later.tables["requests"]["e2e_s"], strict=True) if arrival >= 2]
    assert later.metrics["e2e_s"]["mean"] == pytest.approx(sum(measured) / len(measured))


@pytest.mark.parametrize("until", ["auto", "last_finish", "saturated"])
@pytest.mark.parametrize("horizon", ["30s", None])
def test_a_warm_up_that_outlasts_the_run_measures_nothing(horizon, until):
    end = {} if horizon is None else {"horizon": horizon}
    found = run(scenario(window={"warmup": "1h", "until": until}, **end)).metrics
    assert found["itl_s"] is None
    assert found["ttft_s"] is None
    assert found["output_tokens_per_s"] is None
    assert set(found["mean_share"].values()) == {None}
    assert found["arrived"] == 60


def test_a_run_that_stops_at_its_horizon_does_not_read_what_lies_beyond(tmp_path):
    """Row 1,201 is bad, and the run has no need of it: it reads a thousand requests ahead, not the whole trace."""
    rows = [f"2023-11-16 00:{n // 60:02d}:{n % 60:02d}.0000000,50,5" for n in range(1200)]
    trace = tmp_path / "long.csv"
    trace.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows, "nonsense"]), "utf-8")
    result = run(Scenario.from_dict({
        "model": "llama-3.1-8b", "gpu": "RTX 4090", "pool": {"tokens": 4096}, "horizon": "10s",
        "workload": {"trace": str(trace)},
    }))  # fmt: skip
    assert result.metrics["arrived"] == 11
    assert not [note for note in result.notes if "rows" in note]


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_recording_addresses_changes_nothing_else(allocator):
    plain, recorded = run(scenario(allocator=allocator)), run(scenario(allocator=allocator), addresses=True)
    assert recorded.summary == plain.summary
    stepwise = run(scenario(allocator=allocator), stepwise=True)
    assert {table: recorded.tables[table] for table in COLUMNS} == dict(stepwise.tables)


def test_addresses_are_saved_where_they_were_recorded_and_no_old_ones_stay(tmp_path):
    recorded, plain = run(scenario(), addresses=True), run(scenario())
    recorded.save(tmp_path)
    back = Result.load(tmp_path)
    assert back.addresses.equals(recorded.addresses)
    assert list(back.addresses.columns) == ["time_s", "start", "length", "request", "sample", "class"]
    assert set(back.addresses["class"]) <= set(CLASSES)
    assert (back.addresses["request"].isna() == (back.addresses["class"] == "free")).all()
    plain.save(tmp_path)
    with pytest.raises(ValueError, match="addresses were not recorded"):
        _ = Result.load(tmp_path).addresses


def test_lengths_outside_their_bounds_are_counted_where_they_are_many():
    few = TRAFFIC["prompt_tokens"] | {"max": 400}
    for outside, done in (("clip", "were put on them"), ("redraw", "were drawn again")):
        [note] = run(scenario(workload=TRAFFIC | {"prompt_tokens": few | {"outside": outside}})).notes
        share, _, rest = note.partition(" ")
        assert rest == f"of the prompt lengths drawn lay outside their bounds and {done}."
        # Half of a lognormal law lies above its median; five standard deviations of the share of 60.
        assert float(share.rstrip("%")) == pytest.approx(50, abs=33)
    wide = TRAFFIC["prompt_tokens"] | {"max": 9000}
    assert run(scenario(workload=TRAFFIC | {"prompt_tokens": wide})).notes == []

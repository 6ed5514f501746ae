"""`kvsim plan`: the answer in the first line, 80 columns, JSON and nothing else, exit codes, the folder, the cliff."""

import json

import pytest

from kvsim.cli.main import main
from tests.study.planning.small import YAML

FAST = ("--replications", "1", "--tolerance", "50%", "--jobs", "1")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "s.yaml").write_text(YAML)


def plan(*arguments):
    return main(["plan", "s.yaml", *arguments, *FAST])


def test_the_answer_comes_first_and_the_table_fits_80_columns(tmp_path, capsys):
    options = ("--slo", "ttft_p99<200ms, tpot_p95<22ms", "--gpus", "RTX 4090,A100-SXM-80GB", "--replicas", "1..3")
    assert plan(*options, "-o", "out") == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert out.startswith("Cheapest to meet ttft_p99<200ms, tpot_p95<22ms at 8.00/s: 3 x RTX-4090, 3 GPUs,\n")
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.startswith(("RTX-4090 ", "A100-"))}
    assert rows["RTX-4090"][1:5] == ["3", "x", "1", "yes"]
    assert rows["A100-SXM-80GB"][1:5] == ["1", "x", "1", "yes"]
    assert "expected error: TPOT" in out
    assert "held on fresh seeds" in " ".join(out.split())
    assert " binds. " in out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("plan.json", "candidates.parquet", "pareto.png", "pareto.svg", "README.md"),
    }
    import pyarrow.parquet as pq

    told = json.loads((tmp_path / "out" / "plan.json").read_text())
    table = pq.read_table(tmp_path / "out" / "candidates.parquet").to_pydict()
    assert table["gpus"] == [one["gpus"] for one in told["candidates"]] == [3, 1]
    assert table["usd_per_hour"] == [one["usd_per_hour"] for one in told["candidates"]]


def test_json_is_one_object_and_a_plan_without_an_answer_ends_with_exit_3(capsys):
    assert plan("--slo", "tpot_p95<5ms", "--tp", "1", "--replicas", "1", "--json") == 3
    found = json.loads(capsys.readouterr().out)
    assert found["meets"] is False
    assert found["fewest_gpus"] is None
    assert found["nearest"]["missed_by"] > 1
    assert found["candidates"][0]["at_rate"]["unmet"] == ["tpot_p95<5ms"]
    assert plan("--slo", "tpot_p95<5ms", "--tp", "1", "--replicas", "1") == 3
    assert capsys.readouterr().out.startswith("No candidate meets tpot_p95<5ms at 8.00/s.")


def test_the_slo_of_the_scenario_holds_where_none_is_given_and_a_price_of_ones_own_too(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(f"{YAML}slo: {{ttft: 1s, tpot: 100ms}}\n")
    assert plan("--tp", "1", "--set", "price.usd_per_gpu_hour=2.5", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(goal["name"], goal["limit"]) for goal in found["goals"]] == [("ttft_p99", 1.0), ("tpot_p99", 0.1)]
    assert found["candidates"][0]["usd_per_hour"] == 2.5
    assert "given in the scenario" in found["provenance"][0]["price"]


def test_every_option_for_candidates_makes_candidates(capsys):
    options = ("--kv-dtype", "bf16,fp8", "--block-size", "16", "--prefix-caching", "on,off", "--utilization", "0.9")
    assert plan("--slo", "ttft_p99<1s", *options, "--vary", "engine.max_num_seqs=64", "--json") == 0
    made = json.loads(capsys.readouterr().out)["candidates"]
    assert [one["name"] for one in made] == [
        *("KV bf16 caching", "KV bf16 no caching", "KV fp8 caching", "KV fp8 no caching"),
    ]
    assert made[0]["changes"] == {
        "model.kv_dtype": "bf16",
        "allocator.block_size": 16,
        "allocator.prefix_caching": True,
        "capacity.gpu_memory_utilization": 0.9,
        "engine.max_num_seqs": 64,
    }
    assert made[2]["pool_tokens_per_replica"] > 1.9 * made[0]["pool_tokens_per_replica"]


def test_the_cliff_is_told_drawn_and_kept(tmp_path, capsys):
    assert plan("--where-is-the-cliff", "--set", "pool.tokens=4096", "-o", "out") == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert out.startswith("s has its knee at ")
    assert "the queue grows without end" in " ".join(out.split())
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("cliff.json", "rates.parquet", "cliff.png", "cliff.svg", "README.md"),
    }
    told = json.loads((tmp_path / "out" / "cliff.json").read_text())
    rates = [one["rate_per_s"] for one in told["rates"]]
    assert told["knee_per_s"] in rates
    assert " ".join(out.split()).startswith(told["answer"])
    assert told["saturated_from_per_s"] == min(
        rate for rate, one in zip(rates, told["rates"], strict=True) if one["saturated"]
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--slo", "fast"], "--slo: 'fast' is no goal; write NAME<LIMIT"),
        ([], "--slo: is missing, and the scenario has no slo"),
        (["--slo", "goodput>95%"], "--slo: goodput: is the share of requests within the scenario's slo"),
        (["--slo", "ttft_p99<1s", "--gpus", "H1000"], "candidate H1000: gpu: "),
        (["--slo", "ttft_p99<1s", "--gpus", ","], "--gpus: names no candidate"),
        (["--slo", "ttft_p99<1s", "--gpus", "L4,L4"], "--gpus: L4 is given twice"),
        (["--slo", "ttft_p99<1s", "--tp", "3"], "tensor_parallel: 3 does not divide the 32 heads"),
        (["--slo", "ttft_p99<1s", "--prefix-caching", "maybe"], "'maybe' is neither on nor off"),
        (["--slo", "ttft_p99<1s", "--vary", "engine.max_num_seq=4"], "engine.max_num_seq: 4 is given for an unknown"),
        (["--slo", "ttft_p99<1s", "--tp", "1", "--vary", "tensor_parallel=1,2"], "its values are given twice"),
        (["--slo", "ttft_p99<1s", "--variant", "paged"], "s.yaml: paged is no variant of this scenario"),
        (["--where-is-the-cliff", "--slo", "ttft_p99<1s"], "--slo: a cliff has no goals"),
        (["--where-is-the-cliff", "--tp", "1,2"], "is for one candidate, and there are TP 1, TP 2"),
        (["--slo", "ttft_p99<1s", "-o", "s.yaml"], "-o s.yaml: is a file"),
    ],
)
def test_wrong_input_ends_with_exit_2_and_one_message(arguments, said, capsys):
    assert plan(*arguments) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert said in streams.err
    assert streams.err.count("\n") == 1


@pytest.mark.parametrize("text", ["8..1", "0", "a", "1,,2", "", "1..100001", "1..99999999999999999999"])
def test_numbers_of_replicas_that_are_none_are_refused_by_the_parser(text, capsys):
    with pytest.raises(SystemExit) as end:
        plan("--slo", "ttft_p99<1s", "--replicas", text)
    assert end.value.code == 2
    assert "--replicas" in capsys.readouterr().err


def test_a_model_that_no_candidate_can_hold_ends_with_exit_3_and_says_so(capsys):
    big = ("--set", "model=qwen2.5-72b", "--gpus", "RTX 4090", "--tp", "1,2")
    assert plan("--slo", "ttft_p99<1s", *big) == 3
    out = capsys.readouterr().out
    assert out.startswith("No candidate meets ttft_p99<1s")
    assert "RTX-4090 TP 1 is out: qwen2.5-72b does not fit" in " ".join(out.split())

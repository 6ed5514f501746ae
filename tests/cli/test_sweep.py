"""`kvsim sweep`: the table at 80 columns, JSON and nothing else, the folder, and what is refused."""

import json
import sys

import pytest

import kvsim
from kvsim.cli.main import main
from kvsim.study.seeds import replication_seed
from tests.study.sweeps.small import SCENARIO, YAML

VARIANTS = "variants: {paged: {allocator: paged}, contiguous: {allocator: contiguous}}\n"
GRID = ("--grid", "workload.rate=2/s,8/s", "--grid", "pool.tokens=4096,8192")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "s.yaml").write_text(YAML + VARIANTS)


def sweep(*arguments):
    return main(["sweep", "s.yaml", *arguments, "--jobs", "1"])


def test_the_table_has_a_row_for_each_variant_at_each_point_and_fits_80_columns(tmp_path, capsys):
    assert sweep(*GRID, "--replications", "2") == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert out.startswith("8 points, 16 runs. Most output tokens: ")
    rows = [line.split() for line in out.splitlines() if line.startswith(("paged ", "contiguous "))]
    assert [row[:3] for row in rows[:4]] == [
        ["paged", "2/s", "4096"],
        ["paged", "2/s", "8192"],
        ["paged", "8/s", "4096"],
        ["paged", "8/s", "8192"],
    ]
    assert len(rows) == 8
    assert any(row[-1] == "*" for row in rows)
    assert "not modelled:" in out
    [folder] = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("s-sweep-")
    assert f"written to runs/{folder.name}" in out
    assert {path.name for path in folder.iterdir()} == {
        *("study.json", "runs.parquet", "summary.json", "README.md", "sweep.png", "sweep.svg", "pieces"),
    }


def test_json_is_one_object_with_every_point_and_nothing_is_kept(tmp_path, capsys):
    assert sweep(*GRID, "--variant", "paged", "--metrics", "waste_share,steps", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [point["changes"] for point in found["points"]] == [
        {"workload.rate": rate, "pool.tokens": tokens} for rate in ("2/s", "8/s") for tokens in (4096, 8192)
    ]
    assert found["axes"][0] == {"key": "workload.rate", "values": ["2/s", "8/s"], "numbers": [2.0, 8.0], "unit": "/s"}
    assert set(found["points"][0]["metrics"]) == {"waste_share", "steps"}
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"]


def test_a_point_is_the_run_that_kvsim_run_makes_of_it(capsys):
    assert (
        sweep("--grid", "workload.rate=8/s", "--variant", "paged", "--seed", "5", "--metrics", "ttft_s.p99", "--json")
        == 0
    )
    [point] = json.loads(capsys.readouterr().out)["points"]
    assert main(["run", "s.yaml", "--variant", "paged", "--set", "workload.rate=8/s", "--seed", "5", "--json"]) == 0
    assert point["metrics"]["ttft_s.p99"]["mean"] == json.loads(capsys.readouterr().out)["metrics"]["ttft_s"]["p99"]


def test_a_run_that_fails_is_a_row_with_its_error_and_the_others_go_on(tmp_path, capsys):
    import pyarrow.parquet as pq

    arguments = ("--variant", "paged", "--grid", "gpu=RTX 4090,T4", "--set", "pool=null", "--set", "model=qwen2.5-14b")
    assert sweep(*arguments, "--grid", "engine.max_model_len=2048", "-o", "out") == 1
    assert sweep("--variant", "paged", "--grid", "gpu=H100,T4", *arguments[4:], "-o", "some") == 0
    said = capsys.readouterr().out
    assert "2 points, 2 runs, of which 1 failed." in said
    assert "note: failed at gpu=T4 (seed 0): " in said
    errors = pq.read_table(tmp_path / "some" / "runs.parquet")["error"].to_pylist()
    assert errors[0] is None
    assert "T4" in errors[1]


def test_a_list_and_a_hypercube_are_swept_as_a_grid_is(tmp_path, capsys):
    (tmp_path / "points.csv").write_text("workload.rate,pool.tokens\n2/s,4096\n8/s,\n")
    assert sweep("--list", "points.csv", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["points"]) == 4
    assert sweep("--latin-hypercube", "3", "workload.rate=2/s..8/s", "--variant", "paged", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["points"]) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "points: none is given; use one of --grid KEY=A,B,C, --list FILE and --latin-hypercube"),
        (["--grid", "seed=1", "--list", "p.csv"], "points: more than one is given"),
        (["--grid", "workload.rate="], "--grid: workload.rate: has no values"),
        (
            ["--grid", "workload.rat=1/s,2/s"],
            "--grid: workload.rat: 1/s is given for an unknown key; did you mean rate",
        ),
        (["--grid", "workload.rate=4"], "--grid: workload.rate: 4 has no unit"),
        (["--grid", "variants=1"], "--grid: variants: 1 cannot be set here"),
        (["--grid", "a..b=1"], "--grid: a..b is no dotted key"),
        (["--list", "p.csv"], "--list p.csv: cannot be read"),
        (["--latin-hypercube", "5", "seed=5"], "--latin-hypercube: seed: '5' is no range"),
        (
            ["--grid", "seed=1", "--variant", "radix"],
            "s.yaml: radix is no variant of this scenario; it has paged, contiguous",
        ),
        (["--grid", "seed=1,2", "--seed", "5"], "--seed: would stand in for the seeds that points set"),
        (["--grid", "seed=1", "--json", "--resume"], "--resume: nothing is kept with --json alone"),
        (["--grid", "seed=1", "-o", "s.yaml"], "-o s.yaml: is a file"),
        (["--grid", "seed=1", "-o", "."], ".: is not empty and holds no study"),
        (["--grid", "seed=1", "--cluster", "nowhere"], "--cluster nowhere: is no address"),
    ],
)
def test_wrong_input_ends_with_exit_2_and_one_message(arguments, said, tmp_path, capsys):
    pytest.importorskip("distributed", reason="needs the extra `cluster`") if "--cluster" in arguments else None
    assert sweep(*arguments) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("kvsim: ")
    assert said in streams.err
    assert streams.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"]


def test_a_line_of_a_list_that_is_wrong_is_told_with_its_number(tmp_path, capsys):
    (tmp_path / "points.csv").write_text("workload.rate\n2/s\n-8/s\n")
    assert sweep("--list", "points.csv") == 2
    assert "points.csv:3: workload.rate: '-8/s' is negative" in capsys.readouterr().err


def test_a_missing_extra_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert sweep("--grid", "seed=1", "--cluster", "local") == 2
    assert "pip install 'kvsim[cluster]'" in capsys.readouterr().err


def test_another_study_and_a_damaged_one_are_refused_and_the_same_one_goes_on_with_resume(tmp_path, capsys):
    assert sweep("--grid", "seed=1,2", "-o", "out") == 0
    before = (tmp_path / "out" / "runs.parquet").read_bytes()
    assert sweep("--grid", "seed=1,2", "-o", "out") == 2
    assert "holds this study already; go on with it with --resume" in capsys.readouterr().err
    assert sweep("--grid", "seed=1,3", "-o", "out", "--resume") == 2
    assert "out: holds another study (its points are others); name another folder" in capsys.readouterr().err
    assert sweep("--grid", "seed=1,2", "-o", "out", "--resume") == 0
    assert (tmp_path / "out" / "runs.parquet").read_bytes() == before
    (tmp_path / "out" / "study.json").write_text("{")
    assert sweep("--grid", "seed=1,2", "-o", "out", "--resume") == 2
    assert "study.json: is damaged or no study of kvsim" in capsys.readouterr().err


def test_a_metric_that_no_run_has_is_told_with_the_nearest(capsys):
    assert sweep("--grid", "seed=1", "--metrics", "ttft_s.p98", "--json") == 2
    assert "--metrics: ttft_s.p98 is no number of these runs; did you mean ttft_s.p99" in capsys.readouterr().err


def test_the_bar_tells_runs_done_and_goes_away(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert sweep("--grid", "seed=1,2", "--variant", "paged") == 0
    assert capsys.readouterr().out.startswith("2 points, 2 runs.")


def test_a_sweep_in_python_gives_rows_and_a_frame_with_numbers_for_the_swept_keys():
    found = kvsim.sweep("s.yaml", grid={"workload.rate": ["2/s", "8/s"], "horizon": ["90s"]}, jobs=1)
    assert [row["variant"] for row in found.rows] == ["paged", "paged", "contiguous", "contiguous"]
    assert list(found.frame["workload.rate"]) == [2.0, 8.0, 2.0, 8.0]
    assert list(found.frame["horizon"]) == [90.0] * 4
    assert found.frame["error"].isna().all()
    assert found.failed == []


def test_points_in_python_may_change_different_keys_and_replications_share_seeds():
    scenario = kvsim.Scenario.from_dict({**SCENARIO, "seed": 3})
    found = kvsim.sweep(scenario, points=[{"pool.tokens": 4096}, {"allocator": "contiguous"}], replications=2, jobs=1)
    labels = ("pool.tokens", "allocator", "replication", "seed")
    other = replication_seed(3, 1)
    assert [tuple(row[name] for name in labels) for row in found.rows] == [
        (4096, None, 0, 3),
        (4096, None, 1, other),
        (None, "contiguous", 0, 3),
        (None, "contiguous", 1, other),
    ]
    assert found.rows[0]["pool_tokens"] == 4096
    assert len({row["key"] for row in found.rows}) == 4

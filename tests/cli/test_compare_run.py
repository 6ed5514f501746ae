"""`kvsim compare-run`: what it prints, writes and refuses."""

import json

import pytest

from kvsim.cli.main import main
from tests.study.recorded.conftest import META, write_run

SCENARIO = """
model: llama-3.1-8b
gpu: RTX 4090
pool: {blocks: 120}
workload: {rate: 20/s, requests: 20, prompt_tokens: 100, output_tokens: 20}
"""
SCRAPE = """
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 4.0
vllm:num_requests_waiting{engine="0"} 1.0
vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:num_preemptions_total{engine="0"} 3.0
"""


def test_a_recorded_run_is_printed_within_80_columns(tmp_path, capsys):
    meta, requests = write_run(tmp_path)
    (tmp_path / "small_timeseries.csv").write_text("t,running,waiting,kv_cache_pct\n1,5,0,10\n2,9,0,20\n")
    assert main(["compare-run", str(meta), str(requests)]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines() if str(tmp_path) not in line)
    assert "TPOT mean" in out
    assert "points" in out
    assert "expected error: TPOT" in " ".join(out.split())
    assert "Request by request the median distance is: TTFT" in out
    assert "note: The pool is the one that the server resolved: 200 usable blocks." in " ".join(out.split())


def test_json_is_one_object_with_rows_provenance_and_notes(tmp_path, capsys):
    meta, requests = write_run(tmp_path)
    assert main(["compare-run", str(meta), str(requests), "--json", "--set", "engine.max_num_seqs=4"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"]["e2e_s.mean"]["error"] == pytest.approx(
        found["rows"]["e2e_s.mean"]["simulated"] / found["rows"]["e2e_s.mean"]["measured"] - 1
    )
    assert set(found["request_by_request"]) == {"ttft_s", "tpot_s", "e2e_s"}
    assert found["provenance"]["timing"]
    assert found["expected_error"]["tpot_median"] > 0
    assert found["notes"]


def test_the_folder_has_the_report_its_figure_and_both_sides(tmp_path, capsys):
    meta, requests = write_run(tmp_path)
    target = tmp_path / "out"
    assert main(["compare-run", str(meta), str(requests), "-o", str(target)]) == 0
    assert {path.name for path in target.iterdir()} == {
        "README.md", "comparison.json", "requests.csv", "series.csv", "vllm_bench.json", "resolved.json",
        "compared.png", "compared.svg",
    }  # fmt: skip
    report = (target / "README.md").read_text()
    assert "| TPOT mean | s |" in report
    lines = (target / "requests.csv").read_text().splitlines()
    assert lines[0] == "side,request,prompt_tokens,output_tokens,arrival_s,ttft_s,tpot_s,e2e_s"
    assert len(lines) == 1 + 2 * 24
    assert (target / "compared.png").stat().st_size > 10_000
    once = (target / "compared.png").read_bytes()
    main(["compare-run", str(meta), str(requests), "-o", str(target)])
    assert (target / "compared.png").read_bytes() == once


def test_a_scenario_is_laid_beside_a_scrape_and_written_as_a_benchmark(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(SCENARIO)
    (tmp_path / "metrics.txt").write_text(SCRAPE)
    bench = tmp_path / "bench.json"
    line = ["compare-run", str(tmp_path / "s.yaml"), str(tmp_path / "metrics.txt"), "--json", "--bench", str(bench)]
    assert main([*line, "--scrape-interval", "0.2"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert (rows["running"]["measured"], rows["kv_share"]["measured"], rows["preemptions"]["measured"]) == (4, 0.5, 3)
    assert rows["running"]["simulated"] > 0
    assert json.loads(bench.read_text())["completed"] == 20
    # What it wrote is a measured side again; the same scenario is no distance from it.
    assert main(["compare-run", str(tmp_path / "s.yaml"), str(bench), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["request_by_request"]["e2e_s"] == pytest.approx(0, abs=1e-6)


def test_other_traffic_than_was_measured_is_noted(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(SCENARIO)
    _, requests = write_run(tmp_path)
    assert main(["compare-run", str(tmp_path / "s.yaml"), str(requests)]) == 0
    assert "24 requests were measured and 20 finished" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["small_meta.json", "absent.csv"], "absent.csv: cannot be read"),
        (["absent.json", "small_requests.csv"], "absent.json: cannot be read"),
        (["small_requests.csv", "small_requests.csv"], "is not JSON"),
        (["small_meta.json", "small_meta.json"], "describes a run (META)"),
        (["small_meta.json", "small_requests.csv", "--variant", "a"], "is no scenario and has no variants"),
        (["small_meta.json", "small_requests.csv", "--gpu", "RTX 9999"], "RTX 9999"),
        (["s.yaml", "small_requests.csv", "--gpu", "H100"], "change it with --set gpu=NAME"),
        (["small_meta.json", "small_requests.csv", "--set", "engine.max_num_sequences=4"], "max_num_sequences"),
        (["small_meta.json", "small_requests.csv", "-o", "s.yaml"], "is a file"),
        (["s.yaml", "small_requests.csv", "--set", "fleet.replicas=2"], "is laid beside one replica"),
    ],
)
def test_wrong_input_is_one_message_and_exit_2(tmp_path, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path, META)
    (tmp_path / "s.yaml").write_text(SCENARIO)
    assert main(["compare-run", *arguments]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""

"""`timing: {name: calibrated, file: FILE}`: what a GPU measured decides its runs, and leaps stay exact."""

import json
import re

import pytest

from kvsim.cli.main import main
from kvsim.microbench.fit.fit import fit_results
from kvsim.microbench.results import read_results
from kvsim.scenario.resolve import load
from kvsim.study.store import run_key
from kvsim.timing.fitting.calibration import to_json
from tests.microbench.oracle import Oracle, records, write

SCENARIO = """
model: llama-3.1-8b
gpu: H200
engine: {profile: vllm@0.33-sync, max_num_batched_tokens: 2048, max_model_len: 4096, max_num_seqs: 64}
pool: {blocks: 1000}
timing: {name: calibrated, file: mine.json}
workload: {requests: 30, rate: 20/s, prompt_tokens: 700, output_tokens: 200}
"""


@pytest.fixture(scope="module")
def calibration(tmp_path_factory):
    """What an H200 with costly block tables would say of itself."""
    gpu = Oracle("NVIDIA H200", 132, block_factor={0: 1.0, 1: 9.0, 8: 4.0, 16: 3.0, 32: 2.0, 64: 1.5, 128: 1.2})
    path = write(tmp_path_factory.mktemp("c") / "r.jsonl", records(gpu))
    path.write_text(path.read_text().replace('"backend": "emulated"', '"backend": "cuda"', 1))
    return json.dumps(to_json(fit_results(read_results(path)).calibration))


@pytest.fixture
def scenario(tmp_path, calibration):
    (tmp_path / "mine.json").write_text(calibration)
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return path


def run(path, capsys, *options):
    assert main(["run", str(path), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def refusal(path, capsys, *options):
    assert main(["run", str(path), *options]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


OTHERS = {
    "paged": (),
    "contexts where the kernel bends": ("--set", "workload.prompt_tokens=900", "--set", "workload.output_tokens=400"),
    "paged, swapping": ("--set", "engine.preemption=swap", "--set", "engine.swap_space=4GiB"),
    "contiguous": ("--set", "allocator=contiguous", "--set", "pool.blocks=null", "--set", "pool.tokens=16000"),
    "virtual": ("--set", "allocator=virtual", "--set", "pool.blocks=null", "--set", "pool.tokens=16000"),
    "radix": ("--set", "allocator=radix", "--set", "engine.profile=sglang@0.5.23"),
}


@pytest.mark.parametrize("options", OTHERS.values(), ids=OTHERS)
def test_leaping_and_stepping_give_the_same_answer(scenario, capsys, options):
    leapt = run(scenario, capsys, *options)
    assert leapt == run(scenario, capsys, *options, "--stepwise", "--check")


def test_the_answer_says_what_this_gpu_measured(scenario, capsys):
    timing = run(scenario, capsys)["provenance"]["timing"]
    kinds = "linear layers, decode attention, prefill attention, copies, swaps; all else: [^;]+"
    assert re.fullmatch(rf"calibrated on this GPU \(results [0-9a-f]{{12}}\): {kinds}; overheads of vllm", timing)


def test_what_block_tables_cost_on_this_gpu_is_charged_by_their_size(scenario, capsys):
    tpot = [
        run(scenario, capsys, "--set", f"allocator.block_size={size}", "--set", f"pool.blocks={64000 // size}")[
            "metrics"
        ]["tpot_s"]["mean"]
        for size in (16, 64, 128)
    ]
    assert tpot[0] > tpot[1] > tpot[2]
    regions = ("--set", "allocator={name: reserve, size: oracle}", "--set", "pool={tokens: 64000}")
    assert run(scenario, capsys, *regions)["metrics"]["tpot_s"]["mean"] < tpot[2]


def test_a_comparison_takes_the_file_too(scenario, capsys):
    scenario.write_text(SCENARIO + "variants: {one: {}, two: {timing: calibrated}, three: {timing: roofline}}\n")
    assert main(["compare", str(scenario), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    said = {one["name"]: one["provenance"]["timing"] for one in found["variants"]}
    assert "calibrated on this GPU" in said["one"]
    assert said["three"] == "datasheet"


def test_the_path_is_relative_to_the_scenarios_file(scenario, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    assert "calibrated on this GPU" in run(scenario, capsys)["provenance"]["timing"]


def test_another_gpus_file_is_refused_with_whose_it_is(scenario, capsys):
    message = refusal(scenario, capsys, "--set", "gpu=A100")
    assert "scenario.yaml:6: timing.file: mine.json is a calibration of H200-SXM, not of A100-SXM-80GB" in message
    assert "give gpu: H200-SXM" in message


def test_a_file_that_is_no_calibration_is_refused(scenario, capsys, tmp_path):
    (tmp_path / "mine.json").write_text("[1]")
    assert "is no calibration" in refusal(scenario, capsys)
    (tmp_path / "mine.json").unlink()
    assert "cannot be read" in refusal(scenario, capsys)


def test_a_roofline_takes_no_file(scenario, capsys):
    scenario.write_text(SCENARIO.replace("calibrated, file", "roofline, file"))
    assert "timing.file: mine.json is given for the roofline" in refusal(scenario, capsys)


def test_a_run_that_leaves_what_was_measured_says_where(scenario, capsys):
    def left(*options):
        return " ".join(note for note in run(scenario, capsys, *options)["notes"] if "leave the range" in note)

    assert "context tokens" not in left()
    short = left("--set", "workload.prompt_tokens=20", "--set", "workload.output_tokens=20")
    assert "paged attention in bf16, fitted to context tokens a sequence of 256 to 65,536; here down to 21 " in short
    blocks = left("--set", "allocator.block_size=256", "--set", "pool.blocks=64")
    assert (
        "paged attention in bf16, fitted to slots a block of 0 to 128; here 256 in every step, 2 times as far."
        in blocks
    )


def test_the_error_to_expect_is_not_that_of_the_shipped_calibration(scenario, capsys):
    found = run(scenario, capsys)["expected_error"]
    assert found["tpot_median"] is None
    assert "kvsim calibrate validate" in found["basis"]


def test_emulated_times_are_told_apart_in_every_answer(scenario, capsys, tmp_path):
    found = json.loads((tmp_path / "mine.json").read_text())
    found["provenance"] = "fitted to emulated times, which no GPU took"
    (tmp_path / "mine.json").write_text(json.dumps(found))
    assert "no GPU took" in run(scenario, capsys)["provenance"]["timing"]


def test_what_a_study_keeps_of_another_calibration_is_of_another_run(scenario, tmp_path):
    first = run_key(load(scenario), 0, "1")
    (tmp_path / "other.json").write_text((tmp_path / "mine.json").read_text())
    assert run_key(load(scenario, overrides=[f"timing.file={tmp_path / 'other.json'}"]), 0, "1") == first
    found = json.loads((tmp_path / "mine.json").read_text())
    found["gpus"]["H200-SXM"]["gemm:bf16"]["parameters"]["peak_tflop_s"]["value"] /= 2
    (tmp_path / "mine.json").write_text(json.dumps(found))
    assert run_key(load(scenario), 0, "1") != first


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("gpus",), [], "gpus is [], and must be an object"),
        (("gpus", "H200-SXM", "gemm:bf16"), None, "gpus.H200-SXM.gemm:bf16 is null, and must be an object"),
        (("gpus", "H200-SXM", "gemm:bf16", "rows"), "many", 'gemm:bf16.rows is "many", and must be a number'),
        (("gpus", "H200-SXM", "gemm:bf16", "rows"), 1e999, "Infinity is no number"),
        (("gpus", "H200-SXM", "gemm:bf16", "shapes"), [1], "gemm:bf16.shapes is [1], and must be a list of texts"),
        (("gpus", "H200-SXM", "gemm:bf16", "parameters"), {}, "gemm:bf16.parameters.fixed_us is missing"),
        (("gpus", "H200-SXM", "gemm:bf16", "parameters", "fixed_us", "value"), 0, "fixed_us.value is 0, and must be"),
        (("gpus", "H200-SXM", "gemm:bf16", "parameters", "fixed_us", "value"), 1e300, "is 1e+300, and must be from"),
        (("gpus", "H200-SXM", "gemm:bf16", "fitted_range"), {"m": [9, 1]}, "fitted_range.m is [9, 1], and must be two"),
        (("gpus", "H200-SXM", "gemm:fp9"), {}, "gpus.H200-SXM.gemm:fp9 is no kernel family"),
    ],
)
def test_a_damaged_calibration_is_refused_with_the_key(scenario, capsys, tmp_path, keys, value, said):
    data = json.loads((tmp_path / "mine.json").read_text())
    *above, last = keys
    held = data
    for key in above:
        held = held[key]
    held[last] = value
    (tmp_path / "mine.json").write_text(json.dumps(data))
    message = refusal(scenario, capsys)
    assert "mine.json: is no calibration (" in message
    assert said in message
    assert "`kvsim calibrate fit` writes one" in message

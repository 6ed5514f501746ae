"""`kvsim capacity` as a user meets it: tables, JSON, exit codes, and one message for what is wrong."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kvsim.cli.main import main

ROOT = Path(__file__).parents[2]
STARTS = ROOT / "tests" / "oracles" / "data" / "capacity" / "starts.csv"
LLAMA = ["capacity", "--model", "llama-3.1-8b", "--gpu", "H100"]

LOG = """\
INFO 04-20 10:00:00 [core.py:61] Initializing a V1 LLM engine (v0.19.0) with config: model='meta-llama/Llama-3.1-8B', \
dtype=torch.bfloat16, max_seq_len=32768, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=None
(EngineCore pid=258) INFO 04-20 10:00:10 [gpu_model_runner.py:4879] Model loading took 14.99 GiB memory and 60 seconds
(EngineCore pid=258) INFO 04-20 10:00:20 [gpu_worker.py:440] Available KV cache memory: 5.05 GiB
(EngineCore pid=258) INFO 04-20 10:00:20 [kv_cache_utils.py:1708] GPU KV cache size: 41,408 tokens
(EngineCore pid=258) INFO 04-20 10:00:20 [kv_cache_utils.py:1711] Maximum concurrency for 32,768 tokens per request: \
1.26x
"""


def answer(capsys, *words, code=0):
    assert main([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_it_prints_the_verdict_the_breakdown_and_the_engines_lines(capsys):
    assert main([*LLAMA, "--engine", "vllm@0.19", "--max-model-len", "32k"]) == 0
    text = capsys.readouterr().out
    for part in ("vllm@0.19: fits", "activation peak", "left over", "card", "GPU KV cache size", "for 32,000 tokens"):
        assert part in text


def test_what_does_not_fit_ends_with_3_and_says_what_would(capsys):
    assert main(["capacity", "--model", "llama-3.1-70b", "--gpu", "H100", "--max-model-len", "32768"]) == 3
    text = capsys.readouterr().out
    for part in ("does not fit (refused)", "no_kv_memory", "would fit, each alone", "--tensor-parallel-size 4"):
        assert part in text


def test_the_engines_own_flag_names_are_understood(capsys):
    found = answer(
        capsys, *LLAMA, "-tp", "2", "--pp", "2", "--gpu-memory-utilization", "0.8", "--max-num-seqs", "64",
        "--kv-cache-dtype", "fp8", "--block-size", "32", "--quantization", "fp8",
    )  # fmt: skip
    assert found["settings"]["tensor_parallel"] == found["settings"]["pipeline_parallel"] == 2
    assert found["settings"]["kv_cache_dtype"] == "fp8"
    assert found["block_size"] == 32
    assert found["kv_bytes_per_token"] == 131072 // 2 // 2 // 2


def test_what_is_known_is_given(capsys):
    found = answer(
        capsys, *LLAMA, "--engine", "vllm@0.19", "--gpu-total-gib", "79.19", "--gpu-memory-utilization", "0.95",
        "--weights-gib", "14.99", "--activation-gib", "1.89", "--non-torch-gib", "0.25", "--cuda-graph-gib", "0.91",
        "--max-model-len", "8192",
    )  # fmt: skip
    low, high = found["kv_blocks_interval"]
    assert low <= 29751 <= high
    assert found["provenance"]["activation"] == "given"
    assert answer(capsys, *LLAMA, "--num-gpu-blocks", "10000")["kv_tokens"] == 160_000
    assert answer(capsys, *LLAMA, "--kv-memory-gib", "58.11")["kv_memory_gib"] == 58.11


def test_a_card_may_be_a_size(capsys):
    found = answer(capsys, "capacity", "--model", "llama-3.2-1b", "--gpu", "24GiB", "--max-model-len", "8192")
    assert found["breakdown_gib"]["total"] == 24
    assert found["gpu"] is None


def test_a_scenario_says_model_card_engine_and_lengths(capsys):
    found = answer(capsys, "capacity", str(ROOT / "scenarios" / "azure-conversation.yaml"))
    assert (found["model"], found["gpu"], found["max_model_len"]) == ("llama-3.1-8b", "RTX-4090", 8192)
    assert found["requests_at_once"]["mean"] > found["requests_at_once"]["p95"]
    # Its pool is given, here as in a run.
    assert (found["kv_tokens"], found["provenance"]["blocks"]) == (41408, "given")


def test_every_scenario_of_the_house_can_be_asked(capsys):
    for file in sorted((ROOT / "scenarios").glob("*.yaml")):
        assert main(["capacity", str(file), "--json"]) in (0, 3), file
        assert json.loads(capsys.readouterr().out)["kv_tokens"] > 0


def test_what_a_scenario_says_of_formats_and_memory_holds_and_an_option_beats_it(capsys, tmp_path):
    scenario = tmp_path / "own.yaml"
    scenario.write_text(
        "model: {name: llama-3.1-8b, weights_dtype: fp8, kv_dtype: fp8}\ngpu: L40S\n"
        "capacity: {activation: 2GiB, gpu_memory_utilization: 0.8}\n"
        "workload: {rate: 1/s, requests: 5, prompt_tokens: 500, output_tokens: 100}\n"
    )
    found = answer(capsys, "capacity", str(scenario))
    assert found["settings"]["quantization"] == found["settings"]["kv_cache_dtype"] == "fp8"
    assert found["breakdown_gib"]["activation"] == 2
    assert found["settings"]["gpu_memory_utilization"] == 0.8
    assert found["requests_at_once"].keys() == {"mean", "p95"}
    again = answer(capsys, "capacity", str(scenario), "--activation-gib", "1.00", "--quantization", "awq")
    assert again["breakdown_gib"]["activation"] == 1
    assert again["settings"]["quantization"] == "awq"


def test_a_pasted_command_says_what_is_done_with_each_flag(capsys):
    command = "vllm serve Qwen/Qwen2.5-7B-Instruct-AWQ -tp 2 --max-model-len 16k --port 8000 --enable-expert-parallel"
    found = answer(capsys, "capacity", "--gpu", "L40S", "--engine-args", command)
    assert (found["model"], found["settings"]["quantization"]) == ("qwen2.5-7b", "awq")
    assert found["settings"]["max_model_len"] == 16000
    statuses = {flag["name"]: flag["status"] for flag in found["flags"]}
    assert statuses["-tp"] == "used"
    assert statuses["--port"] == "ignored"
    assert statuses["--enable-expert-parallel"] == "not modelled"


def test_a_run_takes_a_pasted_command_too(capsys):
    scenario = str(ROOT / "scenarios" / "azure-conversation.yaml")
    command = "vllm serve meta-llama/Llama-3.1-8B --max-num-seqs 4"
    found = answer(capsys, "run", scenario, "--variant", "paged", "--engine-args", command)
    assert found["metrics"]["max_running"] <= 4
    assert {flag["status"] for flag in found["engine_args"]} == {"used"}
    assert main(["run", scenario, "--variant", "paged", "--engine-args", command]) == 0
    assert "most sequences at once" in capsys.readouterr().out


@pytest.mark.parametrize(
    "path", ["/models/Qwen2.5-7B-Instruct-AWQ", "/cache/hub/models--Qwen--Qwen2.5-7B-Instruct-AWQ/snapshots/abc"]
)
def test_a_folder_of_another_machine_is_known_by_its_name(path, capsys):
    found = answer(capsys, "capacity", "--gpu", "L40S", "--engine-args", f"vllm serve {path} --max-model-len 8192")
    assert (found["model"], found["settings"]["quantization"]) == ("qwen2.5-7b", "awq")


def test_a_log_stands_beside_the_plan_and_settles_overheads(capsys, tmp_path):
    log, settled = tmp_path / "start.log", tmp_path / "settled.json"
    log.write_text(LOG)
    card = ["--gpu", "RTX 4090", "--gpu-memory-utilization", "0.9", "--max-num-seqs", "256"]
    found = answer(capsys, "capacity", "--from-log", str(log), *card, "--settled", str(settled))
    rows = {row["name"]: row for row in found["comparison"]}
    assert rows["kv_tokens"]["logged"] == 41408
    assert rows["kv_tokens"]["difference"] == found["kv_tokens"] - 41408
    assert rows["weights_gib"]["line_number"] == 2
    again = answer(
        capsys, "capacity", "--model", "llama-3.1-8b", "--engine", "vllm@0.19", *card, "--max-model-len", "32768",
        "--overheads", str(settled),
    )  # fmt: skip
    assert again["kv_tokens_interval"][0] <= 41408 <= again["kv_tokens_interval"][1]
    assert main(["capacity", "--from-log", str(log), *card]) == 0
    assert "difference" in capsys.readouterr().out


def test_a_table_of_starts_is_planned_twice_and_scored(capsys):
    found = answer(capsys, "capacity", "--check-csv", str(STARTS))
    assert set(found) == {"given", "default"}
    for part in found.values():
        assert len(part["rows"]) == 9
        assert {"logged", "predicted", "error"} <= set(part["rows"][0])
    assert found["given"]["summary"]["outside_interval"] == []
    assert main(["capacity", "--check-csv", str(STARTS)]) == 0
    assert "C083" in capsys.readouterr().out


def test_figures_and_reports_are_written(tmp_path, capsys):
    assert main([*LLAMA, "-o", str(tmp_path / "plan"), "--json"]) == 0
    names = {path.name for path in (tmp_path / "plan").iterdir()}
    assert names == {
        "plan.json",
        *(f"{stem}.{form}" for stem in ("concurrency", "kv-and-weights") for form in ("png", "svg")),
    }
    assert main(["capacity", "--check-csv", str(STARTS), "-o", str(tmp_path / "check"), "--json"]) == 0
    report = (tmp_path / "check" / "README.md").read_text("utf-8")
    assert "| C083 |" in report
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tp", "3"], "tensor_parallel: 3 does not divide the 32 heads"),
        (["--gpu-memory-utilization", "1.5"], "gpu_memory_utilization is 1.5; it must be a share"),
        (["--quantization", "awk"], "unknown quantization 'awk': the closest is awq"),
        (["--kv-cache-dtype", "fp7"], "kv_cache_dtype: unknown type 'fp7'"),
        (["--engine", "vllm@next"], "'next' is no version"),
        (["--engine-args", "vllm serve x --max-model-len many"], "max-model-len"),
        (["--from-log", "README.md"], "README.md"),
        (["--check-csv", "README.md"], "README.md"),
        (["--overheads", "pyproject.toml"], "pyproject.toml: cannot be read"),
        (["--pp", "99"], "pipeline_parallel is 99; llama-3.1-8b has 32 layers"),
        (["--block-size", "0"], "block_size is 0; it must be at least 1"),
        (["--gpu", "24XB"], "--gpu: '24XB' has an unknown unit"),
        (["--gpu", "24"], "--gpu: 24 has no unit"),
        (["--gpu", "0GiB"], "--gpu is 0GiB; a card has some memory"),
        (["--gpu-total-gib", "0"], "--gpu-total-gib is 0; a card has some memory"),
        (["--used-gib", "100"], "--used-gib is 100; the card has 79.19 GiB"),
        (["--dtype", "int4"], "--dtype is 'int4'; engines compute in one of bf16, fp16, fp32"),
        (["-dcp", "2"], "decode_context_parallel: 2 must divide tensor_parallel 1"),
        (["--shared-prefix-tokens", "500", "--request-tokens", "400"], "more than the 400 tokens of the mean request"),
        (["--settled", "new.json"], "--settled needs --from-log"),
    ],
)
def test_what_is_wrong_is_one_message_and_exit_code_2(words, message, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main([*LLAMA, *words]) == 2
    found = capsys.readouterr()
    assert message in found.err
    assert found.err.count("\n") == 1
    assert not found.out


@pytest.mark.parametrize(
    ("words", "missing"), [(["--gpu", "H100"], "--model is missing"), (["--model", "qwen3-8b"], "--gpu is missing")]
)
def test_a_question_needs_a_model_and_a_card(words, missing, capsys):
    assert main(["capacity", *words]) == 2
    assert missing in capsys.readouterr().err


def test_a_config_without_the_needed_keys_names_them(tmp_path, capsys):
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "llama", "num_hidden_layers": 2}')
    assert main(["capacity", "--model", str(config), "--gpu", "H100"]) == 2
    assert "key hidden_size is missing" in capsys.readouterr().err


def test_a_configs_quantisation_is_read(tmp_path, capsys):
    config = tmp_path / "config.json"
    keys = {
        "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192,
        "quantization_config": {"quant_method": "awq", "bits": 4},
    }  # fmt: skip
    config.write_text(json.dumps(keys))
    found = answer(capsys, "capacity", "--model", str(config), "--gpu", "L4")
    assert found["settings"]["quantization"] == "awq"
    assert found["breakdown_gib"]["weights"] < 6


def test_a_request_has_tokens(capsys):
    with pytest.raises(SystemExit) as end:
        main([*LLAMA, "--request-tokens", "0"])
    assert end.value.code == 2
    assert "holds a request of no tokens" in capsys.readouterr().err


def test_a_length_that_the_engine_would_choose_is_said_to_be_planned_as_the_models(capsys):
    found = answer(capsys, *LLAMA, "--engine-args", "vllm serve x --max-model-len auto")
    assert {flag["name"]: flag["status"] for flag in found["flags"]}["--max-model-len"] == "not modelled"


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e3", "1_0", "."])
def test_sizes_are_plain_numbers_of_gib(value, capsys):
    with pytest.raises(SystemExit) as end:
        main([*LLAMA, f"--weights-gib={value}"])
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 2  # one line of usage


@pytest.mark.parametrize(
    "content", ['{"weights_gib": NaN}', '{"weights_gib": -5}', '{"weights_gib": [1]}', "[" * 10**5]
)
def test_overheads_that_are_none_are_refused(content, tmp_path, capsys):
    file = tmp_path / "own.json"
    file.write_text(content)
    assert main([*LLAMA, "--overheads", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"kvsim: {file}: ")


def test_a_log_of_a_larger_share_settles_no_negative_peak(tmp_path, capsys):
    log = tmp_path / "start.log"
    log.write_text(LOG.replace("5.05 GiB", "9.99 GiB"))
    found = answer(capsys, "capacity", "--from-log", str(log), "--gpu", "RTX 4090", "--gpu-memory-utilization", "0.9")
    assert "activation_gib" not in found["settled"]
    assert "a larger share than planned" in found["settled"]["source"]


def test_a_config_that_nests_too_deep_is_no_json(tmp_path, capsys):
    file = tmp_path / "config.json"
    file.write_text("[" * 10**5)
    assert main(["capacity", "--model", str(file), "--gpu", "H100"]) == 2
    assert "is not JSON" in capsys.readouterr().err


def test_the_name_of_a_gguf_file_says_its_type(capsys):
    model = "bartowski/Meta-Llama-3.1-8B-Instruct-Q4_K_M-GGUF"
    found = answer(capsys, "capacity", "--model", model, "--gpu", "12GiB", "--engine", "llama.cpp", "-c", "8192")
    assert (found["model"], found["settings"]["quantization"]) == ("llama-3.1-8b", "gguf-q4_k_m")


def test_a_reader_that_has_seen_enough_does_not_change_the_verdict():
    command = [sys.executable, "-m", "kvsim.cli.main", "capacity", "--model", "llama-3.1-8b", "--gpu", "L4"]
    for words in ([], ["--json"]):
        process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, cwd=ROOT)
        process.stdout.close()
        assert process.wait() == 3

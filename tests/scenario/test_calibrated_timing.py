"""`timing: calibrated` in a scenario: leaps and single steps agree to the bit, and its parameters are no user's."""

import json

import pytest

from kvsim.cli.main import main

SCENARIO = """
model: llama-3.1-8b
gpu: H100
engine: {profile: vllm@0.33-sync, max_num_batched_tokens: 2048, max_model_len: 4096}
pool: {blocks: 3000}
timing: calibrated
workload: {requests: 40, rate: 20/s, prompt_tokens: 700, output_tokens: 200}
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "calibrated.yaml"
    path.write_text(SCENARIO)
    return path


def run(path, capsys, *options):
    assert main(["run", str(path), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_leaping_and_stepping_give_the_same_answer(scenario, capsys):
    assert run(scenario, capsys) == run(scenario, capsys, "--stepwise", "--check")


def test_the_answer_says_that_it_was_fitted(scenario, capsys):
    assert "fitted to published measurements" in json.dumps(run(scenario, capsys)["provenance"])


def test_the_roofline_stays_the_default(scenario, capsys):
    scenario.write_text(SCENARIO.replace("timing: calibrated\n", ""))
    assert run(scenario, capsys)["provenance"]["timing"] == "datasheet"


def test_a_parameter_of_the_roofline_is_refused_with_a_remedy(scenario, capsys):
    text = SCENARIO.replace("timing: calibrated", "timing: {name: calibrated, step_overhead_s: 0.1}")
    scenario.write_text(text)
    assert main(["run", str(scenario)]) == 2
    assert "timing.step_overhead_s" in capsys.readouterr().err


def test_the_answer_states_the_error_to_expect_of_its_class(scenario, capsys):
    found = run(scenario, capsys)["expected_error"]
    assert "dense models on H100-SXM under vllm" in found["basis"]
    assert 0 < found["tpot_median"] < found["tpot_p90"]


def test_parameters_of_a_users_own_have_no_known_error(scenario, capsys):
    scenario.write_text(SCENARIO.replace("timing: calibrated", "timing: {step_overhead_s: 0.001}"))
    found = run(scenario, capsys)["expected_error"]
    assert found["tpot_median"] is None
    assert "parameters of its own" in found["basis"]


SHORT = """
model: {name: llama-3.1-8b, kv_dtype: fp8}
gpu: H20
engine: {profile: vllm@0.33-sync, max_num_batched_tokens: 2048, max_model_len: 8192}
pool: {blocks: 3000}
timing: calibrated
workload: {requests: 12, rate: 20/s, prompt_tokens: 900, output_tokens: 300}
"""
"""Attention on 8-bit KV was measured on H20 from 1,024 tokens on."""


def test_a_run_that_leaves_the_fitted_range_says_so_once_whether_it_leaps_or_not(scenario, capsys):
    """The contexts cross the end of the range in the middle of a leap."""
    scenario.write_text(SHORT)
    leaping, stepping = run(scenario, capsys), run(scenario, capsys, "--stepwise")
    assert leaping["notes"] == stepping["notes"]
    (told,) = [note for note in leaping["notes"] if "leave the range" in note and "context tokens a sequence" in note]
    assert "of 1,024 to 131,072; here down to 9" in told
    assert "of the time" in told


def test_the_roofline_has_no_range_to_leave(scenario, capsys):
    scenario.write_text(SHORT.replace("timing: calibrated", "timing: roofline"))
    assert not [note for note in run(scenario, capsys)["notes"] if "leave the range" in note]


def test_shorter_blocks_cost_attention_time(scenario, capsys):
    """What a look-up costs is the roofline's `block_lookup_tokens`; the kernels were measured on blocks of 16."""
    tpots = []
    for size in (1, 16, 64):
        scenario.write_text(
            SCENARIO.replace(
                "pool: {blocks: 3000}", f"pool: {{tokens: 48000}}\nallocator: {{name: paged, block_size: {size}}}"
            )
        )
        tpots.append(run(scenario, capsys)["metrics"]["tpot_s"]["p50"])
    assert tpots == sorted(tpots, reverse=True)
    assert tpots[0] > 1.1 * tpots[1]

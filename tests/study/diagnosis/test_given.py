"""A run folder holds the exact scenario: it is made again from it, whatever the file said and where."""

import json
from pathlib import Path

import pytest

from kvsim import Scenario, run
from kvsim.errors import InputError
from kvsim.metrics.result import to_json
from kvsim.scenario import load, load_all
from kvsim.scenario.checks.references import is_path
from kvsim.study.diagnosis import scenario_of
from kvsim.study.outcome import resolved

SCENARIOS = Path(__file__).parents[3] / "scenarios"

PARENT = """\
model: llama-3.1-8b
gpu: RTX 4090
engine: {profile: vllm@0.33, max_num_seqs: 32}
pool: {blocks: 500}
slo: {ttft: 2s, classes: {batch: {ttft: 60s}}}
workload: {rate: 5/s, requests: 8, prompt_tokens: 100, output_tokens: 5, mix: [{slo_class: batch}, {}]}
"""

CHILD = """\
extends: parent.yaml
description: a child
published: {mean_share.used: 0.2}
variants:
  a: {allocator.block_size: 32}
  sessions:
    workload: {sessions: {turns: 2, new_tokens: 30}, output_tokens: {distribution: uniform, min: 1, max: 9}}
"""


@pytest.fixture
def child(tmp_path):
    (tmp_path / "parent.yaml").write_text(PARENT)
    (tmp_path / "child.yaml").write_text(CHILD)
    return tmp_path / "child.yaml"


@pytest.mark.parametrize(
    ("variant", "overrides"),
    [("a", []), ("a", ["engine.profile=sglang@0.5.23", "allocator=null", "pool={tokens: 9000}"]), ("sessions", [])],
)
def test_a_folder_gives_back_the_scenario_and_its_seed(child, tmp_path, variant, overrides):
    given = load(child, overrides=overrides, variant=variant)
    result = run(given, seed=11)
    result.save(tmp_path / "run")
    again, seed, stored = scenario_of(tmp_path / "run")
    assert seed == 11
    own = {"name", "published", "seed"}  # the label of the variant, what decides nothing, and the seed of the run
    assert again.settings.model_dump(exclude=own) == given.settings.model_dump(exclude=own)
    assert again.label == result.name
    assert stored == json.loads(json.dumps(result.metrics))
    assert run(again, seed=seed).metrics == result.metrics


def test_a_path_beside_the_scenario_is_found_from_the_folder_of_its_run(tmp_path):
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "mine.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,50,5\n1,60,5\n")
    (place / "s.yaml").write_text("model: llama-3.1-8b\ngpu: H100\npool: {tokens: 4096}\nworkload: {trace: mine.csv}\n")
    given = load(place / "s.yaml")
    run(given).save(tmp_path / "run")
    again, _, _ = scenario_of(tmp_path / "run")
    assert again.trace == given.trace
    assert run(again).metrics["finished"] == 2


def test_changes_are_laid_over_the_scenario_of_a_folder(tmp_path):
    run(Scenario.from_dict(_plain())).save(tmp_path / "run")
    again, _, _ = scenario_of(tmp_path / "run", overrides=["workload.rate=2/s", "seed=4"])
    assert (again.settings.workload.rate, again.seed) == (2, 4)


def test_a_folder_that_was_changed_by_hand_is_refused_with_the_key(tmp_path):
    run(Scenario.from_dict(_plain())).save(tmp_path / "run")
    path = tmp_path / "run" / "resolved.json"
    rows = json.loads(path.read_text())
    rows["engine.max_num_seqs"]["value"] = 7
    path.write_text(json.dumps(rows))
    with pytest.raises(InputError, match=r"engine\.max_num_seqs: is 7 there and 256 now"):
        scenario_of(tmp_path / "run")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, r"summary\.json: cannot be read"),
        ({"summary.json": "{", "resolved.json": "{}"}, "is not JSON"),
        ({"summary.json": "[]", "resolved.json": "{}"}, "holds a list, not an object"),
        ({"summary.json": "{}", "resolved.json": "{}"}, "name the sub-folder of a variant"),
    ],
)
def test_a_folder_that_is_no_run_is_refused(tmp_path, files, said):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said):
        scenario_of(tmp_path)


def test_a_folder_has_no_variants(tmp_path):
    run(Scenario.from_dict(_plain())).save(tmp_path / "run")
    with pytest.raises(InputError, match="holds one run, of here; leave it out"):
        scenario_of(tmp_path / "run", variant="a")


def _plain():
    return {
        "name": "here",
        "model": "llama-3.1-8b",
        "gpu": "RTX 4090",
        "pool": {"tokens": 4096},
        "workload": {"rate": "4/s", "requests": 3, "prompt_tokens": 50, "output_tokens": 5},
    }


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_scenario_that_comes_with_kvsim_is_made_again_from_what_its_run_folder_says(path, tmp_path):
    for number, given in enumerate(load_all(path)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "resolved.json").write_text(to_json(resolved(given, 7)))
        (folder / "summary.json").write_text(to_json({"name": given.label, "seed": 7, "metrics": {}}))
        again, seed, _ = scenario_of(folder)
        own = {"name", "published", "seed"}
        expected = given.settings.model_dump(exclude=own)
        if is_path(expected["model"]["name"]):  # of a file beside the scenario, which is looked for from elsewhere
            expected["model"]["name"] = str(SCENARIOS / expected["model"]["name"])
        assert again.settings.model_dump(exclude=own) == expected
        assert seed == 7

"""Variants made on the command line."""

import pytest

from kvsim.errors import InputError
from kvsim.scenario.variants import load_varied, varied

SCENARIO = """
model: llama-3.1-8b
gpu: RTX 4090
pool: {tokens: 4096}
workload: {rate: 4/s, requests: 5, prompt_tokens: 100, output_tokens: 10}
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO)
    return file


def test_commas_part_values_but_not_inside_brackets_or_quotes():
    assert varied("allocator.block_size=16,32") == ("allocator.block_size", ["16", "32"])
    assert varied("allocator={name: paged, block_size: 16}, contiguous") == (
        "allocator",
        ["{name: paged, block_size: 16}", "contiguous"],
    )
    assert varied("description='a, b','c'")[1] == ["'a, b'", "'c'"]


@pytest.mark.parametrize("text", ["nothing", "=1", "seed=", "seed=1,", "seed=1,1"])
def test_what_says_no_values_is_refused(text):
    with pytest.raises(InputError, match="for example allocator"):
        varied(text)


def test_every_combination_is_a_variant_with_a_name_of_its_own(path):
    made = load_varied(path, ["seed=4"], [("allocator.block_size", ["16", "32"]), ("workload.rate", ["1/s", "2/s"])])
    assert [name for name, _ in made] == [
        "block_size=16 rate=1/s", "block_size=16 rate=2/s", "block_size=32 rate=1/s", "block_size=32 rate=2/s",
    ]  # fmt: skip
    assert [one.settings.allocator.block_size for _, one in made] == [16, 16, 32, 32]
    assert {one.seed for _, one in made} == {4}


def test_variants_of_the_file_are_varied_too(path):
    path.write_text(SCENARIO + "variants: {a: {}, b: {allocator: contiguous}}\n")
    assert [name for name, _ in load_varied(path, [], [("seed", ["1", "2"])])] == [
        "a seed=1", "b seed=1", "a seed=2", "b seed=2",
    ]  # fmt: skip


def test_keys_that_end_alike_are_told_in_full(path):
    made = load_varied(path, [], [("workload.prompt_tokens.value", ["10"]), ("workload.output_tokens.value", ["2"])])
    assert made[0][0] == "workload.prompt_tokens.value=10 workload.output_tokens.value=2"


def test_a_value_that_does_not_fit_is_refused_like_any_other(path):
    with pytest.raises(InputError, match=r"^--vary: allocator\.block_size: lots is"):
        load_varied(path, [], [("allocator.block_size", ["lots"])])
    with pytest.raises(InputError, match=r"^--vary: nope: 1 is given for an unknown key"):
        load_varied(path, ["seed=4"], [("nope", ["1"])])
    with pytest.raises(InputError, match=r"^--set: seed: x is"):
        load_varied(path, ["seed=x"], [("allocator.block_size", ["16"])])
    with pytest.raises(InputError, match="--vary seed: is given twice"):
        load_varied(path, [], [("seed", ["1"]), ("seed", ["2"])])


@pytest.mark.parametrize("key", ["allocator", "allocator.name", "allocator.block_size"])
def test_what_the_variants_of_the_file_differ_in_cannot_be_varied_under_their_names(path, key):
    path.write_text(SCENARIO + "variants: {a: {}, b: {allocator: {name: paged, block_size: 32}}}\n")
    if key == "allocator.block_size":
        path.write_text(SCENARIO + "variants: {a: {}, b: {allocator.block_size: 32}}\n")
    with pytest.raises(InputError, match=f"--vary {key}: variant b sets it itself"):
        load_varied(path, [], [(key, ["16", "8"])])


def test_what_the_file_leaves_open_can_be_varied(path):
    path.write_text(SCENARIO.replace("rate: 4/s, ", ""))
    with pytest.raises(InputError, match="rate: is missing"):
        load_varied(path, [], [("seed", ["1"])])
    made = load_varied(path, [], [("workload.rate", ["1/s", "2/s"])])
    assert [one.settings.workload.rate for _, one in made] == [1.0, 2.0]

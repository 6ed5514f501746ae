"""What no run could hold or write down is refused while the scenario is read, by key, and so is what is no scenario."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kvsim.errors import InputError
from kvsim.scenario import Scenario, load, load_all
from kvsim.scenario.build import build
from tests.scenario.conftest import COMPLETE

Write = Callable[[str, str], str]
Refused = Callable[..., list[str]]

MOST = "9,007,199,254,740,992"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("pool.tokens=9007199254740993",
         f"--set: pool.tokens: 9007199254740993 is above {MOST}; it must be at most {MOST}"),
        ("pool.memory=8388609TiB", "--set: pool.memory: 8388609TiB is beyond any memory; write at most 8388608TiB"),
        ("workload.requests=9007199254740993", f"it must be at most {MOST}"),
        ("workload.max_tokens=9007199254740993", f"it must be at most {MOST}"),
        ("workload.max_tokens={times_output: 1e7}", "it must be at most 1,000,000"),
        ("workload.priority=9223372036854775808", "it must be at most 9,223,372,036,854,775,807"),
        ("workload.priority=-9223372036854775809", "it must be at least -9,223,372,036,854,775,808"),
        ("allocator={name: contiguous, chunk: 9007199254740993}",
         f"--set: allocator.chunk: 9007199254740993 is above {MOST}"),
        ("tensor_parallel=9007199254740993", f"--set: tensor_parallel: 9007199254740993 is above {MOST}"),
        ("engine.long_prefill_token_threshold=9007199254740993", f"it must be at most {MOST}"),
        ("seed=0x" + 33 * "f", "--set: seed: "),
        ("seed=0x" + 9000 * "f", "is not a whole number"),
        ("workload.output_tokens=2147483648",
         "workload.output_tokens: must be a whole number of at least 1 and at most 2147483647"),
        ("workload.output_tokens={distribution: zipf, theta: 1, min: 1, max: 99999999}",
         "--set: workload.output_tokens.max: a Zipf law takes at most 16777216 lengths; got 1 to 99999999"),
        ("timing.linear_compute_efficiency=1e-7",
         "--set: timing.linear_compute_efficiency: 1e-07; it must be a share from 0.000001 to 1"),
        ("timing.block_lookup_tokens=1e9", "it must be a number of tokens, from 0 to 1,000,000"),
        ("model.weights_dtype=fp32",
         "--set: model.weights_dtype: fp32 is not known here; it must be bf16, fp16, fp8, int8 or int4"),
    ],
)  # fmt: skip
def test_a_number_beyond_its_bound_is_refused_by_key_with_the_bound(
    refused: Refused, override: str, message: str
) -> None:
    lines = refused(COMPLETE, override)
    assert len(lines) == 1
    assert message in lines[0]


@pytest.mark.parametrize(
    "override",
    ["pool.tokens=9007199254740992", "pool.memory=8388608TiB", "workload.priority=-9223372036854775808",
     "workload.output_tokens=2147483647", "timing.linear_compute_efficiency=1e-6"],
)  # fmt: skip
def test_a_number_at_its_bound_is_taken(write: Write, override: str) -> None:
    load(write("s.yaml", COMPLETE), overrides=[override])


def test_a_pool_of_more_slots_than_can_be_counted_is_refused_with_its_line(write: Write) -> None:
    scenario = load(write("s.yaml", COMPLETE.replace("2588", "9007199254740992")))
    with pytest.raises(
        InputError, match=rf"^s\.yaml:3: pool\.blocks: pool_slots is .*; a pool has at most {MOST} slots"
    ):
        build(scenario, 0)


@pytest.mark.parametrize(
    "key", ["seed", "tensor_parallel", "pool.tokens", "timing.kernel_overhead_s", "workload.requests"]
)
def test_a_number_of_thousands_of_digits_is_refused_like_any_other(key: str) -> None:
    data = {"model": "llama-3.1-8b", "gpu": "H100", "workload": {"trace": "azure-conv-2023"}}
    *above, last = key.split(".")
    (data.setdefault(above[0], {}) if above else data)[last] = 10**5000  # type: ignore[index]
    with pytest.raises(InputError, match=rf"{key}: a number of 16,610 bits is "):
        Scenario.from_dict(data)


# Half a character.


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("requests: 100", 'requests: 100\n  tenant: "\\ud800"', "s.yaml:7: workload.tenant: "),
        ("gpu:", 'name: "\\udfff"\ngpu:', "s.yaml:2: name: "),
        ("gpu:", 'description: "a\\ud800b"\ngpu:', "s.yaml:2: description: "),
        ("gpu:", '"\\ud800": 3\ngpu:', "s.yaml:2: "),
        ("gpu:", 'variants: {"a\\ud800": {seed: 1}}\ngpu:', "s.yaml:2: variants: "),
    ],
)
def test_half_a_character_is_refused_wherever_it_stands(write: Write, old: str, new: str, place: str) -> None:
    with pytest.raises(InputError) as error:
        load_all(write("s.yaml", COMPLETE.replace(old, new)))
    lines = str(error.value).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(place)
    assert "half a character (a lone surrogate)" in lines[0]


@pytest.mark.parametrize("override", ["workload.tenant=\udcff", "\udcff=3"])
def test_an_override_that_is_no_text_is_refused_as_such(refused: Refused, override: str) -> None:
    lines = refused(COMPLETE, override)
    assert len(lines) == 1
    assert lines[0].startswith("--set: ")


# Only files of the size of a scenario are read.


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
def test_a_device_is_neither_scenario_nor_model(write: Write, refused: Refused) -> None:
    with pytest.raises(InputError, match=r"^/dev/zero: is a device or a pipe"):
        load("/dev/zero")
    with pytest.raises(InputError, match=r"^/dev/zero: is a device or a pipe"):
        load(write("e.yaml", "extends: /dev/zero\n"))
    assert "model: /dev/zero: is no file but a folder, a device or a pipe" in refused(COMPLETE, "model=/dev/zero")[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with pytest.raises(InputError, match=r"^pipe: is a device or a pipe"):
        load("pipe")


def test_a_file_larger_than_any_scenario_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("large.yaml", "large.json"):
        with open(name, "wb") as file:
            file.truncate(2**31)
    with pytest.raises(InputError, match=r"^large\.yaml: has more than 4,194,304 bytes"):
        load("large.yaml")
    with pytest.raises(InputError, match=r"large\.json: has more than 4,194,304 bytes"):
        Scenario.from_dict({"model": "./large.json", "gpu": "H100", "workload": {"trace": "azure-conv-2023"}})


# Keys.


def test_a_null_that_takes_back_one_size_of_the_pool_leaves_another(write: Write) -> None:
    path = write("s.yaml", COMPLETE)
    for overrides in (["pool.memory=12GiB", "pool.tokens=null"], ["pool.tokens=null", "pool.memory=12GiB"]):
        pool = load(path, overrides=overrides).settings.pool
        assert pool is not None
        assert (pool.memory, pool.tokens, pool.blocks) == (12 * 2**30, None, None)
    pool = load(path, overrides=["pool.tokens=null"]).settings.pool
    assert pool is not None
    assert pool.blocks == 2588


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "slo.ttft: 1s",
            "slo.ttft: 1s is given for a key with dots; write slo: {ttft: 1s}; dots are for --set and variants",
        ),
        ("slo.ttftt: 1s", "slo.ttftt: 1s is given for an unknown key; did you mean ttft?"),
        ("slo.zzz: 1s", "slo.zzz: 1s is given for an unknown key; known here: ttft, tpot, e2e, classes"),
    ],
)
def test_a_key_with_dots_is_looked_up_where_the_dots_lead(refused: Refused, line: str, message: str) -> None:
    assert refused(f"{COMPLETE}{line}\n") == [f"s.yaml:9: {message}"]


def test_what_building_finds_and_no_key_is_known_for_names_the_file(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("something is wrong somewhere")

    monkeypatch.setattr("kvsim.scenario.build.timing_of", fail)
    with pytest.raises(InputError, match=r"^s\.yaml: something is wrong somewhere"):
        build(load(write("s.yaml", COMPLETE)), 0)


def test_a_model_of_unknown_weights_is_refused_with_file_line_and_key(write: Write) -> None:
    scenario = load(write("s.yaml", COMPLETE.replace("Llama-3.1-8B", "kimi-k3")))
    with pytest.raises(InputError, match=r"^s\.yaml:1: model: kimi-k3: params_total_b is not known"):
        build(scenario, 0)

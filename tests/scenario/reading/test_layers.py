"""Layers of a scenario: what wins over what, what merges, what replaces, and where each value came from."""

from collections.abc import Callable

import pytest

from kvsim.errors import InputError
from kvsim.scenario import Scenario, load, load_all
from kvsim.scenario.schema import ContiguousSettings, PagedSettings, PoolSettings
from tests.scenario.conftest import COMPLETE

Write = Callable[[str, str], str]


def test_the_command_line_wins_over_variant_over_file_over_extended_file(write: Write) -> None:
    write("base.yaml", COMPLETE + "seed: 1\nhorizon: 1s\nslo: {ttft: 1s, tpot: 1s}\ntensor_parallel: 1\n")
    path = write(
        "s.yaml",
        "extends: base.yaml\nseed: 2\nhorizon: 2s\nslo: {ttft: 2s}\nvariants:\n  a: {seed: 3, horizon: 3s}\n",
    )
    settings = load(path, variant="a", overrides=["seed=4"]).settings
    assert settings.seed == 4
    assert settings.horizon == 3 * 10**12
    assert settings.slo.ttft == 2 * 10**12
    assert settings.slo.tpot == 10**12


def test_every_value_states_its_source(write: Write) -> None:
    write("base.yaml", COMPLETE)
    path = write(
        "s.yaml",
        "extends: base.yaml\nseed: 2\nallocator: paged\nvariants:\n  a:\n    allocator.block_size: 1\n",
    )
    resolved = load(path, variant="a", overrides=["workload.rate=12/s"]).resolved()
    assert resolved["model.name"] == {"value": "Llama-3.1-8B", "source": "extends base.yaml:1"}
    assert resolved["seed"] == {"value": 2, "source": "s.yaml:2"}
    assert resolved["allocator.name"] == {"value": "paged", "source": "s.yaml:3"}
    assert resolved["allocator.block_size"] == {"value": 1, "source": "variant a s.yaml:6"}
    assert resolved["workload.rate"] == {"value": "12/s", "source": "--set"}
    assert resolved["workload.arrivals.process"] == {"value": "poisson", "source": "default"}
    assert resolved["engine.max_num_seqs"] == {"value": 256, "source": "profile vllm@0.33-sync"}
    assert resolved["window.warmup"] == {"value": "0s", "source": "default"}
    assert resolved["timing.step_overhead_s"]["source"] == "default"
    assert resolved["horizon"] == {"value": None, "source": "default"}


def test_a_key_of_a_profile_that_is_given_is_not_the_profiles(write: Write) -> None:
    resolved = load(write("s.yaml", COMPLETE), overrides=["engine.max_num_seqs=8"]).resolved()
    assert resolved["engine.max_num_seqs"] == {"value": 8, "source": "--set"}
    assert resolved["engine.profile"] == {"value": "vllm@0.33-sync", "source": "default"}


def test_another_kind_replaces_the_whole_mapping(write: Write) -> None:
    path = write("s.yaml", COMPLETE + "allocator: {name: paged, block_size: 32}\n")
    assert load(path, overrides=["allocator=contiguous"]).settings.allocator == ContiguousSettings(name="contiguous")
    uniform = load(path, overrides=["workload.prompt_tokens={distribution: uniform, min: 1, max: 9}"])
    lengths = uniform.settings.workload.prompt_tokens
    assert lengths is not None
    assert lengths.parameters == {"distribution": "uniform", "min": 1, "max": 9}


def test_the_same_kind_merges_key_by_key(write: Write) -> None:
    path = write("s.yaml", COMPLETE + "allocator: {name: paged, block_size: 32}\n")
    settings = load(path, overrides=["allocator.watermark=0.01"]).settings
    assert settings.allocator == PagedSettings(name="paged", block_size=32, watermark=0.01)


def test_options_of_the_default_allocator_do_not_reach_another(write: Write) -> None:
    path = write("s.yaml", COMPLETE + "allocator: {block_size: 32}\n")
    assert load(path).settings.allocator == PagedSettings(block_size=32)
    assert load(path, overrides=["allocator=reserve"]).settings.allocator.name == "reserve"


def test_a_pool_given_in_another_way_replaces_the_first(write: Write) -> None:
    settings = load(write("s.yaml", COMPLETE), overrides=["pool.memory=12GiB"]).settings
    assert settings.pool == PoolSettings(memory="12GiB")  # type: ignore[arg-type]
    assert settings.pool is not None
    assert settings.pool.memory == 12 * 2**30


def test_null_gives_a_key_back_to_its_default(write: Write) -> None:
    path = write("s.yaml", COMPLETE + "seed: 7\nvariants: {a: {pool: null, seed: ~}}\n")
    scenario = load(path, variant="a")
    assert scenario.settings.pool is None
    assert scenario.seed == 0
    assert scenario.resolved()["seed"]["source"] == "default"


def test_a_shorthand_is_the_long_form(write: Write) -> None:
    short = COMPLETE + "engine: vllm@0.33-sync\nallocator: contiguous\ntiming: roofline\n"
    long = (
        COMPLETE.replace("model: Llama-3.1-8B", "model: {name: Llama-3.1-8B}").replace(
            "output_tokens: 128", "output_tokens: {distribution: constant, value: 128}"
        )
        + "engine: {profile: vllm@0.33-sync}\nallocator: {name: contiguous}\ntiming: {name: roofline}\n"
    )
    assert load(write("s.yaml", short)).settings == load(write("s.yaml", long)).settings


def test_variants_come_in_the_order_of_the_file_with_nested_and_dotted_keys(write: Write) -> None:
    path = write(
        "s.yaml",
        COMPLETE + "variants:\n  z: {allocator.block_size: 1}\n  a: {allocator: {name: reserve}}\n  m:\n",
    )
    scenarios = load_all(path, ["seed=5"])
    assert [(one.label, one.settings.allocator.name, one.seed) for one in scenarios] == [
        ("z", "paged", 5),
        ("a", "reserve", 5),
    ]
    assert [name for name, _ in scenarios[0].variants()] == ["z", "a"]


def test_variants_are_inherited_changed_and_dropped(write: Write) -> None:
    write("base.yaml", COMPLETE + "variants: {a: {seed: 1, horizon: 1s}, b: {seed: 2}}\n")
    path = write("s.yaml", "extends: base.yaml\nvariants: {a: {seed: 3}, b: null, c: {seed: 4}}\n")
    assert [(one.label, one.seed, one.settings.horizon) for one in load_all(path)] == [
        ("a", 3, 10**12),
        ("c", 4, None),
    ]
    assert len(load_all(write("t.yaml", "extends: base.yaml\nvariants: null\n"))) == 1


def test_variants_need_a_choice_that_exists(write: Write) -> None:
    path = write("s.yaml", COMPLETE + "variants: {a: {seed: 1}, b: {seed: 2}}\n")
    with pytest.raises(InputError, match="has variants; choose one with --variant: a or b"):
        load(path)
    with pytest.raises(InputError, match="c is no variant of this scenario; choose a or b"):
        load(path, variant="c")
    with pytest.raises(InputError, match="the scenario has no variants"):
        load(write("t.yaml", COMPLETE), variant="a")


def test_name_and_description_are_the_files_own(write: Write) -> None:
    write("base.yaml", COMPLETE + "name: base\ndescription: what the base asks\n")
    settings = load(write("child.yaml", "extends: base.yaml\n")).settings
    assert settings.name == "child"
    assert settings.description is None


def test_the_given_text_of_every_file_is_kept(write: Write) -> None:
    write("sub/base.yaml", COMPLETE)
    scenario = load(write("s.yaml", "extends: sub/base.yaml\n"))
    assert scenario.given == {"sub/base.yaml": COMPLETE, "s.yaml": "extends: sub/base.yaml\n"}


def test_a_trace_is_found_beside_the_file_that_names_it(write: Write) -> None:
    trace = "workload: {trace: t.csv}\n"
    serving = "model: Llama-3.1-8B\ngpu: H100\n"
    write("sub/t.csv", "")
    write("other.csv", "")
    write("sub/base.yaml", serving + trace)
    path = write("s.yaml", "extends: sub/base.yaml\n")
    assert load(path).trace == "sub/t.csv"
    assert load(path, overrides=["workload.trace=other.csv"]).trace == "other.csv"
    assert load(path, overrides=["workload.trace=azure-conv-2023"]).trace == "azure-conv-2023"
    with pytest.raises(InputError, match=r"--set: workload\.trace: t\.csv is neither a packaged trace nor a file"):
        load(path, overrides=["workload.trace=t.csv"])


def test_a_model_is_a_name_or_a_configuration_beside_the_file(write: Write) -> None:
    config = (
        '{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, '
        '"num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100, '
        '"max_position_embeddings": 512}'
    )
    write("sub/tiny.json", config)
    path = write("sub/s.yaml", COMPLETE.replace("Llama-3.1-8B", "tiny.json"))
    assert load(path).model.endswith("sub/tiny.json")
    assert load(path, overrides=["model=Llama-3.1-8B"]).model == "Llama-3.1-8B"


def test_from_dict_reads_back_what_to_dict_wrote(write: Write) -> None:
    scenario = load(
        write("s.yaml", COMPLETE),
        overrides=[
            "slo.ttft=1.5s",
            "workload.max_tokens={times_output: 1.5}",
            "workload.cancel=30s",
            "timing.linear_compute_efficiency=0.5",
        ],
    )
    assert Scenario.from_dict(scenario.to_dict()).settings == scenario.settings


def test_from_dict_gives_its_variants() -> None:
    base = {"model": "Llama-3.1-8B", "gpu": "H100", "workload": {"trace": "azure-conv-2023"}}
    scenario = Scenario.from_dict({**base, "variants": {"a": {"seed": 1}, "b": {"pool.blocks": 9}}}, name="mine")
    assert scenario.name == "mine"
    assert [(name, one.seed) for name, one in scenario.variants()] == [("a", 1), ("b", 0)]
    assert Scenario.from_dict(base).variants()[0][0] == "scenario"


def test_settings_hold_plain_numbers(write: Write) -> None:
    settings = load(
        write(
            "s.yaml",
            COMPLETE + "capacity: {gpu_memory_utilization: 90%, activation: 1GiB}\nwindow: {warmup: 5s}\n",
        )
    ).settings
    assert settings.workload.rate == 8.0
    assert settings.capacity.gpu_memory_utilization == 0.9
    assert settings.capacity.activation == 2**30
    assert settings.window.warmup == 5 * 10**12
    assert settings.timing.parameters == {}

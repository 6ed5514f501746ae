"""The JSON Schema of a scenario: the form a user writes, and in step with what is accepted."""

import json
import subprocess
import sys
from typing import Any

import pytest

from kvsim.scenario import Scenario, Settings, schema
from kvsim.scenario.reading.merging import KINDS, LENGTHS, SHORTHAND
from kvsim.scenario.schema.generated.arrivals import PRESETS, PROCESSES
from kvsim.scenario.schema.generated.lengths import DISTRIBUTIONS
from kvsim.scenario.schema.settings import parts


def properties_at(made: dict[str, Any], key: str) -> dict[str, Any]:
    holder = made
    *above, last = key.split(".")
    for word in above:
        inner = holder["properties"][word]
        [ref] = [form["$ref"] for form in inner.get("anyOf", [inner]) if "$ref" in form]
        holder = made["$defs"][ref.rpartition("/")[2]]
    found = holder["properties"][last]
    assert isinstance(found, dict)
    return found


def test_the_schema_is_json_and_lists_every_top_key() -> None:
    made = json.loads(json.dumps(schema()))
    assert set(made["properties"]) == {*Settings.model_fields, "extends", "variants"}
    assert made["additionalProperties"] is False


def test_sizes_durations_and_rates_are_texts_with_a_unit() -> None:
    made = schema()
    for part, key in [("PoolSettings", "memory"), ("SloSettings", "ttft"), ("WorkloadSettings", "rate")]:
        text = made["$defs"][part]["properties"][key]["anyOf"][0]
        assert text["type"] == "string"
        assert text["pattern"]


def test_a_shorthand_is_part_of_the_schema() -> None:
    made = schema()
    for key in SHORTHAND:
        assert properties_at(made, key)["anyOf"][0]["type"] == "string"
    for key in LENGTHS:
        assert properties_at(made, key)["anyOf"][0]["type"] == "integer"


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.__name__)
def test_every_key_is_described(part: Any) -> None:
    described = set(part.descriptions())
    assert set(part.model_fields) - {"name"} <= described | {"distribution"}


def test_a_file_that_extends_another_may_leave_out_what_is_required() -> None:
    assert schema()["anyOf"] == [{"required": ["extends"]}, {"required": ["model", "gpu", "workload"]}]


@pytest.mark.parametrize("name", list(DISTRIBUTIONS))
def test_the_keys_of_a_distribution_are_arguments_of_its_class(name: str) -> None:
    import dataclasses

    from kvsim.workload.lengths import LENGTHS as CLASSES

    needed, allowed = DISTRIBUTIONS[name]
    keys = {key for group in needed for key in group} | set(allowed)
    assert keys <= {field.name for field in dataclasses.fields(CLASSES[name])}


def test_the_processes_are_those_of_the_workload() -> None:
    from kvsim.workload.arrivals import ARRIVALS
    from kvsim.workload.presets import arrival_presets

    allowed = schema()["$defs"]["ArrivalSettings"]["properties"]["process"]["enum"]
    assert sorted(allowed) == sorted([*ARRIVALS, *arrival_presets()])
    assert list(PROCESSES) == list(ARRIVALS)
    assert sorted(PRESETS) == sorted(arrival_presets())
    assert KINDS["workload.arrivals"] == ("process", "poisson")


def test_the_formats_are_those_of_the_readers() -> None:
    from kvsim.workload.readers import READERS

    allowed = schema()["$defs"]["WorkloadSettings"]["properties"]["format"]["anyOf"][0]
    assert sorted(allowed.get("enum", [allowed.get("const")])) == sorted(READERS)


def test_the_number_formats_are_those_of_the_catalogue() -> None:
    from kvsim.catalog.weights import DTYPE_BITS

    allowed = schema()["$defs"]["ModelSettings"]["properties"]["kv_dtype"]["enum"]
    assert set(allowed) <= set(DTYPE_BITS)


def test_settings_cannot_be_changed_once_read() -> None:
    settings = Scenario.from_dict(
        {"model": "Llama-3.1-8B", "gpu": "H100", "workload": {"trace": "azure-conv-2023"}}
    ).settings
    with pytest.raises(ValueError, match="frozen"):
        settings.seed = 3  # type: ignore[misc]


def test_reading_a_scenario_loads_no_heavy_package() -> None:
    code = (
        "import sys; from kvsim.scenario import Scenario;"
        "workload = {'trace': 'azure-conv-2023'};"
        "Scenario.from_dict({'model': 'Llama-3.1-8B', 'gpu': 'H100', 'workload': workload});"
        "print([name for name in ('numpy', 'pandas', 'matplotlib', 'scipy', 'pyarrow', 'simpy', 'rich')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

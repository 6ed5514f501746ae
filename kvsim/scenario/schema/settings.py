"""The whole scenario as pydantic sees it, and its JSON Schema in the form a user writes."""

from typing import Annotated, Any

from pydantic import Field

from kvsim.scenario.reading.merging import LENGTHS, SHORTHAND
from kvsim.scenario.schema.fields import Count, Part, Timespan
from kvsim.scenario.schema.fleet import FleetSettings
from kvsim.scenario.schema.serving import (
    AllocatorSettings,
    CapacitySettings,
    EngineSettings,
    ModelSettings,
    PagedSettings,
    PlacementSettings,
    PoolSettings,
    PriceSettings,
    TimingSettings,
)
from kvsim.scenario.schema.traffic import SloSettings, WindowSettings, WorkloadSettings


class Settings(Part):
    """A question about the KV memory of a serving engine: a model on a GPU under an engine's rules and some
    traffic."""

    name: Annotated[str, Field(min_length=1)]
    """The name in every output; absent: the file's."""
    description: str | None = None
    """What the scenario asks, for people."""
    seed: Annotated[int, Field(ge=0, le=(1 << 128) - 1)] = 0
    """The one seed of every random stream."""
    model: ModelSettings
    """The model that is served, by name or with its number formats."""
    gpu: Annotated[str, Field(min_length=1)]
    """A name from `kvsim gpus`."""
    tensor_parallel: Count = 1
    """GPUs that share every layer of a replica."""
    pipeline_parallel: Count = 1
    """Stages of such GPUs that hold a part of the layers each; as many batches are in flight as there are stages.
    Schedulers `continuous` and `vllm` only."""
    engine: EngineSettings = Field(default_factory=EngineSettings)
    """The engine's profile, by name or with what is changed about it."""
    fleet: FleetSettings | None = None
    """Several replicas behind a router; absent: one."""
    allocator: AllocatorSettings = Field(default_factory=PagedSettings)
    """How KV memory is given out, by name or with options; absent: as the engine's profile does."""
    pool: PoolSettings | None = None
    """The size of the KV pool given outright; absent: what `capacity` leaves."""
    placement: PlacementSettings = Field(default_factory=PlacementSettings)
    """Where KV lies: on the GPU, or a part of it on the host."""
    capacity: CapacitySettings = Field(default_factory=CapacitySettings)
    """The GPU's memory budget, used where `pool` is absent."""
    timing: TimingSettings = Field(default_factory=TimingSettings)
    """How long a step takes, by name or with parameters."""
    price: PriceSettings = Field(default_factory=PriceSettings)
    """What the GPUs cost."""
    workload: WorkloadSettings
    """The requests that arrive."""
    slo: SloSettings = Field(default_factory=SloSettings)
    """The latency goals."""
    window: WindowSettings = Field(default_factory=WindowSettings)
    """The part of the run that is measured."""
    published: dict[str, float | dict[str, float]] | None = None
    """What a paper prints for these metrics, by dotted name, shown beside the simulated ones: shares as fractions."""
    horizon: Timespan | None = None
    """When the run is stopped whatever is left; absent: when every request has ended."""


def parts() -> list[type[Part]]:
    """Return the model of every mapping a scenario may hold, the outermost first."""
    found: list[type[Part]] = []
    waiting: list[type[Part]] = [Settings]
    while waiting:
        part = waiting.pop(0)
        if part not in found:
            found.append(part)
            waiting += [inner for key in part.model_fields for inner in part.inner(key)]
    return found


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file: units as texts, shorthands, `extends` and `variants`
    included."""
    made = Settings.model_json_schema()
    for part in parts():
        _describe(part, made if part is Settings else made["$defs"][part.__name__])
    for key, inner in SHORTHAND.items():
        _allow(made, key, {"type": "string", "description": f"short for {{{inner}: ...}}"})
    for key in LENGTHS:
        _allow(made, key, {"type": "integer", "minimum": 1, "description": "short for a constant length"})
    made["properties"] |= {
        "extends": {
            "type": "string",
            "description": "A scenario, relative to this file, whose keys hold where this one is silent.",
        },
        "variants": {
            "type": "object",
            "additionalProperties": {"type": "object"},
            "description": "Name to changes, nested or with dotted keys; see `kvsim compare`.",
        },
    }
    # The name has a default (the file's); the other keys may come from the file that this one extends.
    needed = [key for key in made.pop("required") if key != "name"]
    made["anyOf"] = [{"required": ["extends"]}, {"required": needed}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _describe(part: type[Part], described: dict[str, Any]) -> None:
    for key, text in part.descriptions().items():
        if key in described["properties"]:
            described["properties"][key]["description"] = text


def _allow(made: dict[str, Any], key: str, short: dict[str, Any]) -> None:
    """Let the dotted `key` also be written as `short`."""
    holder = made
    *above, last = key.split(".")
    for word in above:
        inner = holder["properties"][word]
        forms = inner.get("anyOf", [inner])
        [name] = [form["$ref"].rpartition("/")[2] for form in forms if "$ref" in form]
        holder = made["$defs"][name]
    long = holder["properties"][last]
    about = {word: long.pop(word) for word in ("description", "default") if word in long}
    forms = long["anyOf"] if set(long) == {"anyOf"} else [long]
    holder["properties"][last] = {**about, "anyOf": [short, *forms]}

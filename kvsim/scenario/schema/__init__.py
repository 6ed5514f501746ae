"""What a scenario may say: one pydantic model a mapping, strict and without unknown keys."""

from kvsim.scenario.schema.generated.arrivals import ArrivalSettings
from kvsim.scenario.schema.generated.layers import PrefixSettings
from kvsim.scenario.schema.generated.lengths import LengthSettings
from kvsim.scenario.schema.serving import (
    AllocatorSettings,
    CapacitySettings,
    ContiguousSettings,
    EngineSettings,
    ModelSettings,
    PagedSettings,
    PoolSettings,
    RadixSettings,
    ReserveSettings,
    TimingSettings,
    VirtualSettings,
)
from kvsim.scenario.schema.settings import Settings, schema
from kvsim.scenario.schema.traffic import (
    BeamSettings,
    CancelSettings,
    SloSettings,
    TimesOutput,
    WindowSettings,
    WorkloadSettings,
)

__all__ = [
    "AllocatorSettings",
    "ArrivalSettings",
    "BeamSettings",
    "CancelSettings",
    "CapacitySettings",
    "ContiguousSettings",
    "EngineSettings",
    "LengthSettings",
    "ModelSettings",
    "PagedSettings",
    "PoolSettings",
    "PrefixSettings",
    "RadixSettings",
    "ReserveSettings",
    "Settings",
    "SloSettings",
    "TimesOutput",
    "TimingSettings",
    "VirtualSettings",
    "WindowSettings",
    "WorkloadSettings",
    "schema",
]

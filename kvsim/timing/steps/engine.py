"""What an engine adds to the kernels of a step, as shipped: fitted to published served runs (`data/engines.json`)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

FIRST_VLLM = (0, 6)
"""vLLM before this release is scheduled as the one of 2023 that was measured: its CPU work stands between steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """Scales of kernels against micro-benchmarks, and microseconds per layer, step and sequence."""

    linear_scale: float
    experts_scale: float
    attention_scale: float
    collectives_scale: float
    prompt_scale: float
    layer_us: float
    step_us: float
    sequence_us: float


def overheads(engine: str, version: str) -> tuple[str, Overheads]:
    """(name of the measured engine, its overheads): of the engine itself where it was measured, else of vLLM."""
    name = measured_engine(engine, version) or "vllm"
    return name, Overheads(**{one.name: _measured()[name][one.name] for one in fields(Overheads)})


def measured_engine(engine: str, version: str) -> str | None:
    """The generation of that engine that was measured: `vllm`, `vllm-2023`, `sglang`; None where none was."""
    if engine not in _measured():
        return None
    return "vllm-2023" if engine == "vllm" and release(version) < FIRST_VLLM else engine


EAGER_ENGINE = "vllm-2023"
"""The measured engine that had no CUDA graphs: Python launched every kernel (vLLM before 0.2.7, Splitwise's runs)."""


def eager_layer_us() -> float:
    """What a layer takes beside its measured kernels where each is launched by the host, in microseconds."""
    return _measured()[EAGER_ENGINE]["layer_us"]


@cache
def _measured() -> Mapping[str, Mapping[str, float]]:
    table = json.loads(files("kvsim.timing").joinpath("data/engines.json").read_text("utf-8"))
    return {
        name: {key: one["value"] for key, one in entry["parameters"].items()}
        for name, entry in table["engines"].items()
    }


def release(version: str) -> tuple[int, ...]:
    """(0, 33, 1) for "0.33.1"; a release that states no number is the newest."""
    parts = [int(part) for part in version.split(".")[:3] if part.isdecimal()]
    return tuple(parts) if parts else (1 << 30,)

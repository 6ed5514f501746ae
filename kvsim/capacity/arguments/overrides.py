"""What a command says in the keys of a scenario, for `kvsim run` on the same engine."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from kvsim.capacity.arguments.command import EngineCommand, Flag
from kvsim.units import size_text

_POOLS = ("num_gpu_blocks_override", "max_total_tokens", "kv_memory_bytes")
"""Settings that give the pool outright, the one that beats the others first: a scenario has one."""


def scenario_overrides(command: EngineCommand) -> dict[str, Any]:
    """Return dotted scenario keys and their values, as `--set` takes them.

    Only keys that a scenario has, and only values it can say: number formats of the engines become kvsim's, and
    one that says too little (GPTQ: 4 bits or 8) is left out. The profile (`engine.profile`) is left to the caller.
    """
    keys = {flag.key: flag.scenario for flag in command.flags if flag.key is not None and flag.scenario is not None}
    given: dict[str, Any] = {} if command.model is None else {"model.name": command.model}
    for setting, value in command.settings.items():
        key = keys.get(setting)
        if key is None or (setting in _POOLS and setting != _pool(command)):
            continue
        said = _said(setting, value)
        # The weights have the quantised format, whatever the activations are in.
        if said is not None and not (setting == "dtype" and "quantization" in command.settings):
            given[key] = said
    return given


def flags_for_run(command: EngineCommand) -> tuple[Flag, ...]:
    """Return the flags with what a run does with them: used where a scenario key says the same."""
    overrides = scenario_overrides(command)
    return tuple(_for_run(flag, overrides) for flag in command.flags)


def _for_run(flag: Flag, overrides: dict[str, Any]) -> Flag:
    if flag.status != "used" or flag.scenario in overrides:
        return flag
    return replace(flag, status="not modelled", why=f"{flag.why}; a scenario cannot say it")


def _pool(command: EngineCommand) -> str:
    return next(setting for setting in _POOLS if setting in command.settings)


def _said(setting: str, value: Any) -> Any:
    """A setting's value as a scenario says it; None where it cannot."""
    if setting == "kv_memory_bytes":
        return size_text(value)
    formats = _formats()
    return formats[setting].get(value) if setting in formats else value


@cache
def _formats() -> dict[str, dict[str, str]]:
    read: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "formats.json").read_bytes())
    return {name: table for name, table in read.items() if name != "source"}

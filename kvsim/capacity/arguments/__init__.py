"""A pasted `vllm serve ...` or SGLang command, read back into settings: one table of flags per engine."""

from kvsim.capacity.arguments.command import EngineCommand, Flag
from kvsim.capacity.arguments.overrides import flags_for_run, scenario_overrides
from kvsim.capacity.arguments.parse import parse_command

__all__ = ["EngineCommand", "Flag", "flags_for_run", "parse_command", "scenario_overrides"]

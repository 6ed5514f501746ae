"""A pasted engine command: fills in the options, and says of each flag what is done with it."""

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvsim.capacity.arguments import Flag


def read_command(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Fill in `args` from `--engine-args`; returns the flags as plain data."""
    from dataclasses import asdict

    from kvsim.capacity.arguments import parse_command
    from kvsim.cli.capacity.building import fill_in

    command = parse_command(args.engine_args)
    fill_in(args, {**command.settings, "model": command.model})
    if args.engine is None:
        args.engine = command.engine if command.version is None else f"{command.engine}@{command.version}"
    return [asdict(_for_the_pool(flag, command.settings)) for flag in command.flags]


def _for_the_pool(flag: "Flag", settings: Mapping[str, Any]) -> "Flag":
    """The flag as a plan treats it: what only a run asks about is ignored here."""
    from dataclasses import replace

    from kvsim.cli.capacity.building import OPTIONS, OTHER_SETTINGS

    if flag.key == "max_model_len" and flag.key not in settings:
        why = "the model's own limit is planned; where it does not fit, the engine takes what does (see what would fit)"
        return replace(flag, status="not modelled", why=why)
    if flag.status != "used" or flag.key in OPTIONS or flag.key in OTHER_SETTINGS:
        return flag
    return replace(flag, status="ignored", why=f"{flag.why}; it does not change the pool")


def print_flags(args: argparse.Namespace, flags: Iterable[dict[str, Any]]) -> None:
    """A table of the flags."""
    from kvsim.cli.show import print_rows

    rows = [[flag["name"], flag["value"] or "", flag["status"], flag["why"]] for flag in flags]
    print_rows(args, [("flag", "left"), ("value", "left"), ("status", "left"), ("why", "left")], rows)


def as_overrides(text: str) -> tuple[list[str], "tuple[Flag, ...]"]:
    """(`KEY=VALUE` overrides of a scenario, flags with what a run does with them) of a pasted command."""
    import json

    from kvsim.capacity.arguments import flags_for_run, parse_command, scenario_overrides

    command = parse_command(text)
    said = scenario_overrides(command)
    return [f"{key}={json.dumps(value)}" for key, value in said.items()], flags_for_run(command)

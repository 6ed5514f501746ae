"""`kvsim presets`: traffic that scenarios can name: lengths and arrivals as recorded somewhere."""

import argparse
from collections.abc import Mapping
from typing import Any

from kvsim.cli.options import add_output_options


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "presets",
        help="list the presets of traffic, or show one",
        description="List the presets of lengths (workload.preset) and of arrivals (workload.arrivals), or show one.",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="a preset, e.g. azure-conv")
    add_output_options(parser, "print JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """List all, or show the one that was named."""
    from kvsim.cli.show import console, print_facts, print_json, print_rows, print_text
    from kvsim.workload.presets import arrival_presets, length_preset, length_presets

    lengths, arrivals = length_presets(), arrival_presets()
    if args.name is not None:
        one = arrivals[args.name] if args.name in arrivals else length_preset(args.name)
        print_json(one) if args.json else print_facts(args, _facts(args.name, one))
        return 0
    if args.json:
        print_json({"lengths": lengths, "arrivals": arrivals})
        return 0
    out = console(args)
    print_text(out, "workload.preset: lengths, median / 95 % / 99 % in tokens", "bold")
    rows = [[name, _quantiles(one["prompt_tokens"]), _quantiles(one["output_tokens"])] for name, one in lengths.items()]
    print_rows(args, [("preset", "left"), ("prompt", "right"), ("output", "right")], rows)
    out.print()
    print_text(out, "workload.arrivals: processes", "bold")
    print_rows(
        args, [("preset", "left"), ("what it is", "left")], [[name, one["about"]] for name, one in arrivals.items()]
    )
    return 0


def _facts(name: str, one: Mapping[str, Any]) -> dict[str, object]:
    facts: dict[str, object] = {"name": name}
    for word, value in one.items():
        shown = f"{_quantiles(value)} (median / 95 % / 99 % of {value['rows']:,})" if isinstance(value, dict) else value
        facts[word.replace("_", " ")] = shown if not isinstance(shown, list) else ", ".join(map(str, shown))
    return facts


def _quantiles(recorded: Mapping[str, Any]) -> str:
    return " / ".join(f"{recorded['percentiles'][percent]:,.0f}" for percent in (50, 95, 99))

"""`kvsim engines`: the engine profiles, or one of them with its known deviations."""

import argparse
from typing import TYPE_CHECKING, Any

from kvsim.cli.options import add_output_options

if TYPE_CHECKING:
    from rich.console import Console

    from kvsim.catalog.engines import Profile


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "engines",
        help="list the engine profiles, or show one",
        description="List the engine profiles, each the rules of one release, or show one in full.",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="a profile, e.g. vllm@0.33-sync")
    add_output_options(parser, "print JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """List all, or show the one that was named."""
    from dataclasses import asdict

    from kvsim.catalog.engines import profiles
    from kvsim.cli.show import console, print_json, print_text

    if args.name is not None:
        return _show(args)
    known = profiles()
    if args.json:
        print_json([asdict(one) for one in known])
        return 0
    out = console(args)
    for number, one in enumerate(known):
        if number:
            out.print()
        print_text(out, f"{one.name} ({one.engine} {one.version})", "bold")
        print_text(out, one.description, indent="  ")
        _deviations(out, one, "  ")
    return 0


def _show(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from kvsim.catalog.engines import profile
    from kvsim.cli.show import console, print_facts, print_json, print_text
    from kvsim.units import format_size

    one = profile(args.name)
    facts: dict[str, object] = asdict(one)
    if args.json:
        print_json(facts)
        return 0
    units = {"block_size": "tokens", "max_num_batched_tokens": "tokens a step", "max_num_seqs": "sequences"}
    shown: dict[str, object] = {}
    paragraphs = ("description", "source", "known_deviations")
    for name, value in facts.items():
        if name in paragraphs:
            continue
        if name.endswith("_bytes"):
            shown[name.removesuffix("_bytes").replace("_", " ")] = f"{format_size(int(str(value)))} a GPU"
        elif isinstance(value, dict):
            shown[name] = ", ".join(text if key == "name" else f"{key} {text}" for key, text in value.items())
        elif name == "long_prefill_token_threshold" and not value:
            shown[name] = "none"
        elif name in units:
            shown[name] = f"{value:,} {units[name]}"
        else:
            # Keys of a scenario keep their spelling.
            shown[name] = value
    print_facts(args, shown)
    out = console(args)
    for text in (one.description, f"Rules: {one.source}"):
        out.print()
        print_text(out, text)
    out.print()
    _deviations(out, one, "")
    return 0


def _deviations(out: "Console", one: "Profile", indent: str) -> None:
    from kvsim.cli.show import print_text

    print_text(out, "known deviations:", indent=indent)
    for deviation in one.known_deviations:
        print_text(out, f"- {deviation}", indent=indent)

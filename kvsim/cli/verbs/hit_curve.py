"""`kvsim hit-curve`: how large a prefix cache is worth it for a trace."""

import argparse
from collections.abc import Mapping
from typing import Any

from kvsim.cli.options import add_output_options, whole

DEFAULT_POLICIES = "lru,optimal"


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "hit-curve",
        help="how large a prefix cache is worth it for a trace",
        description="Serve the prompts of a trace from a prefix cache of each size, and print how many of their blocks "
        "are found under each policy of eviction. LRU is exact at every size.",
        allow_abbrev=False,
    )
    parser.add_argument("trace", metavar="TRACE", help="a file with ids of prefix blocks, or a packaged trace")
    parser.add_argument(
        "--policy",
        metavar="NAMES",
        dest="policies",
        default=DEFAULT_POLICIES,
        help="lru (a prompt's tail goes before its head, as in vLLM and SGLang), lru-head-first, lfu, fifo, "
        f"length-aware, s3-fifo, optimal (knows the future), or all; default {DEFAULT_POLICIES}",
    )
    parser.add_argument(
        "--sizes",
        metavar="SIZES",
        help="blocks, tokens or, with --model, bytes: 16384,3000000tokens,40GiB; default: doubling up to the whole",
    )
    parser.add_argument("--model", metavar="NAME", help="also print sizes in GiB of this model's KV (bf16, one GPU)")
    parser.add_argument(
        "--full-blocks", action="store_true", help="leave out partly filled last blocks, which engines do not share"
    )
    parser.add_argument(
        "--block-tokens",
        metavar="N",
        type=whole,
        help="tokens of a block of the trace; default: what the file says, or its format (mooncake 512, bailian 16)",
    )
    parser.add_argument("--requests", metavar="N", type=whole, help="use the first N requests alone")
    parser.add_argument("--format", metavar="NAME", help="the trace's format; default: known from its first line")
    parser.add_argument(
        "--on-bad-row", choices=("error", "drop"), default="error", help="what happens at a row that cannot be used"
    )
    parser.add_argument("-o", metavar="DIR", dest="folder", help="write hit_curve.json and the figure there")
    add_output_options(parser, "print the curve as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Read the trace, serve it, write, print."""
    from kvsim.catalog.footprint import Footprint
    from kvsim.catalog.models import model
    from kvsim.cli.progress import progress_bar
    from kvsim.cli.show import print_json
    from kvsim.errors import InputError
    from kvsim.memory.eviction import POLICIES
    from kvsim.study.hits.curve import hit_curve
    from kvsim.study.hits.record import record
    from kvsim.study.hits.sizes import blocks_of
    from kvsim.workload.trace.prefixes import read_prefixes

    if args.folder is not None:
        from kvsim.reporting.run_folder import check_writable

        check_writable(args.folder)
    policies = list(POLICIES) if args.policies == "all" else list(dict.fromkeys(args.policies.split(",")))
    unknown = [name for name in policies if name not in POLICIES]
    if unknown:
        raise InputError(f"--policy {unknown[0]!r}: is no policy; choose from {', '.join(POLICIES)}, or all")
    shape = None if args.model is None else model(args.model)
    bytes_per_token = None if shape is None else Footprint(shape).kv_bytes_per_token
    try:
        prefixes = read_prefixes(
            args.trace,
            format=args.format,
            block_tokens=args.block_tokens,
            on_bad_row=args.on_bad_row,
            requests=args.requests,
        )
    except ValueError as error:
        raise InputError(f"--{error}") from error
    sizes = None
    if args.sizes is not None:
        sizes = [blocks_of(size, prefixes.block_tokens, bytes_per_token) for size in args.sizes.split(",")]
    with progress_bar(args) as progress:
        curve = hit_curve(
            prefixes, policies=policies, sizes_blocks=sizes, full_blocks=args.full_blocks, progress=progress
        )
    found = record(curve, model=None if shape is None else shape.name, bytes_per_token=bytes_per_token)
    if args.folder is not None:
        from kvsim.reporting.figures.prefix.hit_curve import write_hit_curve

        write_hit_curve(curve, found, args.folder)
    if args.json:
        print_json(found)
    else:
        _print(args, found)
    return 0


def _print(args: argparse.Namespace, found: Mapping[str, Any]) -> None:
    from kvsim.cli.show import Justify, console, print_rows, print_text

    out = console(args)
    print_text(out, _finding(found), "bold")
    print_text(out, _ideal(found))
    out.print()
    policies = list(found["points"][0]["policies"])
    with_gib = found["model"] is not None
    columns: list[tuple[str, Justify]] = [("blocks", "right"), ("tokens", "right")]
    columns += [("GiB", "right")] if with_gib else []
    columns += [(name.replace("-", "\n"), "right") for name in policies] + [("of\nideal", "right")]
    rows = []
    for point in found["points"]:
        size, rates = point["size"], point["policies"]
        row = [f"{size['blocks']:,}", _tokens(size["tokens"])] + ([_gib(size["gib"])] if with_gib else [])
        row += [_percent(rates[name]["hit_rate_blocks"]) for name in policies]
        rows.append([*row, _percent(rates[policies[0]]["share_of_ideal"])])
    print_rows(args, columns, rows)
    legend = f"% of {found['counted']} asked for, found at the head of their prompts"
    print_text(out, f"{legend}; of ideal: {policies[0]}'s share of the ideal.", "dim")
    out.print()
    for note in found["notes"]:
        print_text(out, f"note: {note}")


def _finding(found: Mapping[str, Any]) -> str:
    asked = f"{found['requests']:,} prompts of {found['trace']}"
    if not found["ideal"]["hit_rate_blocks"]:
        return f"{asked} share nothing: no cache is worth it."
    needs = found["lru_needs"]
    sizes = "; ".join(f"{100 * float(share):.0f} % at {_size(needs[share])}" for share in needs)
    return f"{asked}: of the ideal, LRU reaches {sizes}."


def _ideal(found: Mapping[str, Any]) -> str:
    kind = "prefixes" if found["prefix_identity"] == "prefixes" else "contents, not prefixes"
    text = (
        f"Ideal, where everything fits ({_size_of_all(found)}): {_percent(found['ideal']['hit_rate_blocks'])} % of "
        f"{found['counted']}, {_percent(found['ideal']['hit_rate_tokens'])} % of prompt tokens"
    )
    full = found["ideal_full_blocks"]
    if full is not None and found["counted"] != "full blocks":
        text += f"; {_percent(full['hit_rate_blocks'])} % of full blocks alone"
    return f"{text}. Identity is real: the file's ids name {kind}."


def _size_of_all(found: Mapping[str, Any]) -> str:
    tokens = found["distinct_blocks"] * found["block_tokens"]
    return f"{found['distinct_blocks']:,} distinct blocks of {found['block_tokens']}, {_tokens(tokens)} tokens"


def _size(size: Mapping[str, Any]) -> str:
    text = f"{size['blocks']:,} blocks ({_tokens(size['tokens'])} tokens"
    return text + (")" if size["gib"] is None else f", {_gib(size['gib'])} GiB)")


def _tokens(tokens: int) -> str:
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if tokens >= unit:
            return f"{tokens / unit:.3g}{name}" if tokens < 1000 * unit else f"{tokens / unit:,.0f}{name}"
    return str(tokens)


def _gib(gib: float) -> str:
    return f"{gib:,.0f}" if gib >= 100 else f"{gib:.3g}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"

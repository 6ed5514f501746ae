"""A plan for people: the verdict, a breakdown that adds up to the card, the engine's own lines, what would fit."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kvsim.capacity.answers.expected import in_words
from kvsim.cli.show import Justify, console, print_facts, print_rows, print_text
from kvsim.units import format_size

if TYPE_CHECKING:
    from rich.console import Console

NAMES = {
    "weights": "weights",
    "activation": "activation peak",
    "non_torch": "non-torch",
    "cuda_graphs": "CUDA graphs",
    "kv": "KV",
    "left": "left over",
    "total": "card",
}
WORDS = {
    "fits": "fits",
    "at_risk": "may fail (at_risk)",
    "offload": "fits with weights on the host (offload)",
    "refused": "does not fit (refused)",
}
STYLES = {"fits": "bold green", "at_risk": "bold yellow", "offload": "bold yellow", "refused": "bold red"}


def print_plan(args: argparse.Namespace, found: Mapping[str, Any]) -> None:
    """Print the record of a plan."""
    out = console(args)
    asked = found["settings"]
    gpu = found["gpu"] or f"{found['breakdown_gib']['total']:.2f} GiB"
    print_text(out, f"{found['model']} on {_cards(asked)}{gpu}, {found['engine']}: {WORDS[found['verdict']]}",
               STYLES[found["verdict"]])  # fmt: skip
    if found["reason"]:
        print_text(out, f"{found['reason_class']}: {found['reason']}")
    out.print()
    _breakdown(args, found)
    out.print()
    for line in found["engine_lines"]:
        print_text(out, line)
    print_facts(args, _facts(found))
    _remedies(args, out, found)
    out.print()
    for part, source in found["provenance"].items():
        print_text(out, f"{NAMES.get(part, part)}: {source}", "dim")
    print_text(out, in_words(found["expected_error"]), "dim")
    print_text(out, "not modelled:", "dim")
    for gap in found["not_modelled"]:
        print_text(out, f"- {gap}", "dim")


def _cards(asked: Mapping[str, Any]) -> str:
    cards = asked["tensor_parallel"] * asked["pipeline_parallel"]
    return f"{cards} x " if cards > 1 else ""


def _breakdown(args: argparse.Namespace, found: Mapping[str, Any]) -> None:
    parts = found["breakdown_gib"]
    rows = [
        [NAMES[name], f"{parts[name]:z,.2f}", f"{100 * parts[name] / parts['total']:z.1f}" if parts["total"] else ""]
        for name in NAMES
    ]
    columns: list[tuple[str, Justify]] = [(f"one GPU of {found['binding_rank']}", "left"), ("GiB", "right")]
    print_rows(args, [*columns, ("% of card", "right")], rows)
    if len(found["stages"]) > 1:
        columns = [("stage", "left"), ("weights GiB", "right"), ("KV GiB", "right"), ("blocks", "right")]
        stages = found["stages"]
        print_rows(
            args,
            columns,
            [[s["name"], f"{s['weights_gib']:.2f}", f"{s['kv_gib']:.2f}", f"{s['kv_blocks']:,}"] for s in stages],
        )


def _facts(found: Mapping[str, Any]) -> dict[str, object]:
    low, high = found["kv_tokens_interval"]
    per_token = found["kv_bytes_per_token"]
    pressing = found["pressure"]
    at_once = found["requests_at_once"].items()
    groups = len(found["groups"])
    allocated, needed = format_size(found["as_allocated_bytes"]), format_size(found["minimum_bytes"])
    return {
        "KV tokens": f"{found['kv_tokens']:,} ({low:,} to {high:,})",
        "blocks": f"{found['kv_blocks']:,} of {found['block_size']} tokens"
        + (f", {groups} groups" if groups > 1 else ""),
        "block size forced": found["forced_block"],
        "blocks in host memory": f"{found['cpu_blocks']:,}" if found["cpu_blocks"] else None,
        "KV per token": None if per_token is None else f"{per_token:,} B on a rank",
        "longest request": f"{allocated} as allocated, {needed} at least",
        "requests at once": ", ".join(f"{count:,.1f} of {name} length" for name, count in at_once) or None,
        "pressure": f"{pressing['kind']}; {pressing['cure']}",
        "  lost": f"{100 * pressing['lost_share']:.1f} % of a request's slots, hits come in steps of "
        f"{pressing['hit_granularity_tokens']} tokens",
        "cost": _cost(found["cost"]),
        "settings": ", ".join(f"{name} {value}" for name, value in found["settings"].items() if value is not None),
    }


def _cost(cost: Mapping[str, Any]) -> str | None:
    if cost["usd_per_hour"] is None:
        return None
    return (
        f"{cost['usd_per_hour']:,.2f} USD/h for {cost['gpus']} GPU{'' if cost['gpus'] == 1 else 's'}; {cost['price']}"
    )


def _remedies(args: argparse.Namespace, out: "Console", found: Mapping[str, Any]) -> None:
    if found["verdict"] != "refused":
        return
    out.print()
    if not found["remedies"]:
        print_text(out, "no single changed setting would fit; take a larger card, a smaller model, or several changes")
        return
    print_text(out, "would fit, each alone:")
    rows = [[one["flag"], f"{one['kv_tokens']:,}", f"{one['max_concurrency']:.2f}"] for one in found["remedies"]]
    print_rows(args, [("setting", "left"), ("KV tokens", "right"), ("longest at once", "right")], rows)

"""`kvsim models`: the models that kvsim knows, or one of them in full."""

import argparse
from typing import TYPE_CHECKING, Any

from kvsim.cli.options import add_output_options

if TYPE_CHECKING:
    from kvsim.catalog.models import Model

BYTES_PER_GIB = 2**30
BYTES_PER_KIB = 2**10

FAR = "KV in bf16 on one GPU. far: what a further token adds once every sliding window is full, where that is less."
ATTENTION = {
    "mha": "every head has KV of its own",
    "gqa": "groups of heads share a KV head",
    "mqa": "all heads share one KV head",
    "mla": "one latent per token for all heads",
    "index": "beside a key per token that chooses what is read",
    "swa": "layers with a sliding window",
    "chunked": "layers that attend within chunks of the context",
    "linear": "layers of linear attention, a fixed state",
    "mamba": "Mamba layers, a fixed state",
    "cla": "layers share the KV of the layer below",
    "kv": "some layers reuse the KV of others (kv-share)",
    "cross": "layers that attend to an image",
    "hybrid": "full attention in the other layers",
}
"""What the words of a model's attention mean."""


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "models",
        help="list the models, or show one",
        description="List the models with their KV bytes per token (bf16, one GPU), or show one in full.",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="a name, or the path of a config.json")
    add_output_options(parser, "print JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """List all, or show the one that was named."""
    from dataclasses import asdict

    from kvsim.catalog.footprint import Footprint
    from kvsim.catalog.models import model, models
    from kvsim.cli.show import Justify, console, print_facts, print_json, print_rows, print_text

    if args.name is not None:
        one = model(args.name)
        print_facts(args, _facts(one)) if not args.json else print_json(_json(one))
        return 0
    known = models()
    if args.json:
        print_json([asdict(one) for one in known])
        return 0
    rows = []
    for one in known:
        footprint = Footprint(one)
        rows.append(
            [
                one.name,
                f"{footprint.kv_bytes_per_token / BYTES_PER_KIB:,.1f}",
                _far(footprint.kv_bytes_per_token, footprint.kv_bytes_per_token_far),
                _gib(footprint.weight_bytes) if one.weights_known else "-",
                f"{one.max_context:,}",
                one.attention,
            ]
        )
    columns: list[tuple[str, Justify]] = [("model", "left"), ("KV KiB/\ntoken", "right"), ("far", "right")]
    columns += [("weight\nGiB", "right"), ("context", "right"), ("attention", "left")]
    print_rows(args, columns, rows)
    out = console(args)
    out.print()
    print_text(out, FAR)
    words = {word for one in known for word in one.attention.replace("+", "-").split("-")}
    print_text(out, "; ".join(f"{word}: {meaning}" for word, meaning in ATTENTION.items() if word in words) + ".")
    return 0


def _gib(size_bytes: int) -> str:
    gib = size_bytes / BYTES_PER_GIB
    return f"{gib:,.1f}" if gib < 1000 else f"{gib:,.0f}"


def _far(near_bytes: int, far_bytes: int) -> str:
    return "" if far_bytes == near_bytes else f"{far_bytes / BYTES_PER_KIB:,.1f}"


def _json(one: "Model") -> dict[str, object]:
    from dataclasses import asdict

    from kvsim.catalog.footprint import Footprint

    footprint = Footprint(one)
    return asdict(one) | {
        "kv_bytes_per_token": footprint.kv_bytes_per_token,
        "weight_bytes": footprint.weight_bytes if one.weights_known else None,
    }


def _facts(one: "Model") -> dict[str, object]:
    """What a person asks first, in units; fields that do not apply are left out."""
    from kvsim.catalog.footprint import Footprint
    from kvsim.units import format_size

    footprint = Footprint(one)
    near, far, state = footprint.kv_bytes_per_token, footprint.kv_bytes_per_token_far, footprint.state_bytes
    weights = f"{format_size(footprint.weight_bytes)} (bf16)" if one.weights_known else "not known"
    kinds = {"full attention": one.full_attn_layers, "window": one.window_layers, "state": one.state_layers}
    kinds |= {"cross-attention": one.cross_attn_layers}
    words = one.attention.replace("+", "-").split("-")
    meanings = "; ".join(ATTENTION[word] for word in words if word in ATTENTION)
    facts: dict[str, object] = {
        "name": one.name,
        "KV per token": f"{format_size(near)} ({near:,} B; bf16, one GPU)",
        "  once windows are full": f"{format_size(far)} ({far:,} B)" if far != near else None,
        "state per request": f"{format_size(state)} ({state:,} B), whatever its length" if state else None,
        "weights": weights,
        "context": f"{one.max_context:,} tokens",
        "attention": f"{one.attention} ({meanings})" if meanings else one.attention,
        "layers": f"{one.layers}: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count),
        "window": one.window_tokens and f"{one.window_tokens:,} tokens",
        "layers that own KV": one.kv_caching_full_layers + one.kv_caching_window_layers,
        "heads": f"{one.heads} of {one.head_dim}" + (f", {one.kv_heads} KV heads" if one.kv_heads else ""),
        "KV latent": one.kv_lora_rank and f"{one.kv_lora_rank} + {one.qk_rope_head_dim} rotary elements a layer",
        "hidden": f"{one.hidden:,}",
        "experts": one.experts and f"{one.experts_active} of {one.experts} a token, in {one.moe_layers} layers",
        "vocabulary": f"{one.vocab:,}",
        "parameters": one.params_total_b and f"{one.params_total_b:g} billion, {one.params_active_b:g} active a token",
        "weights counted from": one.parameters_from,
        "on Hugging Face": one.hf_id,
        "also called": ", ".join(one.aliases),
        "note": one.note,
        "source": one.source,
    }
    return {name: value for name, value in facts.items() if value}

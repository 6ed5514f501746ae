"""From options to a deployment; what a scenario, a pasted command or a log says fills in what no option does."""

import argparse
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.errors import InputError
from kvsim.units import GIB

if TYPE_CHECKING:
    from kvsim.capacity.deployment import Deployment, Given
    from kvsim.capacity.span import Span
    from kvsim.capacity.weights.quantization import Scheme
    from kvsim.catalog.engines import Profile
    from kvsim.catalog.gpus import Gpu
    from kvsim.scenario.schema import Settings

COMPUTED = ("bf16", "fp16", "fp32")
"""Number formats that engines compute in."""


@dataclass
class Question:
    """A deployment and the lengths of the requests that it should hold."""

    deployment: "Deployment"
    lengths: dict[str, int] = field(default_factory=dict)


def question(args: argparse.Namespace) -> Question:
    """What the options ask. Raises InputError naming what is missing or wrong."""
    from kvsim.capacity.deployment import Deployment
    from kvsim.capacity.overheads.releases import release
    from kvsim.capacity.weights.quantization import number_format, scheme
    from kvsim.catalog.models import model

    lengths: dict[str, int] = dict(args.request_tokens or {})
    if lengths.get("p95", lengths.get("mean", 0)) < lengths.get("mean", 0):
        raise InputError(
            f"--request-tokens has a 95th percentile of {lengths['p95']:,}, below the mean of {lengths['mean']:,}; "
            "write MEAN,P95"
        )
    if args.scenario is not None:
        lengths = {**_from_scenario(args), **lengths}
    if args.shared_prefix_tokens > lengths.get("mean", args.shared_prefix_tokens):
        raise InputError(
            f"--shared-prefix-tokens is {args.shared_prefix_tokens}, more than the {lengths['mean']} tokens of the "
            "mean request"
        )
    if args.model is None:
        raise InputError("--model is missing; name one of `kvsim models`, a config.json, or a scenario")
    name, stated = _model_name(args.model)
    shape = model(name)
    stored = stated if args.quantization is None else None if args.quantization == "none" else scheme(args.quantization)
    card, total = _card(args)
    dtype = number_format(args.dtype) or "bf16"
    if dtype not in COMPUTED:
        raise InputError(f"--dtype is {args.dtype!r}; engines compute in one of {', '.join(COMPUTED)}")
    if args.used_gib * GIB > total.high:
        raise InputError(f"--used-gib is {args.used_gib:g}; the card has {total.gib:g} GiB")
    deployment = Deployment(
        model=shape,
        engine=release(args.engine or "vllm"),
        gpu=card,
        total=total,
        dtype=dtype,
        scheme=stored,
        kv_dtype=number_format(args.kv_cache_dtype) or "auto",
        tensor_parallel=_or(args.tensor_parallel_size, 1),
        pipeline_parallel=_or(args.pipeline_parallel_size, 1),
        data_parallel=_or(args.data_parallel_size, 1),
        attention_data_parallel=args.enable_dp_attention,
        decode_context_parallel=_or(args.decode_context_parallel_size, 1),
        utilization=args.utilization,
        max_model_len=args.max_model_len,
        max_num_seqs=args.max_num_seqs,
        max_num_batched_tokens=args.max_num_batched_tokens,
        block_size=args.block_size,
        enforce_eager=args.enforce_eager,
        hybrid_groups=not args.disable_hybrid_kv_cache_manager,
        most_tokens=args.max_total_tokens,
        draft=model(args.draft_model) if args.draft_model else None,
        draft_tokens=_or(args.num_speculative_tokens, 0),
        lora_slots=_or(args.max_loras, 0),
        lora_rank=_or(args.max_lora_rank, 16),
        offload_bytes=round(args.cpu_offload_gb * GIB),
        swap_bytes=round(args.swap_space * GIB),
        used_bytes=round(args.used_gib * GIB),
        given=_given(args),
    )
    return Question(deployment, lengths)


def fill_in(args: argparse.Namespace, settings: Mapping[str, Any]) -> None:
    """Take settings of a command or a log, under the names of `capacity.arguments` and `capacity.logs`."""
    for setting, option in OPTIONS.items():
        value = settings.get(setting)
        if value is not None and getattr(args, option) in (None, False, 0.0, "auto"):
            setattr(args, option, value)
    if settings.get("kv_memory_bytes") is not None and args.kv_memory_gib is None:
        args.kv_memory_gib = f"{settings['kv_memory_bytes'] / GIB:.10f}"
    if settings.get("hybrid_kv_cache") is False:
        args.disable_hybrid_kv_cache_manager = True
    if settings.get("enable_lora") and args.max_loras is None:
        args.max_loras = 1
    if settings.get("enable_chunked_prefill") is False and args.max_num_batched_tokens is None:
        args.max_num_batched_tokens = args.max_model_len


OPTIONS = {
    "model": "model",
    "tensor_parallel": "tensor_parallel_size",
    "pipeline_parallel": "pipeline_parallel_size",
    "data_parallel": "data_parallel_size",
    "decode_context_parallel": "decode_context_parallel_size",
    "gpu_memory_utilization": "utilization",
    "mem_fraction_static": "utilization",
    "free_gpu_memory_fraction": "utilization",
    "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "dtype": "dtype",
    "quantization": "quantization",
    "kv_cache_dtype": "kv_cache_dtype",
    "block_size": "block_size",
    "cpu_offload_gib": "cpu_offload_gb",
    "swap_space_gib": "swap_space",
    "num_gpu_blocks_override": "num_gpu_blocks",
    "max_total_tokens": "max_total_tokens",
    "enforce_eager": "enforce_eager",
    "draft_model": "draft_model",
    "speculative_tokens": "num_speculative_tokens",
    "max_loras": "max_loras",
    "max_lora_rank": "max_lora_rank",
    "dp_attention": "enable_dp_attention",
}
"""Setting of a command or a log to the option that says the same."""
OTHER_SETTINGS = ("kv_memory_bytes", "hybrid_kv_cache", "enable_lora", "enable_chunked_prefill", "speculative")
"""Settings that have no option of their own and are used all the same."""


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _model_name(text: str) -> tuple[str, "Scheme | None"]:
    """(what the catalogue is asked for, quantisation that the file or the checkpoint's name states)."""
    from kvsim.capacity.weights.quantization import of_checkpoint, scheme

    path = os.path.expanduser(text)
    if os.path.isdir(path):
        path = os.path.join(path, "config.json")
    if text.lower().endswith(".json") or os.path.isfile(path):
        return text, _configured(path)
    if text.startswith("/") and not os.path.exists(path):
        # A folder of another machine, as logs and commands for containers name it.
        cached = re.search(r"models--[^/]+--([^/]+)", text)
        text = cached[1] if cached else os.path.basename(text.rstrip("/"))
    name, word = of_checkpoint(text)
    return name, scheme(word) if word else None


def _configured(path: str) -> "Scheme | None":
    """The quantisation of a config.json."""
    from kvsim.capacity.weights.quantization import of_config
    from kvsim.catalog.models import model

    model(path)  # says what is wrong with the file
    stated = json.loads(Path(path).read_bytes()).get("quantization_config")
    try:
        return of_config(stated) if isinstance(stated, dict) else None
    except InputError as error:
        raise InputError(f"{path}: quantization_config: {error}") from None


def _card(args: argparse.Namespace) -> tuple["Gpu | None", "Span"]:
    from kvsim.capacity.span import Span
    from kvsim.catalog.gpus import gpu
    from kvsim.units import parse_size

    stated = Span.printed_gib(args.gpu_total_gib) if args.gpu_total_gib else None
    if stated is not None and not stated.best:
        raise InputError("--gpu-total-gib is 0; a card has some memory")
    if args.gpu is None:
        if stated is None:
            raise InputError("--gpu is missing; name one of `kvsim gpus`, a size such as 24GiB, or --gpu-total-gib")
        return None, stated
    try:
        card = gpu(args.gpu)
    except InputError:
        if not args.gpu[:1].isdigit():
            raise
        try:
            size = parse_size(args.gpu)
        except ValueError as error:
            raise InputError(f"--gpu: {error}; name one of `kvsim gpus`, or a size such as 24GiB") from None
        if not size:
            raise InputError(f"--gpu is {args.gpu}; a card has some memory") from None
        return None, stated or Span.exactly(size)
    return card, stated or Span.exactly(card.memory_bytes)


def _given(args: argparse.Namespace) -> "Given":
    from kvsim.capacity.deployment import Given
    from kvsim.capacity.span import Span

    def span(text: str | None) -> "Span | None":
        return None if text is None else Span.printed_gib(text)

    return Given(
        weights=span(args.weights_gib),
        activation=span(args.activation_gib),
        non_torch=span(args.non_torch_gib),
        cuda_graphs=span(args.cuda_graph_gib),
        kv_memory=span(args.kv_memory_gib),
        num_gpu_blocks=args.num_gpu_blocks,
    )


def _from_scenario(args: argparse.Namespace) -> dict[str, int]:
    """Fill in what a scenario says where no option does; returns the mean and p95 length of its requests."""
    from itertools import islice

    from kvsim import scenario
    from kvsim.capacity.checking.scores import quantile
    from kvsim.capacity.overheads.releases import release_of_profile
    from kvsim.catalog.engines import profile
    from kvsim.scenario.build import build
    from kvsim.scenario.deployment import SCHEMES, chosen
    from kvsim.workload.answered import answered_at_once

    loaded = scenario.load_all(args.scenario)[0]
    settings = loaded.settings
    rules = profile(settings.engine.profile)
    engine, card, weights = settings.engine, settings.capacity, settings.model.weights_dtype
    # A scenario says its weights itself, whatever the name of its model's checkpoint says.
    unquantised = None if args.model else "none"
    said = {
        "model": loaded.model,
        "gpu": settings.gpu,
        "tensor_parallel_size": settings.tensor_parallel,
        "max_model_len": engine.max_model_len,
        "max_num_seqs": engine.max_num_seqs,
        "max_num_batched_tokens": engine.max_num_batched_tokens,
        "utilization": card.gpu_memory_utilization,
        "block_size": getattr(settings.allocator, "block_size", None),
        "quantization": SCHEMES.get(weights, unquantised),
        "activation_gib": _gib_text(card.activation),
        "non_torch_gib": _gib_text(card.non_torch),
        "cuda_graph_gib": _gib_text(card.cuda_graphs),
        **_pool(settings, rules),
    }
    if args.dtype == "auto" and args.quantization is None and weights not in SCHEMES:
        args.dtype = weights
    if args.engine is None:
        # Another engine than the profile's has defaults of its own.
        said |= {
            "engine": release_of_profile(rules.engine, rules.version).name,
            "max_num_seqs": chosen(engine.max_num_seqs, rules.max_num_seqs),
            "max_num_batched_tokens": chosen(engine.max_num_batched_tokens, loaded.token_budget),
            "utilization": chosen(card.gpu_memory_utilization, rules.gpu_memory_utilization),
        }
    for name, value in said.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if args.kv_cache_dtype == "auto":
        args.kv_cache_dtype = settings.model.kv_dtype
    if settings.pool is None:
        # Lengths are asked for here, whatever the card has room for.
        loaded = scenario.load_all(args.scenario, ["pool.tokens=1000000"])[0]
    workload = build(loaded, loaded.seed).workload
    tokens = [request.prompt_tokens + request.output_tokens for request in islice(answered_at_once(workload), SAMPLED)]
    p95 = quantile(tokens, 0.95)
    return {"mean": round(sum(tokens) / len(tokens)), "p95": round(p95 or 0)}


def _pool(settings: "Settings", rules: "Profile") -> dict[str, Any]:
    """A pool that is given beats what the card would leave, here as in a run."""
    pool = settings.pool
    if pool is None:
        return {}
    if pool.memory is not None:
        return {"kv_memory_gib": _gib_text(pool.memory)}
    block = getattr(settings.allocator, "block_size", None) or rules.block_size
    return {"num_gpu_blocks": pool.blocks if pool.blocks is not None else (pool.tokens or 0) // block}


def _gib_text(size_bytes: int | None) -> str | None:
    """As an option has it: a byte is 2^-30 GiB, of which 30 decimals leave nothing out."""
    return None if size_bytes is None else f"{size_bytes / GIB:.30f}"


SAMPLED = 1000
"""Requests of a scenario whose lengths are looked at."""

"""The scenario of a recorded run: same requests, same flags, same pool, from what the server itself had resolved.

The file is what LLMServingSim's benchmark keeps beside each run of vLLM: release, engine arguments, KV cache and card.
Rules are those of the vLLM that kvsim knows, with what an older release did otherwise (`data/vllm_releases.json`).
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from kvsim.capacity.overheads.releases import engine_release, numbers
from kvsim.errors import InputError
from kvsim.scenario import Scenario

PROFILE = "vllm@0.33"
FORM = "it is an object with model, vllm_version and engine_kwargs, as LLMServingSim's benchmark writes it"
DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "auto": "bf16"}
KV_DTYPES = {"auto": "bf16", "bfloat16": "bf16", "float16": "fp16", "fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8"}
QUANTIZED = {"fp8": "fp8", "awq": "int4", "awq_marlin": "int4", "gptq": "int4", "gptq_marlin": "int4"}
LIMITS = ("max_num_seqs", "max_num_batched_tokens", "max_model_len", "long_prefill_token_threshold")
SWITCHES = {"enable_chunked_prefill": "engine.chunked_prefill", "async_scheduling": "engine.async_scheduling"}
CACHE = ("block_size", "enable_prefix_caching", "gpu_memory_utilization", "num_gpu_blocks")
"""What the server resolved of its cache; as engine arguments only where it is not told what became of them."""
ONE = ("data_parallel_size", "pipeline_parallel_size")
"""Sizes of which kvsim simulates one."""
USED = frozenset(
    {*LIMITS, *SWITCHES, *CACHE, *ONE, "model", "tensor_parallel_size", "dtype", "kv_cache_dtype", "quantization"}
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What `META` says: the `scenario` to simulate, and `notes` about what was taken from where or not used."""

    scenario: Scenario
    notes: tuple[str, ...]


def recorded(meta: Path, requests: Path, *, gpu: str | None = None, overrides: Sequence[str] = ()) -> Recorded:
    """The scenario of the run that `meta` describes and whose requests the table `requests` lists.

    `gpu` names the card where the file does not, `overrides` change the scenario as `--set` does. Raises InputError
    naming file and key.
    """
    known = read_meta(meta)
    said, notes = known["engine_kwargs"], []
    where = f"{meta}: engine_kwargs"
    for key in ONE:
        if _whole(said.get(key, 1), f"{where}.{key}") != 1:
            raise InputError(f"{where}.{key} is {said[key]}; kvsim simulates one replica: record one engine alone")
    card = gpu or (known.get("hardware") or {}).get("device_name")
    if not card:
        raise InputError(f"{meta}: hardware names no device; say which card it was with --gpu NAME")
    version = str(known["vllm_version"])
    release = engine_release("vllm", version)
    cache = {key: said.get(key) for key in CACHE}
    cache |= {key: value for key, value in (known.get("kv_cache") or {}).items() if value is not None}
    weights = _one_of(said.get("dtype", "auto"), DTYPES, f"{where}.dtype")
    if said.get("quantization"):
        weights = _one_of(said["quantization"], QUANTIZED, f"{where}.quantization")
    data: dict[str, Any] = {
        "name": meta.stem.removesuffix("_meta"),
        "model": {
            "name": str(known["model"]),
            "weights_dtype": weights,
            "kv_dtype": _one_of(said.get("kv_cache_dtype", "auto"), KV_DTYPES, f"{where}.kv_cache_dtype"),
        },
        "gpu": str(card),
        "tensor_parallel": _whole(said.get("tensor_parallel_size", 1), f"{where}.tensor_parallel_size"),
        "engine": {"profile": PROFILE},
        "allocator": {"name": "paged"},
        "timing": {"name": "calibrated"},
        "capacity": {"gpu_memory_utilization": cache["gpu_memory_utilization"] or release.rules["utilization"]},
        "workload": {"trace": os.fspath(requests.absolute()), "format": _format(requests)},
    }
    for key in LIMITS:
        if said.get(key) is not None:
            data["engine"][key] = _whole(said[key], f"{where}.{key}")
    if cache["block_size"] is not None:
        data["allocator"]["block_size"] = _whole(cache["block_size"], f"{meta}: block_size")
    if cache["enable_prefix_caching"] is not None:
        data["allocator"]["prefix_caching"] = bool(cache["enable_prefix_caching"])
    if cache["num_gpu_blocks"] is not None:
        # The null block is counted there, and never handed out.
        data["pool"] = {"blocks": _whole(cache["num_gpu_blocks"], f"{meta}: kv_cache.num_gpu_blocks") - 1}
        notes.append(f"The pool is the one that the server resolved: {data['pool']['blocks']:,} usable blocks.")
    else:
        notes.append("The server's number of blocks is not recorded: the pool is the planned one.")
    notes += _as_released(data, version)
    for switch, key in SWITCHES.items():
        if said.get(switch) is not None:
            part, name = key.split(".")
            data[part][name] = bool(said[switch])
    left = sorted(key for key, value in said.items() if key not in USED and value not in (None, False))
    if left:
        notes.append(f"Engine arguments that are not used: {', '.join(left)}.")
    return Recorded(Scenario.from_dict(data, name=os.fspath(meta), overrides=overrides), tuple(notes))


def read_meta(path: Path) -> dict[str, Any]:
    """The object in the file. Raises InputError where it is not the description of a recorded run."""
    try:
        known = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name the META file of a run") from None
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error}); {FORM}") from None
    if not isinstance(known, dict):
        raise InputError(f"{path}: holds {'a list' if isinstance(known, list) else json.dumps(known)}; {FORM}")
    missing = [key for key in ("model", "vllm_version", "engine_kwargs") if not known.get(key)]
    if missing:
        raise InputError(f"{path}: has no {missing[0]}; {FORM}")
    for key in ("engine_kwargs", "kv_cache", "hardware"):
        if known.get(key) is not None and not isinstance(known[key], dict):
            raise InputError(f"{path}: {key} is {known[key]!r}; it is an object")
    return known


def _format(requests: Path) -> str:
    """Requests are a table, or lists in the detailed results of a benchmark."""
    return "serving-benchmark" if requests.suffix == ".json" else "recorded-run"


def _as_released(data: dict[str, Any], version: str) -> list[str]:
    """Set what an older release does otherwise; mutates `data`. Returns notes."""
    table = json.loads(files("kvsim.study.recorded").joinpath("data/vllm_releases.json").read_text("utf-8"))
    number, changed = engine_release("vllm", version).number, []
    for change in table["changes"]:
        if number < numbers(change["before"]):
            part, key = change["key"].split(".")
            data[part][key] = change["value"]
            changed.append(f"{change['key']}: {str(change['value']).lower()}")
    if version.startswith(PROFILE.partition("@")[2]):
        return []
    told = f", with {', '.join(changed)}" if changed else ""
    return [f"Rules of {PROFILE}{told}, as vLLM {version} has them; {table['not_known']}."]


def _whole(value: object, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{place} is {value!r}; it is a whole number, 1 or more")
    return value


def _one_of(value: object, known: Mapping[str, str], place: str) -> str:
    if value not in known:
        raise InputError(f"{place} is {value!r}; it is one of {', '.join(known)}")
    return known[str(value)]

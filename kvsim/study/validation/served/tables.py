"""The known tables of served runs: how each row becomes a `ServedRun`. Any subset of the files may be there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from kvsim.errors import InputError
from kvsim.study.validation.served.runs import ServedRun, known_model, layout
from kvsim.timing.fitting.kernel_tables import plain_dtype
from kvsim.timing.fitting.samples import file_hash, find, read_table
from kvsim.timing.steps.shapes import Layout

NARROW = frozenset({"fp8", "fp4"})
GENERATION_WITH_FP8_KV = ("b200", "b300", "gb200")
MILLI = 1e-3

DECODE_POINTS = {"decoding_smallbs": 32, "decoding_largebs": 128}
"""Batches at which DistServe's fitted lines are read, one on either side of their threshold."""
POINT_TOKENS = 512


@dataclass
class Runs:
    """What a folder holds: runs, rows in all, rows that hold no measurement by reason, a hash of each file."""

    runs: list[ServedRun] = field(default_factory=list)
    rows: int = 0
    empty: dict[str, int] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)


def read_runs(folder: Path) -> Runs:
    """Every known served table of `folder`. Raises InputError for one that is not shaped as it should be."""
    found = Runs()
    for name, (columns, times, make) in TABLES.items():
        path = find(folder, name)
        if path is None:
            continue
        table = read_table(path, columns, times)
        found.hashes[name] = file_hash(path)
        found.rows += len(table)
        measured = table.dropna(subset=list(times), how="all")
        if len(measured) < len(table):
            found.empty[f"{name}: no time was measured (out of memory)"] = len(table) - len(measured)
        for row in cast(list[dict[str, Any]], measured.to_dict("records")):
            try:
                found.runs += list(make(name, row))
            except (ValueError, TypeError, ZeroDivisionError) as error:
                raise InputError(
                    f"{path}: a row of {row.get('model', '?')} on {row.get('gpu', '?')}: {error}"
                ) from None
    return found


def _closed_loop(source: str, row: dict[str, Any]) -> Iterator[ServedRun]:
    dtype = plain_dtype(row["precision"]) if isinstance(row["precision"], str) else "bf16"
    gpu, engine = str(row["gpu"]), str(row["backend"])
    # TensorRT-LLM and the recipes for Blackwell keep KV in 8 bits beside narrow weights; the others in 16.
    narrow_kv = dtype in NARROW and (engine == "trtllm" or gpu.startswith(GENERATION_WITH_FP8_KV))
    version = str(row["backend_version"])
    about: dict[str, Any] = {
        "source": source,
        "gpu": gpu,
        "model": str(row["model"]),
        "layout": layout(
            row["tp_size"], row["attention_dp_size"], row["moe_tp_size"], row["moe_ep_size"], moe=_is_moe(row["model"])
        ),
        "dtype": dtype,
        "kv_dtype": "fp8" if narrow_kv else "bf16",
        "engine": engine,
        "version": "not stated" if version == "nan" else _generation(version),
        "prompt": float(row["isl"]),
        "output": float(row["osl"]),
        "batch": float(row["concurrency"]),
        "closed": True,
    }
    yield ServedRun(quantity="tpot", seconds=MILLI * row["tpot_ms"], **about)
    yield ServedRun(quantity="ttft", seconds=MILLI * row["ttft_ms"], **about)


def _splitwise(source: str, row: dict[str, Any]) -> Iterator[ServedRun]:
    about = _about(source, row["hardware"], row["model"], row["tensor_parallel"], "vllm-2023")
    about |= {
        "prompt": float(row["prompt_size"]),
        "output": float(row["token_size"]),
        "batch": float(row["batch_size"]),
    }
    yield ServedRun(quantity="prefill", seconds=MILLI * row["prompt_ms"], **about)
    yield ServedRun(quantity="step", seconds=MILLI * row["decode_step_ms"], **about)


def _offline(source: str, row: dict[str, Any]) -> Iterator[ServedRun]:
    gpu = str(row["gpu"])
    engine = {"vLLM": "vllm-2024", "TensorRT-LLM": "trtllm-2024"}.get(str(row["framework"]), str(row["framework"]))
    if gpu.startswith("MI"):
        engine += "-rocm"
    # The source does not state the A100's size; its latencies bend where 40 GB of KV run out.
    about = _about(source, "A100-SXM-40GB" if gpu == "A100" else gpu, row["model"], row["num_gpus"], engine)
    about |= {"prompt": float(row["in_len"]), "output": float(row["out_len"]), "batch": float(row["batch"])}
    yield ServedRun(quantity="batch", seconds=float(row["latency_s"]), **about)


def _first_token(source: str, row: dict[str, Any]) -> Iterator[ServedRun]:
    gpu = str(row["gpu"]).replace("Nvidia ", "").replace("AMD ", "").replace(" GPU", "")
    engine = {"vLLM": "vllm-2024", "TensorRT-LLM": "trtllm-2024"}.get(str(row["framework"]), str(row["framework"]))
    if gpu.startswith("MI"):
        engine += "-rocm"
    about = _about(source, "A100-SXM-40GB" if gpu == "A100" else gpu, row["model"], row["num_gpus"], engine)
    about |= {"prompt": float(row["in_len"]), "batch": float(row["batch"])}
    yield ServedRun(quantity="prefill", seconds=float(row["ttft_s"]), output=1.0, **about)


def _lmdeploy(source: str, row: dict[str, Any]) -> Iterator[ServedRun]:
    """The clients keep `batch` requests in flight: output tokens per second of all of them."""
    about = _about(source, row["gpu"], row["model"], row["tp"], "lmdeploy")
    about |= {"prompt": float(row["in_len"]), "output": float(row["out_len"]), "batch": float(row["batch"])}
    yield ServedRun(quantity="saturated", seconds=1 / row["throughput_out_tok_s"], closed=True, **about)


def _gpt_fast(source: str, row: dict[str, Any]) -> Iterator[ServedRun]:
    dtype = {"int4-g32": "int4"}.get(str(row["weights"]), str(row["weights"]))
    about = _about(source, row["gpu"], row["model"], row["tp"], "gpt-fast", dtype)
    about |= {"prompt": float(row["prompt_len"]), "output": 200.0, "batch": float(row["batch"])}
    yield ServedRun(quantity="step", seconds=MILLI * row["decode_step_ms"], **about)


def _llama_cpp(source: str, row: dict[str, Any]) -> Iterator[ServedRun]:
    """Several cards hold a part of the layers each and work in turn: as long as one card that holds all."""
    dtype = {"Q4_K_M": "int4", "F16": "bf16"}[str(row["weights"])]
    about = _about(source, row["gpu"], row["model"], 1, "llama.cpp", dtype)
    prompt, output = float(row["prompt_tokens"]), float(row["gen_tokens"])
    about |= {"output": output, "batch": 1.0, "prompt": prompt}
    if row["decode_tok_s"] == row["decode_tok_s"]:
        # Text is generated from scratch: half of it is the context of the mean step.
        yield ServedRun(quantity="step", seconds=1 / row["decode_tok_s"], **(about | {"prompt": 1.0}))
    if row["prefill_tok_s"] == row["prefill_tok_s"]:
        yield ServedRun(quantity="prefill", seconds=prompt / row["prefill_tok_s"], **about)


def _saturated(source: str, row: dict[str, Any]) -> Iterator[ServedRun]:
    dtype = plain_dtype(str(row["weights"]).lower())
    about = _about(source, row["gpu"], row["model"], row["tp"], "trtllm", dtype)
    about |= {"prompt": float(row["isl"]), "output": float(row["osl"]), "kv_dtype": "fp8", "version": "1.0"}
    yield ServedRun(quantity="saturated", seconds=1 / row["output_tok_s"], batch=None, closed=True, **about)


def _dstack(source: str, row: dict[str, Any]) -> Iterator[ServedRun]:
    setup = str(row["setup"]).lower()
    gpu, engine = ("MI300X", "vllm-2024-rocm") if "mi300" in setup else ("H100", "vllm-2024")
    about = _about(source, gpu, row["model"], 8, engine, "fp8")
    about |= {"prompt": float(row["in_len"]), "output": float(row["out_len"]), "batch": float(row["batch"])}
    yield ServedRun(quantity="batch", seconds=float(row["e2e_s"]), **about)


def _distserve(source: str, row: dict[str, Any]) -> Iterator[ServedRun]:
    """Lines that others fitted to their own measurements, read at one prompt or batch of 512 tokens a sequence."""
    about = _about(source, "A100-80GB", row["model"], row["tp"], "vllm-2023")
    about |= {"prompt": float(POINT_TOKENS)}
    a, b, c = (float(row[name]) for name in ("a_ms", "b", "c"))
    if row["phase"] == "prefill":
        seconds = a + b * POINT_TOKENS + c * POINT_TOKENS**2
        yield ServedRun(quantity="prefill", seconds=MILLI * seconds, output=1.0, batch=1.0, **about)
        return
    batch = DECODE_POINTS[row["phase"]]
    seconds = a + b * batch * POINT_TOKENS + c * batch
    yield ServedRun(quantity="step", seconds=MILLI * seconds, output=1.0, batch=float(batch), **about)


def _about(source: str, gpu: object, model: object, ranks: Any, engine: str, dtype: str = "bf16") -> dict[str, Any]:
    tensor = int(ranks)
    moe = _is_moe(model)
    return {
        "source": source,
        "gpu": str(gpu),
        "model": str(model),
        "layout": Layout(tensor_parallel=tensor, expert_tensor=tensor if moe else 1),
        "dtype": dtype,
        "kv_dtype": "bf16",
        "engine": engine,
        "version": engine.partition("-")[2] or "not stated",
    }


def _is_moe(name: object) -> bool:
    try:
        return known_model(str(name)).moe_layers > 0
    except InputError:
        return False


def _generation(version: str) -> str:
    """The release by its first two numbers: 0.5.10.post1 is 0.5, nightly builds are one generation."""
    if version.startswith("nightly"):
        return "nightly"
    return ".".join(version.split(".")[:2])


Maker = Callable[[str, dict[str, Any]], Iterator[ServedRun]]
TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], Maker]] = {
    "e2e_serving.csv": (
        ("model", "gpu", "precision", "backend", "backend_version", "isl", "osl", "concurrency", "tp_size",
         "attention_dp_size", "moe_tp_size", "moe_ep_size"), ("tpot_ms", "ttft_ms"), _closed_loop,
    ),
    "splitwise_steps.csv": (
        ("model", "hardware", "tensor_parallel", "prompt_size", "batch_size", "token_size"),
        ("prompt_ms", "decode_step_ms"), _splitwise,
    ),
    "llm_inference_bench.csv": (
        ("gpu", "num_gpus", "framework", "model", "in_len", "out_len", "batch"), ("latency_s",), _offline,
    ),
    "llm_inference_bench_ttft.csv": (
        ("gpu", "num_gpus", "framework", "model", "in_len", "batch"), ("ttft_s",), _first_token,
    ),
    "lmdeploy_a100.csv": (
        ("gpu", "model", "batch", "tp", "in_len", "out_len"), ("throughput_out_tok_s",), _lmdeploy,
    ),
    "gpt_fast_batch1.csv": (("gpu", "model", "tp", "weights", "batch", "prompt_len"), ("decode_step_ms",), _gpt_fast),
    "llamacpp_batch1.csv": (
        ("gpu", "model", "weights", "gen_tokens", "prompt_tokens"), ("decode_tok_s", "prefill_tok_s"), _llama_cpp,
    ),
    "trtllm_max_throughput.csv": (("model", "gpu", "tp", "weights", "isl", "osl"), ("output_tok_s",), _saturated),
    "dstack_405b.csv": (("model", "setup", "in_len", "out_len", "batch"), ("e2e_s",), _dstack),
    "distserve_fits_a100_80g.csv": (("model", "tp", "phase", "b", "c"), ("a_ms",), _distserve),
}  # fmt: skip
"""By file name: columns needed, columns of times (any of them), maker of runs."""

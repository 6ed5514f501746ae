"""The known tables of measured kernels: which columns they have and which family's shapes these are."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kvsim.errors import InputError
from kvsim.timing.families import device
from kvsim.timing.fitting.samples import Folder, Sample, Table, check_device, column, file_hash, find, read_table

if TYPE_CHECKING:
    from pandas import DataFrame

MILLISECOND, MICROSECOND = 1e-3, 1e-6
DTYPES = {
    "bfloat16": "bf16",
    "float16": "bf16",
    "fp16": "bf16",
    "bf16": "bf16",
    "fp8": "fp8",
    "fp8_static": "fp8",
    "fp8_block": "fp8_block",
    "int8": "int8",
    "int8_wo": "int8",
    "int4": "int4",
    "int4_wo": "int4",
    "fp4": "fp4",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
    "w4a8_mxfp4_mxfp8": "fp4",
    "w4afp8": "w4a16",
    "w4a16": "w4a16",
    "w4a16_mxfp4": "w4a16",
}
"""How sources spell the types that the families tell apart."""
NOT_BY_BLOCK = {"fp8_block": "fp8", "w4a16": "int4"}
"""Linear layers and caches do not tell by which block of numbers a scale is kept; experts do."""

VIDUR_HEADS = (32, 4, 128)
"""Query heads, KV heads and head dimension of Vidur's attention table (Llama-2-70B on one of two GPUs)."""
VIDUR_MATRICES = ("attn_pre_proj", "attn_post_proj", "mlp_up_proj", "mlp_down_proj")


def _linear(source: str, table: "DataFrame", seconds: float) -> Iterator[Sample]:
    if "gemm_dtype" not in table.columns:
        # InferSim states no type; the rates behind its `mfu` are the card's 8-bit peak.
        table = table.assign(gemm_dtype="fp8")
    time = "latency_ms" if "latency_ms" in table.columns else "latency_us"
    for (gpu, dtype), part in table.groupby(["gpu", "gemm_dtype"]):
        rows = {name: column(part[name]) for name in ("m", "n", "k")}
        groups = (part["n"].astype(str) + " x " + part["k"].astype(str)).to_numpy(str)
        yield Sample(source, str(gpu), f"linear:{plain_dtype(dtype)}", rows, seconds * column(part[time]), groups)


def _decode(source: str, table: "DataFrame", seconds: float) -> Iterator[Sample]:
    for (gpu, dtype), part in table.groupby(["gpu", "kv_cache_dtype"]):
        rows = {
            "sequences": column(part["batch_size"]),
            "context": column(part["context"]),
            "heads": column(part["num_heads"]),
            "kv_heads": column(part["num_key_value_heads"]),
            "head_dim": column(part["head_dim"]),
            "cold": np.zeros(len(part)),
        }
        yield Sample(
            source, str(gpu), f"decode_attention:{plain_dtype(dtype)}", rows, seconds * column(part["latency_ms"]),
            _heads(part, ("num_heads", "num_key_value_heads", "head_dim")),
        )  # fmt: skip


def _prefill(source: str, table: "DataFrame", seconds: float) -> Iterator[Sample]:
    for gpu, part in table.groupby("gpu"):
        rows = {
            "sequences": column(part["batch_size"]),
            "tokens": column(part["isl"]),
            "cached": column(part["step"]),
            "heads": column(part["num_heads"]),
            "kv_heads": column(part["num_key_value_heads"]),
            "head_dim": column(part["head_dim"]),
        }
        yield Sample(
            source, str(gpu), "prefill_attention", rows, seconds * column(part["latency_ms"]),
            _heads(part, ("num_heads", "num_key_value_heads", "head_dim")),
        )  # fmt: skip


def _all_reduce(source: str, table: "DataFrame", seconds: float) -> Iterator[Sample]:
    for (gpu, backend), part in table.groupby(["gpu", "backend"]):
        rows = {"bytes": 2 * column(part["message_size"]), "ranks": column(part["num_gpus"])}
        groups = (part["num_gpus"].astype(str) + " GPUs").to_numpy(str)
        launch = "eager" if str(backend).endswith("eager") else "graph"
        yield Sample(source, str(gpu), f"all_reduce:{launch}", rows, seconds * column(part["latency_ms"]), groups)


def _moe(source: str, table: "DataFrame", seconds: float) -> Iterator[Sample]:
    for (gpu, dtype), part in table.groupby(["gpu", "moe_dtype"]):
        rows = {
            "tokens": column(part["num_tokens"]),
            "hidden": column(part["hidden_size"]),
            "intermediate": column(part["inter_size"]),
            "experts": column(part["num_experts"]),
            "active": column(part["topk"]),
            "tensor_ranks": column(part["moe_tp_size"]),
            "expert_ranks": column(part["moe_ep_size"]),
            "drawn": np.zeros(len(part)),
        }
        names = ("hidden_size", "inter_size", "topk", "num_experts")
        groups = np.array(
            [f"{h}x{i}, top {k} of {e}" for h, i, k, e in zip(*(part[name] for name in names), strict=True)]
        )
        yield Sample(source, str(gpu), f"moe:{_dtype(dtype)}", rows, seconds * column(part["latency_ms"]), groups)


def _infersim_decode(source: str, table: "DataFrame", seconds: float) -> Iterator[Sample]:
    """`kind` mha: heads, KV heads, head dimension; mla: heads, rank of the latent, dimension of its rope part."""
    for (gpu, dtype), part in table.groupby(["gpu", "kv_dtype"]):
        latent = (part["kind"] == "mla").to_numpy()
        p1, p2, p3 = (column(part[name]) for name in ("p1", "p2", "p3"))
        width = np.where(latent, p2 + p3, p3)
        rows = {
            "sequences": column(part["batch"]),
            "context": column(part["context"]),
            "heads": p1,
            "kv_heads": np.where(latent, 1.0, p2),
            "head_dim": width,
            "kv_elements": np.where(latent, width, 2 * width),
            "cold": np.zeros(len(part)),
        }
        groups = np.array([f"{kind} {a}/{b}/{c}" for kind, a, b, c in part[["kind", "p1", "p2", "p3"]].to_numpy()])
        yield Sample(
            source,
            str(gpu),
            f"decode_attention:{plain_dtype(dtype)}",
            rows,
            seconds * column(part["latency_us"]),
            groups,
        )


def _vidur_linear(source: str, table: "DataFrame", seconds: float) -> Iterator[Sample]:
    """Four linear layers a row; a group is a model, whose layers of all cuts are held out together."""
    for gpu, part in table.groupby("gpu"):
        heads, kv_heads, tp = (column(part[name]) for name in ("n_head", "n_kv_head", "tp"))
        hidden, ffn, m = (column(part[name]) for name in ("hidden", "ffn", "num_tokens"))
        head_dim = hidden / heads
        outputs = (heads + 2 * kv_heads) * head_dim / tp
        shapes = ((outputs, hidden), (hidden, heads * head_dim / tp), (2 * ffn / tp, hidden), (hidden, ffn / tp))
        rows = {
            "m": np.concatenate([m] * len(shapes)),
            "n": np.concatenate([n for n, _ in shapes]),
            "k": np.concatenate([k for _, k in shapes]),
        }
        measured = np.concatenate([column(part[f"{name}_ms"]) for name in VIDUR_MATRICES])
        groups = np.concatenate([part["model"].to_numpy(str)] * len(shapes))
        yield Sample(source, str(gpu), "linear:bf16", rows, seconds * measured, groups)


def _vidur_attention(source: str, table: "DataFrame", seconds: float) -> Iterator[Sample]:
    """One shape on one card: groups are batch sizes and chunks, unseen ones are held out."""
    shape = dict(zip(("heads", "kv_heads", "head_dim"), VIDUR_HEADS, strict=True))
    for prefill, part in table.groupby("is_prefill"):
        full = np.ones(len(part))
        rows = {name: full * size for name, size in shape.items()}
        if prefill:
            rows |= {"sequences": full, "tokens": column(part["chunk"]), "cached": column(part["kv_len"])}
            groups = ("chunk " + part["chunk"].astype(str)).to_numpy(str)
            yield Sample(source, "a100", "prefill_attention", rows, seconds * column(part["prefill_ms"]), groups)
        else:
            rows |= {"sequences": column(part["batch_size"]), "context": column(part["kv_len"]), "cold": 0 * full}
            groups = ("batch " + part["batch_size"].astype(str)).to_numpy(str)
            yield Sample(source, "a100", "decode_attention:bf16", rows, seconds * column(part["decode_ms"]), groups)


def plain_dtype(name: object) -> str:
    """The type that a source calls so, of linear layers and caches. Raises InputError with those that are known."""
    found = _dtype(name)
    return NOT_BY_BLOCK.get(found, found)


def _dtype(name: object) -> str:
    found = DTYPES.get(str(name))
    if found is None:
        raise InputError(f"type {name!r} is not known; it must be one of {', '.join(DTYPES)}")
    return found


def _heads(part: "DataFrame", names: tuple[str, ...]) -> "np.typing.NDArray[np.str_]":
    return np.array([f"{h}/{kv}/{d}" for h, kv, d in part[list(names)].to_numpy()])


_SHAPE = ("num_heads", "num_key_value_heads", "head_dim", "batch_size")
TABLES = {
    "kernel_gemm.csv": Table(("gpu", "gemm_dtype", "m", "n", "k"), ("latency_ms",), MILLISECOND, _linear),
    "kernel_attn_decode.csv": Table(
        ("gpu", "kv_cache_dtype", "context", *_SHAPE), ("latency_ms",), MILLISECOND, _decode
    ),
    "kernel_attn_prefill.csv": Table(("gpu", "isl", "step", *_SHAPE), ("latency_ms",), MILLISECOND, _prefill),
    "kernel_allreduce.csv": Table(
        ("gpu", "num_gpus", "message_size", "backend"), ("latency_ms",), MILLISECOND, _all_reduce
    ),
    "kernel_moe.csv": Table(
        ("gpu", "moe_dtype", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size",
         "num_tokens"),
        ("latency_ms",), MILLISECOND, _moe,
    ),
    "infersim_gemm.csv": Table(("gpu", "m", "k", "n"), ("latency_us",), MICROSECOND, _linear),
    "infersim_attn_decode.csv": Table(
        ("gpu", "kind", "p1", "p2", "p3", "kv_dtype", "batch", "context"),
        ("latency_us",), MICROSECOND, _infersim_decode,
    ),
    "attention_a100_llama-2-70b_tp2.csv": Table(
        ("is_prefill", "batch_size", "chunk", "kv_len"), ("prefill_ms", "decode_ms"), MILLISECOND, _vidur_attention
    ),
    **{
        f"linear_{gpu}.csv": Table(
            ("gpu", "model", "tp", "num_tokens", "n_head", "n_kv_head", "hidden", "ffn"),
            tuple(f"{name}_ms" for name in VIDUR_MATRICES), MILLISECOND, _vidur_linear,
        )
        for gpu in ("a100", "h100", "a40")
    },
}  # fmt: skip
"""By file name. A file may be absent, plain or gzipped."""


def read_folder(folder: Path, *, gpu: str | None = None) -> Folder:
    """Every known kernel table of `folder`. `gpu`: the one device that all rows must be of.

    Raises InputError for a file that is not shaped as it should be, or where `folder` is none. Rows of GPUs without a
    data sheet are counted in `skipped`.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: is no folder; name one that holds tables such as {', '.join(list(TABLES)[:3])}")
    found = Folder()
    for name, kind in TABLES.items():
        path = find(folder, name)
        if path is None:
            continue
        table = read_table(path, kind.columns, kind.time)
        check_device(path, table, gpu)
        found.hashes[name] = file_hash(path)
        try:
            samples = list(kind.split(name, table, kind.seconds))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        for sample in samples:
            found.rows += len(sample)
            try:
                device(sample.gpu)
            except InputError:
                found.skipped[f"{name}: no data sheet of {sample.gpu}"] += len(sample)
                continue
            _check_shapes(path, sample)
            found.samples.append(sample)
    return found


def _check_shapes(path: Path, sample: Sample) -> None:
    for name, values in sample.rows.items():
        wrong = ~np.isfinite(values) | (values < 0)
        if name not in ("cached", "cold", "drawn"):
            wrong |= values == 0
        if wrong.any():
            raise InputError(f"{path}: {name} is {values[wrong][0]} for {sample.gpu}; a size is a number above 0")

"""A table of logged start-ups (the columns of `capacity_logs.csv`) as deployments."""

import csv
import os
import re
from dataclasses import dataclass
from math import isfinite
from typing import Any

from kvsim.capacity.deployment import Deployment, Given
from kvsim.capacity.overheads.releases import Release, engine_release
from kvsim.capacity.span import Span
from kvsim.capacity.weights.quantization import Scheme, number_format, of_checkpoint, scheme
from kvsim.catalog.gpus import Gpu, gpu
from kvsim.catalog.models import Model, model
from kvsim.errors import InputError

NEEDED = ("engine", "engine_version", "model", "gpu", "tp", "pp", "util", "kv_memory_gib_per_gpu", "outcome")
"""Columns without which a table says nothing about capacity."""

LOG_DECIMALS = 2
"""Decimals of a GiB that the engines print."""

_FLAGS = {
    "max_num_batched_tokens": re.compile(r"max[-_]num[-_]batched[-_]tokens\D{0,3}(\d+)"),
    "max_num_seqs": re.compile(r"max[-_]num[-_]seqs\D{0,3}(\d+)"),
}
"""Flags that a row's notes may state."""


@dataclass(frozen=True)
class Row:
    """One logged start-up: the cells by column, and the model of the catalogue where it is one."""

    cells: dict[str, str]
    known: Model | None
    why_unknown: str = ""

    @property
    def id(self) -> str:
        """The row's name."""
        return self.cells["id"]

    def text(self, column: str) -> str:
        """A cell, '' where the table has no such column."""
        return (self.cells.get(column) or "").strip()

    def number(self, column: str) -> float | None:
        """A cell as a number; None where it holds none."""
        try:
            value = float(self.text(column).replace(",", ""))
        except ValueError:
            return None
        return value if isfinite(value) else None

    def whole(self, column: str) -> int | None:
        """A cell as a whole number, None where it is empty. Raises InputError for anything else."""
        text, value = self.text(column), self.number(column)
        if value is None and text:
            raise InputError(f"{column} is {text!r}; it must be a whole number")
        return None if value is None else int(value)

    def gib(self, column: str, factor: int = 1) -> Span | None:
        """A cell of GiB as its digits mean it, in bytes; logs print two decimals, tables drop zeros at the end."""
        if self.number(column) is None:
            return None
        return Span.printed_gib(self.text(column).replace(",", ""), factor, decimals=LOG_DECIMALS)

    @property
    def kv_memory(self) -> Span | None:
        """KV memory of a rank; twice what is printed where only K is."""
        return self.gib("kv_memory_gib_per_gpu", 2 if self.text("kv_memory_scope").startswith("K only") else 1)

    @property
    def refused(self) -> str | None:
        """The class of the engine's refusal, `oom_after_kv` for a start that died later, None for one that ran."""
        outcome = self.text("outcome").lower()
        if outcome.startswith("oom"):
            return "oom_after_kv"
        if not outcome.startswith("refused"):
            return None
        if "free memory" in outcome:
            return "gpu_memory_taken"
        return "no_kv_memory" if "no available memory" in outcome else "max_model_len_above_pool"


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    """Every row of the table. Raises InputError for a file that cannot be read or lacks the columns."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            table, columns = list(reader), reader.fieldnames or ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as a table ({error}); name a CSV of logged start-ups") from None
    missing = [column for column in NEEDED if column not in columns]
    if missing:
        raise InputError(f"{path}: has no column {missing[0]}; needed are {', '.join(NEEDED)}")
    if not table:
        raise InputError(f"{path}: has a head and no row; give one logged start-up a row")
    return [
        _row({"id": f"row {number}"} | {key: cells[key] or "" for key in columns})
        for number, cells in enumerate(table, start=1)
    ]


def deployment(row: Row, given: Given, shape: Model) -> Deployment:
    """What a row's flags say; limits that neither row nor notes state are the engine's defaults.

    Raises InputError where the card is not known and its memory is needed.
    """
    card = card_of(row)
    total = row.gib("gpu_total_gib")
    settled = given.kv_memory is not None or given.num_gpu_blocks is not None
    if total is None and card is None and not settled:
        raise InputError(f"GPU {row.text('gpu')!r} is not known, and no total is given")
    notes = row.text("notes")
    stated = {name: int(found[1]) for name, pattern in _FLAGS.items() if (found := pattern.search(notes))}
    _, by_name = of_checkpoint(row.text("model"))
    return Deployment(
        model=shape,
        engine=_release(row, settled),
        gpu=card,
        total=total or Span.exactly(card.memory_bytes if card is not None else 0),
        dtype=number_format(row.text("dtype")) or "bf16",
        scheme=_scheme(row.text("quantization"), by_name),
        kv_dtype=number_format(row.text("kv_cache_dtype")) or "auto",
        tensor_parallel=_or_one(row.whole("tp")),
        pipeline_parallel=_or_one(row.whole("pp")),
        data_parallel=_or_one(row.whole("dp")),
        utilization=row.number("util"),
        max_model_len=row.whole("max_model_len"),
        block_size=row.whole("block_size"),
        enforce_eager="enforce-eager" in notes,
        max_num_seqs=stated.get("max_num_seqs"),
        max_num_batched_tokens=stated.get("max_num_batched_tokens"),
        given=given,
    )


def _or_one(value: int | None) -> int:
    return 1 if value is None else value


def _release(row: Row, settled: bool) -> Release:
    """The engine of the row; of one that is not known the newest vLLM's blocks, where their memory is settled."""
    try:
        return engine_release(row.text("engine"), row.text("engine_version"))
    except InputError:
        if not settled:
            raise
        return engine_release("vllm")


def _scheme(stated: str, by_name: str | None) -> Scheme | None:
    """The scheme that a row states in whatever words, else the one that the checkpoint's name does."""
    if not stated or by_name == "fbgemm-fp8":
        return scheme(by_name) if by_name else None
    try:
        return scheme(stated)
    except InputError:
        found = of_checkpoint(f"-{stated}")[1] or by_name
        if found is None:
            raise
        return scheme(found)


def card_of(row: Row) -> Gpu | None:
    """The GPU of the catalogue, None where its name is none."""
    try:
        return gpu(row.text("gpu"))
    except InputError:
        return None


def shape_of(row: Row) -> Model | None:
    """The model, else one with the layers and KV heads that the row states."""
    if row.known is not None:
        return row.known
    layers, heads, width = (row.number(f"arch_{name}") or 0 for name in ("kv_layers", "kv_heads", "head_dim"))
    if min(layers, heads, width) < 1:
        return None
    return plain_model(int(layers), int(heads), int(width))


def plain_model(layers: int, kv_heads: int, head_dim: int) -> Model:
    """A model of which nothing but its KV is known."""
    dims: dict[str, Any] = dict.fromkeys(("head_dim", "v_head_dim", "full_head_dim", "full_v_head_dim"), head_dim)
    return Model(
        name="model",
        layers=layers,
        full_attn_layers=layers,
        kv_caching_full_layers=layers,
        full_kv_heads=kv_heads,
        heads=kv_heads * 64,
        hidden=kv_heads * head_dim,
        vocab=1 << 17,
        max_context=1 << 17,
        parameters_from="published",
        **dims,
    )


def _row(cells: dict[str, str]) -> Row:
    name, _ = of_checkpoint(cells["model"])
    if not name:
        return Row(cells, None, "the row names no model")
    try:
        return Row(cells, model(name))
    except InputError as error:
        return Row(cells, None, str(error))

"""Whole layers and whole decode steps from their parts, on profiles of one layer (Vidur's tables).

A layer is four linear layers and six small operators (norms, rotary positions, activation, residual adds); a decode
step of the table's model adds attention. Both are compared as sums: what single kernels are off by cancels in part.
The model's linear layers come from fits that never saw the model, its small operators from a line of the other models
(in tokens x hidden size and tokens x a GPU's part of the MLP), its attention from fits that never saw the batch size.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kvsim.study.validation.baselines import line
from kvsim.study.validation.scores import Scored
from kvsim.timing.families.interface import Column
from kvsim.timing.fitting.kernel_tables import TABLES, VIDUR_HEADS, VIDUR_MATRICES
from kvsim.timing.fitting.samples import column, find, read_table

if TYPE_CHECKING:
    from pandas import DataFrame

MILLISECOND = 1e-3
SMALL = ("input_layernorm", "post_attention_layernorm", "attn_rope", "mlp_act", "add", "add")
"""Operators of a layer beside its matrices; there are two residual adds."""
ATTENTION = "attention_a100_llama-2-70b_tp2.csv"
STEP_MODEL, STEP_RANKS = "llama-2-70b", 2
"""The model and cut whose attention the table has."""


def layers(folder: Path, kernels: Sequence[Scored]) -> Iterator[Scored]:
    """Layers of every linear table in `folder`, and decode steps where attention was measured too."""
    for one in [one for one in kernels if one.source.startswith("linear_")]:
        path = find(folder, one.source)
        assert path is not None
        kind = TABLES[one.source]
        table = read_table(path, kind.columns, kind.time)
        if any(f"{name}_ms" not in table.columns for name in SMALL):
            continue
        measured, predicted = _layer(table, one)
        yield _scored(one, "layer", table, measured, predicted)
        attention = [part for part in kernels if part.source == ATTENTION and part.family.startswith("decode")]
        if attention and one.gpu == attention[0].gpu:
            yield _steps(table, measured, predicted, attention[0])


def _layer(table: "DataFrame", one: Scored) -> tuple[Column, Column]:
    """(measured, predicted) seconds of every row's layer; a source's samples hold its matrices one after the other."""
    rows, parts = len(table), len(VIDUR_MATRICES)
    small = MILLISECOND * np.sum([column(table[f"{name}_ms"]) for name in SMALL], axis=0)
    tokens = column(table["num_tokens"])
    whole, cut = tokens * column(table["hidden"]), tokens * column(table["ffn"]) / column(table["tp"])
    models = table["model"].to_numpy(str)
    straight = np.zeros(rows)
    for name in np.unique(models):
        target = models == name
        straight[target] = line(whole, cut, small, ~target)[target]
    measured = one.measured.reshape(parts, rows).sum(axis=0) + small
    return measured, one.predicted.reshape(parts, rows).sum(axis=0) + straight


def _steps(table: "DataFrame", measured: Column, predicted: Column, attention: Scored) -> Scored:
    """Decode steps of as many sequences as the linear table has tokens for."""
    mine = ((table["model"] == STEP_MODEL) & (table["tp"] == STEP_RANKS)).to_numpy()
    place = {int(tokens): int(row) for row, tokens in zip(np.flatnonzero(mine), table["num_tokens"][mine], strict=True)}
    batches = [int(label.removeprefix("batch ")) for label in attention.labels]
    chosen = np.array([index for index, batch in enumerate(batches) if batch in place], dtype=int)
    at = np.array([place[batches[index]] for index in chosen], dtype=int)
    total = measured[at] + attention.measured[chosen]
    return Scored(
        source=attention.source,
        gpu=attention.gpu,
        family="decode_step",
        kind="kernel",
        labels=[f"{STEP_MODEL} TP{STEP_RANKS}, {'/'.join(str(size) for size in VIDUR_HEADS)}"] * len(chosen),
        engines=[""] * len(chosen),
        rows=[attention.rows[index] for index in chosen],
        measured=total,
        predicted=predicted[at] + attention.predicted[chosen],
        datasheet=np.full(len(chosen), np.nan),
        linear=np.full(len(chosen), np.nan),
    )


def _scored(one: Scored, family: str, table: "DataFrame", measured: Column, predicted: Column) -> Scored:
    models = table["model"].to_numpy(str)
    shape = one.datasheet.reshape(len(VIDUR_MATRICES), len(table))
    return Scored(
        source=one.source,
        gpu=one.gpu,
        family=family,
        kind="kernel",
        labels=[str(name) for name in models],
        engines=[""] * len(table),
        rows=[f"tokens {tokens}, TP{ranks}" for tokens, ranks in zip(table["num_tokens"], table["tp"], strict=True)],
        measured=measured,
        predicted=predicted,
        datasheet=shape.sum(axis=0),
        linear=one.linear.reshape(shape.shape).sum(axis=0),
    )

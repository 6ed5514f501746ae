"""The errors that answers state, by class: what `timing/expected.py` looks up, from the same held-out rows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kvsim.study.validation.scores import Scored, errors
from kvsim.study.validation.served.roofline import by_data_sheet
from kvsim.study.validation.served.runs import ServedRun, device_of, known_model
from kvsim.timing.expected import FORMAT
from kvsim.timing.families import device
from kvsim.timing.families.interface import Column

FEWEST_RUNS = 8
"""Of fewer runs a 90th percentile says nothing."""
TPOT, TTFT = ("tpot", "step"), ("ttft",)
BY = {"model": (True, True), "gpu": (False, True), "engine": (False, False)}
"""What was held out to whether its classes tell GPUs apart, and engines."""


class Off(NamedTuple):
    """One served run: what it was, and predicted / measured - 1."""

    gpu: str
    kind: str
    engine: str
    family: str
    error: float


def expected_errors(
    scored: Mapping[str, Iterable[Scored]], runs: Sequence[ServedRun], columns: Mapping[str, Column]
) -> dict[str, Any]:
    """The data file: `scored` by what was held out (model, gpu, engine), and `runs` by the data sheet alone."""
    classes: list[dict[str, Any]] = []
    for unseen, parts in scored.items():
        classes += _classes("calibrated", unseen, list(_rows(parts)), *BY[unseen])
    sheet = list(_of_data_sheet(runs, columns))
    for by_gpu, by_engine in BY.values():
        classes += _classes("roofline", "everything", sheet, by_gpu, by_engine)
    return {"format": FORMAT, "classes": classes}


def _rows(scored: Iterable[Scored]) -> Iterator[Off]:
    for one in scored:
        if one.family in TPOT + TTFT:
            name = device(one.gpu).name
            for engine, error in zip(one.engines, errors(one), strict=True):
                yield Off(name, one.kind, engine.split()[0], one.family, float(error))


def _of_data_sheet(runs: Sequence[ServedRun], columns: Mapping[str, Column]) -> Iterator[Off]:
    for run, seconds in zip(runs, by_data_sheet(runs, columns), strict=True):
        if np.isfinite(seconds):
            kind = "moe" if known_model(run.model).moe_layers else "dense"
            yield Off(device_of(run).name, kind, run.engine, run.family, float(seconds / run.seconds - 1))


def _classes(timing: str, unseen: str, rows: Sequence[Off], by_gpu: bool, by_engine: bool) -> Iterator[dict[str, Any]]:
    alike: dict[tuple[str, str, str], list[Off]] = defaultdict(list)
    for row in rows:
        alike[row.kind, row.gpu if by_gpu else "", row.engine if by_engine else ""].append(row)
    for (kind, gpu, engine), members in sorted(alike.items()):
        tpot, ttft = (_spread([row for row in members if row.family in names]) for names in (TPOT, TTFT))
        if tpot is not None:
            yield {
                "timing": timing,
                "unseen": unseen,
                "kind": kind,
                "gpu": gpu or None,
                "engine": engine or None,
                "gpus": sorted({row.gpu for row in members}),
                "tpot": tpot,
                "ttft": ttft,
            }


def _spread(rows: Sequence[Off]) -> dict[str, float] | None:
    if len(rows) < FEWEST_RUNS:
        return None
    off = np.array([row.error for row in rows])
    size = np.abs(off)
    return {
        "n": len(rows),
        "median": round(float(np.median(size)), 3),
        "p90": round(float(np.quantile(size, 0.9)), 3),
        "bias": round(float(np.median(off)), 3),
    }

"""Predictions of held-out rows as groups of scores: n, median and p90 of |error|, bias, baselines, worst rows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvsim.timing.families.interface import Column

WORST = 3
"""Worst rows that a group lists."""


@dataclass(frozen=True)
class Scored:
    """Rows of one source, GPU and family: what they are called, what was measured, what was predicted three ways.

    `labels` name the model or shape of each row, `engines` the engine and release ('' for kernels), `rows` say what a
    row was, for people.
    """

    source: str
    gpu: str
    family: str
    kind: str
    labels: Sequence[str]
    engines: Sequence[str]
    rows: Sequence[str]
    measured: Column
    predicted: Column
    datasheet: Column
    linear: Column
    waiting: Column | None = None
    """Of served runs: requests in flight over those that the pool holds, less 1."""

    def where(self, places: Sequence[int]) -> "Scored":
        """Some of the rows."""
        at = np.array(places, dtype=int)
        return Scored(
            self.source,
            self.gpu,
            self.family,
            self.kind,
            [self.labels[place] for place in places],
            [self.engines[place] for place in places],
            [self.rows[place] for place in places],
            self.measured[at],
            self.predicted[at],
            self.datasheet[at],
            self.linear[at],
            None if self.waiting is None else self.waiting[at],
        )


def groups(scored: Iterable[Scored]) -> list[dict[str, Any]]:
    """One entry for each source, GPU, model (or shape), family and engine release."""
    found = []
    for one in scored:
        places: dict[tuple[str, str], list[int]] = defaultdict(list)
        for index, key in enumerate(zip(one.labels, one.engines, strict=True)):
            places[key].append(index)
        found += [_group(one, label, engine, np.array(rows)) for (label, engine), rows in places.items()]
    return found


def errors(one: Scored) -> Column:
    """Predicted over measured, less 1."""
    return np.asarray(one.predicted / one.measured - 1)


def spread(off: Column) -> dict[str, Any]:
    """n, median and p90 and p95 of |error|, and the median signed error."""
    size = np.abs(off)
    if not len(off):
        return {"n": 0, "median_abs_error": None, "p90_abs_error": None, "p95_abs_error": None, "bias": None}
    return {
        "n": len(off),
        "median_abs_error": _round(np.median(size)),
        "p90_abs_error": _round(np.quantile(size, 0.9)),
        "p95_abs_error": _round(np.quantile(size, 0.95)),
        "bias": _round(np.median(off)),
    }


def kv_bound(scored: Iterable[Scored]) -> list[Scored]:
    """The runs alone whose pool holds fewer requests than are in flight."""
    found = []
    for one in scored:
        if one.waiting is not None and (one.waiting > 0).any():
            found.append(one.where([int(place) for place in np.flatnonzero(one.waiting > 0)]))
    return found


def cliffs(scored: Iterable[Scored]) -> list[dict[str, Any]]:
    """KV-bound runs one by one, those that wait most first: seconds measured and predicted."""
    found = [
        {
            "source": one.source,
            "gpu": one.gpu,
            "model": one.labels[place],
            "family": one.family,
            "row": one.rows[place],
            "waiting": _round(waiting),
            "measured_s": float(f"{one.measured[place]:.4g}"),
            "predicted_s": float(f"{one.predicted[place]:.4g}"),
        }
        for one in kv_bound(scored)
        for place, waiting in enumerate(one.waiting if one.waiting is not None else ())
    ]
    return sorted(found, key=lambda row: (row["source"], row["model"], row["gpu"], row["row"], row["family"]))


def summary(scored: Sequence[Scored], by: Sequence[str]) -> list[dict[str, Any]]:
    """Rows put together by some of `source`, `gpu`, `family` and `kind` (dense, moe or kernel)."""
    places: dict[tuple[str, ...], list[Scored]] = defaultdict(list)
    for one in scored:
        places[tuple(getattr(one, name) for name in by)].append(one)
    return [dict(zip(by, key, strict=True)) | _together(parts) for key, parts in sorted(places.items())]


def _together(parts: Sequence[Scored]) -> dict[str, Any]:
    found = spread(np.concatenate([errors(one) for one in parts]))
    for name in ("datasheet", "linear"):
        off = np.concatenate([np.abs(getattr(one, name) / one.measured - 1) for one in parts])
        found[f"baseline_{name}_median"] = _median(off)
    return found


def _group(one: Scored, label: str, engine: str, rows: "np.typing.NDArray[np.int_]") -> dict[str, Any]:
    off = errors(one)[rows]
    found: dict[str, Any] = {"source": one.source, "gpu": one.gpu, "model": label, "family": one.family}
    if engine:
        found["engine"] = engine
    found |= spread(off)
    for name in ("datasheet", "linear"):
        found[f"baseline_{name}_median"] = _median(np.abs(getattr(one, name)[rows] / one.measured[rows] - 1))
    worst = rows[np.argsort(-np.abs(off), kind="stable")[:WORST]]
    found["worst"] = [{"row": one.rows[index], "error": _round(errors(one)[index])} for index in worst]
    return found


def _median(off: Column) -> float | None:
    finite = off[np.isfinite(off)]
    return _round(np.median(finite)) if len(finite) else None


def _round(value: float) -> float:
    return round(float(value), 4)

"""The fits: every family that has points, robustly and in logarithms of time, then what steps take beside kernels.

A family needs more different shapes than it has parameters. Where a family of published measurements describes the same
kernel (tiles of linear layers, packed heads of prompts), both are fitted and the one with the smaller error for its
number of parameters is kept: what a library's kernel is like shows in its times alone.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kvsim.catalog.gpus import gpu
from kvsim.errors import InputError
from kvsim.microbench.fit.series import ALTERNATIVES, Series, series_of
from kvsim.microbench.fit.step import kernels_s
from kvsim.microbench.fit.trust import refuse, summary
from kvsim.microbench.results import Point, Results
from kvsim.timing.families import Device, family
from kvsim.timing.families.device import of_gpu
from kvsim.timing.families.interface import Beginning, Column, Family, Rows, Values
from kvsim.timing.families.measured import CausalAttention, Gemm, Line, PagedAttention, PagedRead
from kvsim.timing.fitting.calibration import EMULATED, ON_THIS_GPU, Calibration, Entry, entry
from kvsim.timing.fitting.robust import Fitted, fit

TRUST = 0.01
"""How much the starts pull: they are guesses from the same points, so next to nothing."""


@dataclass(frozen=True, slots=True)
class FamilyFit:
    """One fitted family: its points, what the fit says of them, and the entry of the calibration."""

    series: Series
    entry: Entry
    predicted: Column


@dataclass(frozen=True, slots=True)
class Fit:
    """A calibration and how it came about: the families in order, and steps as their kernels alone predict them."""

    calibration: Calibration
    families: Sequence[FamilyFit]
    device: Device


def fit_results(results: Results, *, gpu_name: str | None = None, accepted: Collection[str] = ()) -> Fit:
    """Fit all families of `results`. `gpu_name`: which GPU of the catalogue it is, where the driver's is unknown.

    Raises InputError for results that may not be fitted, see `trust`; `accepted` names what may pass all the same.
    """
    needed = refuse(results, accepted)
    device = device_of(results, gpu_name)
    fits: list[FamilyFit] = []
    left_out = {}
    for name, series in series_of(results.points, "fit").items():
        short = _too_few(series)
        if short is not None:
            message = f"{results.path}: {name} has {short}"
            if "few-points" not in accepted:
                raise InputError(f"{message}; measure more (preset full), or say --accept few-points to leave it out")
            needed.append("few-points")
            left_out[name] = short
            continue
        fits.append(_best(series, device, results))
    if not fits:
        raise InputError(f"{results.path}: holds no point of role fit; run `kvsim calibrate run`")
    parameters = {one.entry.family: one.entry.values for one in fits}
    fits += _steps(results, parameters, device)
    about = {
        "env": dict(results.runs[0].env.fields),
        "input_sha256": results.sha256,
        "accepted": list(dict.fromkeys(needed)),
        "left_out": left_out,
        "fragmentation": fragmentation(results.points),
        **summary(results),
    }
    emulated = any(run.env.emulated for run in results.runs)
    calibration = Calibration(
        {(device.name, one.entry.family): one.entry for one in fits},
        EMULATED if emulated else ON_THIS_GPU,
        about=about,
    )
    return Fit(calibration, fits, device)


def device_of(results: Results, gpu_name: str | None) -> Device:
    """The catalogue's GPU with the units and cache that the driver reports. Raises InputError for an unknown one."""
    env = results.runs[0].env
    try:
        known = of_gpu(gpu(gpu_name or env.device))
    except InputError as error:
        if gpu_name is not None:
            raise InputError(f"--gpu: {error}") from None
        raise InputError(f"{results.path}: device: {error}; --gpu NAME says which of them it is") from None
    return replace(known, units=env.sm_count, cache_bytes=env.l2_bytes or known.cache_bytes)


def fragmentation(points: Sequence[Point]) -> list[dict[str, float | str]]:
    """What the real allocator reserved for each replayed trace, over what was in use at most."""
    found: list[dict[str, float | str]] = []
    for point in points:
        reserved, peak = point.fields.get("reserved_bytes"), point.fields.get("peak_used_bytes")
        if point.bench == "frag" and isinstance(reserved, int) and isinstance(peak, int) and peak > 0:
            found.append({"trace": point.variant, "reserved_over_peak_used": round(reserved / peak, 5)})
    return found


def fitted_family(series: Series) -> Beginning:
    """The family with the factors that its points can decide."""
    if series.family == "gemm:bf16":
        return Gemm()
    if series.family == "causal_attention:bf16":
        return CausalAttention()
    if series.family in ("kv_read:bf16", "paged_attention:bf16"):
        blocks = sorted({int(size) for size in series.rows["block"] if size})
        if series.family == "kv_read:bf16":
            return PagedRead(blocks)
        groups = groups_of(series.rows)
        return PagedAttention(blocks, groups, reference=groups[0])
    return Line(series.family)


def groups_of(rows: Rows) -> list[int]:
    """Query heads a KV head that were measured, the smallest first: that with which the others are compared."""
    return sorted({round(group) for group in rows["heads"] / rows["kv_heads"]})


def _too_few(series: Series) -> str | None:
    parameters = len(fitted_family(series).parameters)
    shapes = len({tuple(row) for row in np.stack(list(series.rows.values()), axis=1).tolist()})
    if shapes > parameters:
        return None
    return f"{shapes} different shapes for {parameters} parameters"


def _best(series: Series, device: Device, results: Results) -> FamilyFit:
    own = fitted_family(series)
    candidates = [_fit(own, series, device, results, begin) for begin in own.begins(series.rows, series.seconds)]
    rows = {**series.rows, "cold": np.ones(len(series))}
    for name in ALTERNATIVES.get(series.family, ()):
        other = family(name)
        if len(series) > len(other.parameters):
            candidates.append(_fit(other, Series(name, rows, series.seconds, series.points), device, results, None))
    return min(candidates, key=_loss)


def _fit(one: Family, series: Series, device: Device, results: Results, begin: Values | None) -> FamilyFit:
    found = fit(one, series.rows, series.seconds, device, prior=begin, trust=1.0 if begin is None else TRUST)
    if isinstance(one, PagedAttention):
        nothing = dict.fromkeys(one.known, 0.0)
        found = Fitted({**found.values, **one.known}, {**found.relative_errors, **nothing}, found.rows)
    return _family_fit(series, found, one.seconds(found.values, series.rows, device), device, results)


def _family_fit(series: Series, found: Fitted, predicted: Column, device: Device, results: Results) -> FamilyFit:
    off = np.abs(predicted / series.seconds - 1)
    made = entry(
        device.name,
        series.family,
        found,
        ranges={name: (float(values.min()), float(values.max())) for name, values in series.rows.items()},
        source=results.path.name,
        input_hash=results.sha256,
        median_abs_error=float(np.median(off)),
        p90_abs_error=float(np.quantile(off, 0.9)),
    )
    return FamilyFit(series, made, predicted)


def _loss(one: FamilyFit) -> float:
    """Mean |log error|, for as many rows as parameters leave free."""
    off = np.abs(np.log(one.predicted / one.series.seconds))
    return float(off.sum() / max(1, len(off) - len(one.entry.values)))


def _steps(results: Results, parameters: Mapping[str, Values], device: Device) -> list[FamilyFit]:
    """What a step takes beside its kernels, a layer. Steps are held out: no score is taken from this number."""
    found = []
    for variant in ("graph", "eager"):
        points = [point for point in results.points if point.bench == "step" and point.variant == variant]
        given = kernels_s(points, parameters, device) if points else None
        if given is None or len(points) < 2:
            continue
        rows = {"layers": np.array([float(point.params["layers"]) for point in points]), "given": given}
        series = Series(f"step:{variant}", rows, np.array([point.median_s for point in points]), points)
        one = Line(series.family)
        fitted = fit(one, rows, series.seconds, device, prior=one.begins(rows, series.seconds)[0], trust=TRUST)
        found.append(_family_fit(series, fitted, one.seconds(fitted.values, rows, device), device, results))
    return found

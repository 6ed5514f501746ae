"""Fitting every sample of a folder: one entry a GPU and family, the larger table where two measured the same."""

from collections.abc import Iterable, Sequence

import numpy as np

from kvsim.errors import InputError
from kvsim.timing.families import device, family
from kvsim.timing.families.interface import Values
from kvsim.timing.fitting.calibration import Calibration, Entry, entry
from kvsim.timing.fitting.robust import Fitted, fit
from kvsim.timing.fitting.samples import FEWEST_ROWS, Folder, Sample

MOST_ROWS = 4000
"""More rows of one family on one GPU change a fit by less than its standard errors."""
SHAPE = ("n", "k", "heads", "kv_heads", "head_dim", "hidden", "intermediate", "experts", "active")
"""Columns that a model decides, whatever the batch."""
PREFILL = ("prefill_attention:packed", "prefill_attention:by_head")


def variants(sample: Sample) -> tuple[str, ...]:
    """The families that a sample may be of: a prefill kernel's kind shows in its times alone."""
    return PREFILL if sample.family == "prefill_attention" else (sample.family,)


def fit_sample(sample: Sample, name: str, prior: Values | None = None) -> Fitted:
    """Parameters of family `name` on the sample's GPU, from at most `MOST_ROWS` rows spread over the table."""
    every = -(-len(sample) // MOST_ROWS)
    rows = {key: values[::every] for key, values in sample.rows.items()}
    return fit(family(name), rows, sample.seconds[::every], device(sample.gpu), prior=prior)


def predict(sample: Sample, name: str, values: Values) -> "np.typing.NDArray[np.float64]":
    """Seconds of every row of the sample."""
    return family(name).seconds(values, sample.rows, device(sample.gpu))


def calibrate(folder: Folder, *, strict: bool = True) -> Calibration:
    """Fit everything in `folder`. `strict`: too few rows of a family raise InputError instead of being left out."""
    entries: dict[tuple[str, str], Entry] = {}
    for sample in largest(folder.samples):
        gpu = device(sample.gpu).name
        if len(sample) < FEWEST_ROWS:
            if strict:
                raise InputError(
                    f"{sample.source}: {len(sample)} rows of {sample.family} on {sample.gpu}; a fit needs at least "
                    f"{FEWEST_ROWS}"
                )
            continue
        for name in variants(sample):
            fitted = fit_sample(sample, name)
            off = np.abs(predict(sample, name, fitted.values) / sample.seconds - 1)
            entries[gpu, name] = entry(
                gpu,
                name,
                fitted,
                ranges={key: (float(values.min()), float(values.max())) for key, values in sample.rows.items()},
                source=sample.source,
                input_hash=folder.hashes.get(sample.source, ""),
                median_abs_error=float(np.median(off)),
                p90_abs_error=float(np.quantile(off, 0.9)),
                groups=tuple(str(name) for name in np.unique(sample.groups)),
            )
    return Calibration(entries)


def largest(samples: Iterable[Sample]) -> Sequence[Sample]:
    """One sample for each GPU and family: that with the most shapes of kernels, then rows.

    A table of one head shape at many batch sizes tells less of others than one of many heads.
    """
    best: dict[tuple[str, str], Sample] = {}
    for sample in samples:
        key = device(sample.gpu).name, sample.family
        known = best.get(key)
        if known is None or _size(sample) > _size(known):
            best[key] = sample
    return list(best.values())


def _size(sample: Sample) -> tuple[int, int]:
    columns = [sample.rows[name] for name in SHAPE if name in sample.rows]
    shapes = len(np.unique(np.stack(columns, axis=1), axis=0)) if columns else len(np.unique(sample.groups))
    return shapes, len(sample)

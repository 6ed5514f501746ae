"""Kernels on shapes that no fit has seen, and on GPUs that no fit has seen."""

from collections.abc import Iterator, Sequence

import numpy as np

from kvsim.study.validation.baselines import line, regressors
from kvsim.study.validation.scores import Scored
from kvsim.timing.families import device
from kvsim.timing.families.interface import Column, Values
from kvsim.timing.fitting.calibrate import fit_sample, predict, variants
from kvsim.timing.fitting.calibration import Calibration
from kvsim.timing.fitting.samples import FEWEST_ROWS, Sample

MOST_FOLDS = 12
"""More groups of shapes than these are held out several at a time, which is the harder test."""
FOLDS = 10


def unseen_shapes(samples: Sequence[Sample], shipped: Calibration) -> Iterator[Scored]:
    """Every row from fits to the other shapes of the same table and GPU.

    Where a table leaves too little to fit to, the shipped fit serves if it never saw the shape, else the other GPUs'.
    """
    for sample in samples:
        datasheet, tokens, data = regressors(sample)
        predicted, straight = np.zeros(len(sample)), np.zeros(len(sample))
        for target in folds(sample):
            train = sample.where(~target)
            part = sample.where(target)
            predicted[target] = _best(train, part, shipped) if len(train) >= FEWEST_ROWS else _known(part, shipped)
            straight[target] = line(tokens, data, sample.seconds, ~target)[target]
        yield _scored(sample, predicted, datasheet, straight)


def unseen_gpu(samples: Sequence[Sample], calibration: Calibration) -> Iterator[Scored]:
    """Every row from the data sheet and the medians of the other GPUs' fits."""
    for sample in samples:
        name = device(sample.gpu).name
        others = calibration.without([name])
        datasheet, tokens, data = regressors(sample)
        kept = [one for one in samples if one.family == sample.family and device(one.gpu).name != name]
        straight = _line_of_others(kept, tokens, data)
        yield _scored(sample, _by_calibration(sample, others), datasheet, straight)


def folds(sample: Sample) -> Iterator["np.typing.NDArray[np.bool_]"]:
    """Masks of the rows that are held out together: whole groups."""
    names, member = np.unique(sample.groups, return_inverse=True)
    count = len(names) if len(names) <= MOST_FOLDS else FOLDS
    for fold in range(count):
        yield member % count == fold


def _best(train: Sample, part: Sample, shipped: Calibration) -> Column:
    """By the kind of kernel that fits the training rows best."""
    candidates = []
    for name in variants(train):
        values = fit_sample(train, name, _prior(train, part, name, shipped)).values
        off = np.abs(np.log(predict(train, name, values) / train.seconds))
        candidates.append((float(np.median(off)), name, values))
    _, name, values = min(candidates, key=lambda one: one[:2])
    return predict(part, name, values)


def _prior(train: Sample, part: Sample, name: str, shipped: Calibration) -> Values:
    """Where a fit begins: at the shipped one, unless it rests on the held-out shapes, else at the other GPUs'."""
    gpu = device(train.gpu).name
    entry = shipped.entries.get((gpu, name))
    if entry is not None and not set(part.groups) & set(entry.groups):
        return entry.values
    return shipped.without([gpu]).values(gpu, name)[0]


def _known(part: Sample, shipped: Calibration) -> Column:
    name = device(part.gpu).name
    for kind in variants(part):
        entry = shipped.entries.get((name, kind))
        if entry is not None and set(part.groups) & set(entry.groups):
            return _by_calibration(part, shipped.without([name]))
    return _by_calibration(part, shipped)


def _by_calibration(sample: Sample, calibration: Calibration) -> Column:
    gpu = device(sample.gpu).name
    name = sample.family
    if name == "prefill_attention":
        name = f"prefill_attention:{calibration.prefill_kernel(gpu)}"
    values, _ = calibration.values(gpu, name)
    return predict(sample, name, values)


def _line_of_others(others: Sequence[Sample], tokens: Column, data: Column) -> Column:
    if not others:
        return np.full(len(tokens), np.nan)
    parts = [regressors(one)[1:] for one in others]
    all_tokens = np.concatenate([*(one[0] for one in parts), tokens])
    all_data = np.concatenate([*(one[1] for one in parts), data])
    seconds = np.concatenate([*(one.seconds for one in others), np.ones(len(tokens))])
    train = np.arange(len(seconds)) < len(seconds) - len(tokens)
    return line(all_tokens, all_data, seconds, train)[len(seconds) - len(tokens) :]


def _scored(sample: Sample, predicted: Column, datasheet: Column, straight: Column) -> Scored:
    names = list(sample.rows)
    table = np.stack([sample.rows[name] for name in names], axis=1)
    rows = [", ".join(f"{name} {value:g}" for name, value in zip(names, row, strict=True)) for row in table]
    return Scored(
        source=sample.source,
        gpu=sample.gpu,
        family=sample.family,
        kind="kernel",
        labels=[str(label) for label in sample.groups],
        engines=[""] * len(sample),
        rows=rows,
        measured=sample.seconds,
        predicted=predicted,
        datasheet=datasheet,
        linear=straight,
    )

"""Served runs with a model, a GPU or an engine's release held out."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kvsim.study.validation.baselines import line
from kvsim.study.validation.scores import Scored
from kvsim.study.validation.served.closed_loop import features
from kvsim.study.validation.served.engines import Engines, Labels, Priors, held_out
from kvsim.study.validation.served.runs import ServedRun, architecture, known_model
from kvsim.timing.families import device
from kvsim.timing.families.interface import Column
from kvsim.timing.fitting.calibration import Calibration


@dataclass(frozen=True)
class Known:
    """The shipped overheads of engines, and those fitted without one model, GPU or release: only these may begin the
    fit of a prediction for that label."""  # fmt: skip

    engines: Priors
    without: Mapping[str, Priors]

    def unseen(self, label: str) -> Priors:
        """What is known of engines from runs that do not have that label."""
        return dict(self.engines) | dict(self.without.get(label, {}))


@dataclass(frozen=True)
class Labelled:
    """Runs with the labels by which they can be held out."""

    runs: Sequence[ServedRun]

    @property
    def models(self) -> Labels:
        """Shapes of models."""
        return np.array([architecture(run.model) for run in self.runs])

    @property
    def gpus(self) -> Labels:
        """GPUs."""
        return np.array([device(run.gpu).name for run in self.runs])

    @property
    def releases(self) -> Labels:
        """Engines with their release."""
        return np.array([f"{run.engine} {run.version}" for run in self.runs])


def unseen_models(runs: Sequence[ServedRun], calibration: Calibration, known: Known) -> list[Scored]:
    """Every run from engines fitted to other models, on kernels of its own GPU."""
    labelled = Labelled(runs)
    columns = features(runs, calibration)
    engines = Engines(runs, columns)
    predicted = held_out(engines, labelled.models, labelled.models, known.unseen)
    return _scored(runs, columns, predicted, labelled.models)


def unseen_gpu(runs: Sequence[ServedRun], calibration: Calibration, known: Known) -> list[Scored]:
    """Every run from engines fitted on other GPUs, with kernels from its data sheet and the other GPUs' shares."""
    labelled = Labelled(runs)
    columns = features(runs, calibration)
    blind: dict[str, Column] = {name: column.copy() for name, column in columns.items()}
    for gpu in dict.fromkeys(labelled.gpus):
        places = np.flatnonzero(labelled.gpus == gpu)
        part = features([runs[int(index)] for index in places], calibration.without([str(gpu)]))
        for name, column in part.items():
            blind[name][places] = column
    predicted = np.zeros(len(runs))
    fits = Engines(runs, columns)
    for gpu in dict.fromkeys(labelled.gpus):
        mine = labelled.gpus == gpu
        values = fits.fitted(~mine, labelled.models, tuple(dict.fromkeys(fits.engine[mine])), known.unseen(str(gpu)))
        mixed = {name: np.where(mine, blind[name], column) for name, column in columns.items()}
        engines = Engines(runs, mixed)
        predicted[mine] = engines.predict(values, mine, ~mine, labelled.models)
    return _scored(runs, columns, predicted, labelled.gpus)


def unseen_release(runs: Sequence[ServedRun], calibration: Calibration, known: Known) -> list[Scored]:
    """Every run from other releases of its engine, or from the median of the other engines."""
    labelled = Labelled(runs)
    columns = features(runs, calibration)
    engines = Engines(runs, columns)
    predicted = held_out(engines, labelled.releases, labelled.models, known.unseen)
    return _scored(runs, columns, predicted, labelled.releases)


def _scored(runs: Sequence[ServedRun], columns: Mapping[str, Column], predicted: Column, held: Labels) -> list[Scored]:
    seconds = np.array([run.seconds for run in runs])
    family = np.array([run.family for run in runs])
    straight = np.full(len(runs), np.nan)
    for label in dict.fromkeys(held):
        for name in dict.fromkeys(family):
            target = (held == label) & (family == name)
            if target.any():
                part = line(columns["tokens"], columns["kv_bytes"], seconds, (held != label) & (family == name))
                straight[target] = part[target]
    rates = np.array([device(run.gpu).bandwidth_bytes_per_s for run in runs])
    datasheet = columns["moved_bytes"] / rates * np.maximum(columns["steps"], np.minimum(1.0, columns["prompts"]))
    places: dict[tuple[str, str, str, str], list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        kind = "moe" if known_model(run.model).moe_layers else "dense"
        places[run.source, run.gpu, run.family, kind].append(index)
    return [
        Scored(
            source=source,
            gpu=gpu,
            family=name,
            kind=kind,
            labels=[runs[index].model for index in rows],
            engines=[f"{runs[index].engine} {runs[index].version}" for index in rows],
            rows=[_row(runs[index], columns["waiting"][index]) for index in rows],
            measured=seconds[rows],
            predicted=predicted[rows],
            datasheet=datasheet[rows],
            linear=straight[rows],
            waiting=columns["waiting"][rows],
        )
        for (source, gpu, name, kind), rows in places.items()
    ]


def _row(run: ServedRun, waiting: float) -> str:
    batch = "as many as fit" if run.batch is None else f"{run.batch:g}"
    text = f"{run.engine}, {run.dtype}, {run.layout.gpus} GPU, {run.prompt:g} + {run.output:g} tokens, {batch} at once"
    return f"{text}, {waiting:.1f} times the pool waits" if waiting else text

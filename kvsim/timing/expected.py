"""How far step times are expected to be off: what validation found for the class that a run belongs to.

`data/expected_errors.json` holds errors of held-out served runs by class, written by `kvsim validate --expected`. A
class is a GPU, a kind of model (dense or MoE) and an engine generation. Of a GPU that was never served on, the errors
are those of GPUs left out of every fit; of an engine, those of releases left out. Where neither fits nothing is said.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from kvsim.catalog.gpus import Gpu, gpu
from kvsim.catalog.models import Model
from kvsim.timing.steps.engine import measured_engine

FORMAT = "kvsim expected errors 1"
UNSEEN = ("model", "gpu", "engine")
"""What the runs of a class had to do without: runs of their model, of their GPU, of their engine's release."""


@dataclass(frozen=True, slots=True)
class Class:
    """Errors of held-out served runs of one kind: shares of the measured times, None where too few were measured.

    `gpu` and `engine` are None where the class holds for any; `gpus` are those that its runs were on.
    """

    timing: str
    unseen: str
    kind: str
    gpu: str | None
    engine: str | None
    gpus: tuple[str, ...]
    tpot: Mapping[str, float]
    ttft: Mapping[str, float] | None


def expected_error(timing: str, model: Model, card: Gpu, engine: str, version: str) -> dict[str, Any]:
    """The error to expect of TPOT and TTFT, as shares, with the class that they are of in words.

    `timing` is `roofline` or `calibrated`. The numbers are None, and `basis` says so, where no class fits.
    """
    kind = "moe" if model.moe_layers else "dense"
    generation = measured_engine(engine, version)
    for unseen, on, under in _ladder(timing, card.name, generation):
        for one in error_classes():
            asked = (timing, unseen, kind, on, under)
            if (one.timing, one.unseen, one.kind, one.gpu, one.engine) == asked and _fits(one, card):
                return _record(one, _basis(one))
    return unknown_error("no served run of such a model, GPU and engine was measured")


def unknown_error(why: str) -> dict[str, Any]:
    """The same where no class fits, and why."""
    return _record(None, f"not known: {why}")


def _ladder(timing: str, card: str, engine: str | None) -> Iterator[tuple[str, str | None, str | None]]:
    """(what was unseen, GPU, engine) of the classes to ask, the closest first."""
    seen = "model" if timing == "calibrated" else "everything"
    if engine is not None:
        yield seen, card, engine
        yield "gpu" if timing == "calibrated" else seen, None, engine
    yield "engine" if timing == "calibrated" else seen, None, None


def _fits(one: Class, card: Gpu) -> bool:
    """An unseen engine is expected to do as others did on that very GPU, an unseen GPU as others of its maker."""
    if one.gpu is None and one.engine is None:
        return card.name in one.gpus
    return one.gpu is not None or any(gpu(name).vendor == card.vendor for name in one.gpus)


def _record(one: Class | None, basis: str) -> dict[str, Any]:
    tpot: Mapping[str, float] = one.tpot if one is not None else {}
    ttft: Mapping[str, float] = (one.ttft or {}) if one is not None else {}
    return {
        "tpot_median": tpot.get("median"),
        "tpot_p90": tpot.get("p90"),
        "ttft_median": ttft.get("median"),
        "ttft_p90": ttft.get("p90"),
        "runs": int(tpot.get("n", 0)),
        "basis": basis,
    }


def _basis(one: Class) -> str:
    models = "MoE models" if one.kind == "moe" else "dense models"
    under = f" under {one.engine}" if one.engine else ""
    where = {
        "model": f"unseen {models} on {one.gpu}{under}",
        "gpu": f"{models}{under} on a GPU of which no served run was fitted",
        "engine": f"{models} under an engine of which no served run was fitted",
        "everything": f"{models}{under} on {one.gpu or 'other GPUs'}, nothing fitted",
    }[one.unseen]
    return f"{where}, {int(one.tpot['n']):,} served runs"


@cache
def error_classes() -> tuple[Class, ...]:
    """Every class of which anything is known, the closest to a run first."""
    table = json.loads(files("kvsim.timing").joinpath("data/expected_errors.json").read_text("utf-8"))
    return tuple(Class(**(one | {"gpus": tuple(one["gpus"])})) for one in table["classes"])

"""A calibration: fitted parameters by GPU and family as data, and what stands in for a GPU or family without any.

Order of stand-ins, each said in `provenance`: the GPU's own fit; that of the same chip under another name; the median
of fits of its architecture; the median of all GPUs' fits; a narrower type's family borrows from the next wider one's. A
card without fits of its own whose copies and matrix products are published has these instead of its relatives'
(`attained`).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from kvsim.errors import InputError
from kvsim.timing.families import device, family
from kvsim.timing.families.interface import starts
from kvsim.timing.families.measured import STANDS_FOR, stands_for
from kvsim.timing.fitting.attained import attained
from kvsim.timing.fitting.robust import Fitted, median_of

FITTED = "fitted to published measurements"
ON_THIS_GPU = "calibrated on this GPU"
EMULATED = "fitted to emulated times, which no GPU took"
DATASHEET = "datasheet and the median of other GPUs' efficiencies"
STARTS = "datasheet and stated efficiencies"
ATTAINED = "published copies and matrix products of the card, else the median of other GPUs' efficiencies"

WIDE_SHARE = 0.5
"""A relative stands in alone only if its table has half as many shapes as the widest: a few shapes leave open what the
others cost (latent heads and long contexts alone, as H20's, tell no fixed costs)."""

BORROWS = {
    "linear:fp4": "linear:fp8",
    "linear:int4": "linear:bf16",
    "linear:int8": "linear:bf16",
    "moe:int4": "moe:w4a16",
    "moe:fp4": "moe:w4a16",
    "moe:fp8": "moe:fp8_block",
    "moe:int8": "moe:bf16",
    "moe:w4a16": "moe:bf16",
    "decode_attention:int8": "decode_attention:fp8",
    "decode_attention:int4": "decode_attention:fp8",
    "prefill_attention:packed": "prefill_attention:by_head",
}
"""The family whose parameters stand in where nobody measured one: shares carry over, bytes and peaks are the type's."""


@dataclass(frozen=True)
class Entry:
    """The fit of one family on one GPU: values, relative standard errors, rows, fitted ranges, groups, error left."""

    gpu: str
    family: str
    values: dict[str, float]
    relative_errors: dict[str, float]
    rows: int
    ranges: dict[str, tuple[float, float]]
    source: str
    input_hash: str
    median_abs_error: float
    p90_abs_error: float
    groups: tuple[str, ...] = ()
    """Shapes that the fit has seen."""
    provenance: str = ""
    """Where it comes from, if it is not where the calibration as a whole does."""

    def as_json(self) -> dict[str, Any]:
        """For a data file: every parameter with unit, value and standard error."""
        units = {one.name: one.unit for one in family(self.family).parameters}
        return {
            "parameters": {
                name: {
                    "value": _short(value),
                    "standard_error": _short(value * self.relative_errors[name]),
                    "unit": units.get(name, "1"),  # factors of sizes that only this GPU was asked for have none
                }
                for name, value in self.values.items()
            },
            "rows": self.rows,
            "fitted_range": {name: [low, high] for name, (low, high) in self.ranges.items()},
            "median_abs_error": _short(self.median_abs_error),
            "p90_abs_error": _short(self.p90_abs_error),
            "source": self.source,
            "input_sha256": self.input_hash,
            "shapes": list(self.groups),
        }


@dataclass(frozen=True)
class Calibration:
    """Fits by (GPU, family). Immutable; `without` gives what an unseen GPU would see."""

    entries: Mapping[tuple[str, str], Entry] = field(default_factory=dict)
    provenance: str = FITTED
    blind: frozenset[str] = frozenset()
    """GPUs of which nothing but the data sheet may be used."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Of a calibration on the user's own GPU: the machine, what was accepted, counts, the drift of its anchors."""

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """Every GPU with a fit."""
        return tuple(sorted({gpu for gpu, _ in self.entries}))

    def without(self, gpus: Iterable[str]) -> "Calibration":
        """The same but those fits, and published rates, of these GPUs."""
        left = self.blind | set(gpus)
        kept = {key: one for key, one in self.entries.items() if key[0] not in left}
        return replace(self, entries=kept, blind=frozenset(left))

    def over(self, others: "Calibration") -> "Calibration":
        """These fits, and of `others` those that none of these stands for; each keeps its provenance."""
        own = {(gpu, name.partition(":")[0]) for gpu, name in self.entries if name.startswith("prefill_attention")}
        below = {
            key: replace(one, provenance=one.provenance or others.provenance)
            for key, one in others.entries.items()
            # Of prompts one kind of kernel fits a GPU: another's fit to it would stand beside the one chosen here.
            if (key[0], key[1].partition(":")[0]) not in own
        }
        return replace(self, entries={**below, **self.entries})

    def measured_here(self, gpu: str, name: str, *, latent: bool) -> bool:
        """Whether this calibration itself, not one that it stands over, has kernels of that family on that GPU."""
        own = (self.entries.get((gpu, one)) for one in (stands_for(name, latent=latent), name) if one is not None)
        return any(one is not None and not one.provenance for one in own)

    def values(self, gpu: str, name: str) -> tuple[dict[str, float], str]:
        """(parameters of that family on that GPU, where they come from)."""
        own = self.entries.get((gpu, name))
        if own is not None:
            return own.values, own.provenance or self.provenance
        values, where = self._relatives(gpu, name)
        measured = None if gpu in self.blind else attained(gpu, name, values)
        return (values, where) if measured is None else (measured, ATTAINED)

    def _relatives(self, gpu: str, name: str) -> tuple[dict[str, float], str]:
        """What stands in for a fit of that family on that GPU."""
        lenders = self._lenders(gpu, name)
        if not lenders:
            return starts(family(name)), STARTS
        if lenders[0].gpu == gpu:
            return lenders[0].values, lenders[0].provenance or self.provenance
        return median_of({one.gpu: one.values for one in lenders}), DATASHEET

    def ranges(self, gpu: str, name: str) -> dict[str, tuple[float, float]]:
        """The shapes that the same fits have seen, from the least to the most of each column."""
        found: dict[str, tuple[float, float]] = {}
        for one in self._lenders(gpu, name):
            for column, (low, high) in one.ranges.items():
                known = found.get(column, (low, high))
                found[column] = min(known[0], low), max(known[1], high)
        return found

    def _lenders(self, gpu: str, name: str) -> list[Entry]:
        """The fits that `values` rests on: one of the GPU's own, or several of others."""
        own = self.entries.get((gpu, name))
        if own is not None:
            return [own]
        chip = device(gpu)
        others = [one for (_, kind), one in self.entries.items() if kind == name]
        same = [one for one in others if device(one.gpu).same_chip(chip)]
        if same:
            return same
        widest = max((len(one.groups) for one in others), default=0)
        wide = [one for one in others if len(one.groups) >= WIDE_SHARE * widest]
        near = [one for one in wide if device(one.gpu).arch == chip.arch]
        if near:
            return near
        borrowed = BORROWS.get(name)
        if borrowed is not None and ((gpu, borrowed) in self.entries or not others):
            return self._lenders(gpu, borrowed)
        return others

    def parameters(self, gpu: str) -> "Parameters":
        """Every family's parameters for that GPU, looked up on first use."""
        return Parameters(self, gpu)

    def prefill_kernel(self, gpu: str) -> str:
        """Which kind of prefill kernel fits that GPU better, or its own generation: `packed` or `by_head`.

        Kernels that pack are written for a generation; of one that nobody measured none is expected.
        """
        off, arch = {}, device(gpu).arch
        for kind in ("by_head", "packed"):
            lenders = self._lenders(gpu, f"prefill_attention:{kind}")
            lenders = [one for one in lenders if one.family.endswith(kind) and device(one.gpu).arch == arch]
            if lenders:
                off[kind] = sum(one.median_abs_error for one in lenders) / len(lenders)
        return min(off, key=lambda kind: off[kind]) if off else "by_head"


class Parameters(dict[str, Mapping[str, float]]):
    """Parameters by family of one GPU; a family is looked up when it is first asked for, those that its own
    microbenchmarks decided are there from the start.

    In a model, engines fuse the quantisation of activations into the kernel before: narrow linear layers keep the fixed
    cost of the 16-bit ones and lose the time of quantising that a lone micro-benchmark shows.
    """

    def __init__(self, calibration: Calibration, gpu: str) -> None:
        super().__init__()
        self._calibration, self._gpu = calibration, gpu
        for name in set(STANDS_FOR.values()):
            if (gpu, name) in calibration.entries:
                self[name] = calibration.entries[gpu, name].values

    def __missing__(self, name: str) -> Mapping[str, float]:
        values, _ = self._calibration.values(self._gpu, name)
        if name in ("linear:fp8", "linear:fp4"):
            wide, _ = self._calibration.values(self._gpu, "linear:bf16")
            values = values | {"fixed_us": wide["fixed_us"], "quantise_ps": 0.0, "one_row_us": 0.0}
        self[name] = values
        return values


def entry(gpu: str, name: str, fitted: Fitted, **about: Any) -> Entry:
    """A fit with what is to be said about it."""
    return Entry(gpu, name, fitted.values, fitted.relative_errors, fitted.rows, **about)


def to_json(calibration: Calibration) -> dict[str, Any]:
    """The data file of a calibration."""
    by_gpu: dict[str, Any] = {}
    for gpu, name in sorted(calibration.entries):
        by_gpu.setdefault(gpu, {})[name] = calibration.entries[gpu, name].as_json()
    found = {"format": "kvsim calibration 1", "provenance": calibration.provenance, "gpus": by_gpu}
    return found | ({"about": dict(calibration.about)} if calibration.about else {})


def read(path: Path) -> Calibration:
    """The calibration in a file that `kvsim calibrate fit` wrote. Raises InputError naming the file."""
    try:
        return of_json(json.loads(path.read_text("utf-8")))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); give a calibration that `kvsim calibrate fit` wrote"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: is no calibration ({error!r}); `kvsim calibrate fit` writes one") from None


def of_json(data: Mapping[str, Any]) -> Calibration:
    """The calibration that `to_json` wrote."""
    entries = {}
    for gpu, families in data["gpus"].items():
        for name, one in families.items():
            values = {key: float(each["value"]) for key, each in one["parameters"].items()}
            entries[gpu, name] = Entry(
                gpu,
                name,
                values,
                {key: each["standard_error"] / each["value"] for key, each in one["parameters"].items()},
                int(one["rows"]),
                {key: (float(low), float(high)) for key, (low, high) in one["fitted_range"].items()},
                one["source"],
                one["input_sha256"],
                float(one["median_abs_error"]),
                float(one["p90_abs_error"]),
                tuple(one["shapes"]),
            )
    return Calibration(entries, data["provenance"], about=data.get("about", {}))


def shipped() -> Calibration:
    """The calibrations that come with kvsim, fitted to published measurements."""
    text = files("kvsim.timing").joinpath("data/calibrations.json").read_text("utf-8")
    return of_json(json.loads(text))


def _short(value: float) -> float:
    return float(f"{value:.6g}")

"""Costs that are straight lines: bandwidths, copies, swapped blocks, allocations, launches, layers of a step.

    t = given + fixed + sum of (column x cost of one) + bytes / rate

The first term is there for steps alone: what their kernels take one after the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kvsim.timing.families.device import Device
from kvsim.timing.families.interface import MICROSECOND, Column, Parameter, Rows, Values
from kvsim.units import GIB

GB = 1e9

FIXED = Parameter("fixed_us", "us", 5.0, 0.001, 1e6, "a call takes at least", spread=3.0)
RATE = Parameter("rate_gb_s", "GB/s", 100.0, 0.01, 1e5, "at which bytes move", spread=3.0)


@dataclass(frozen=True, slots=True)
class Term:
    """What one unit of a column costs; `scale_s`: seconds of a column's unit at a parameter of 1."""

    parameter: Parameter
    column: str
    scale_s: float = MICROSECOND
    rate: bool = False
    """The parameter is a rate: the column is divided by it."""

    def seconds_of_one(self, values: Values) -> float:
        """Seconds of one unit of the column."""
        value = values[self.parameter.name]
        return self.scale_s / value if self.rate else self.scale_s * value


def _per(name: str, column: str, meaning: str, scale_s: float = MICROSECOND) -> Term:
    return Term(Parameter(name, "us", 1.0, 1e-6, 1e6, meaning, spread=5.0), column, scale_s)


BYTES = Term(RATE, "bytes", 1 / GB, rate=True)
KINDS: dict[str, tuple[Term, ...]] = {
    "hbm": (BYTES,),
    "copy": (BYTES,),
    "grow": (BYTES,),
    "swap_blocks": (_per("block_us", "blocks", "more for each block"), BYTES),
    "alloc": (_per("gib_us", "bytes", "more for each GiB", MICROSECOND / GIB),),
    "map": (_per("chunk_us", "chunks", "more for each chunk of physical memory"),),
    "launch": (_per("kernel_us", "kernels", "more for each kernel"),),
    "step": (_per("layer_us", "layers", "of a layer beside its kernels"),),
}
"""Terms of each kind beside the fixed cost; a step has none of these."""


class Line:
    """See the module. Columns: those of its kind's terms; of a `step`, `given` (seconds) too."""

    def __init__(self, name: str) -> None:
        kind = name.partition(":")[0]
        self.name = name
        self.terms = KINDS[kind]
        self.has_fixed = kind != "step"
        self.columns = (*(term.column for term in self.terms), *(() if self.has_fixed else ("given",)))

    @property
    def parameters(self) -> Sequence[Parameter]:
        """See `Family`."""
        return (*((FIXED,) if self.has_fixed else ()), *(term.parameter for term in self.terms))

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """See `Family`. The device does not matter."""
        first = rows[self.terms[0].column]
        total = np.full_like(first, MICROSECOND * values["fixed_us"]) if self.has_fixed else rows["given"]
        for term in self.terms:
            total = total + term.seconds_of_one(values) * rows[term.column]
        return np.asarray(total)

    def begins(self, rows: Rows, seconds: Column) -> Sequence[dict[str, float]]:
        """Where a fit begins: the least squares of relative errors, no cost below 0."""
        from scipy.optimize import nnls  # late: only fits need it

        given = np.zeros_like(seconds) if self.has_fixed else rows["given"]
        units = [np.full_like(seconds, MICROSECOND)] if self.has_fixed else []
        columns = np.stack([*units, *(term.scale_s * rows[term.column] for term in self.terms)], axis=1)
        size = columns.max(axis=0)
        found, _ = nnls(columns / size / seconds[:, None], (seconds - given) / seconds)
        rates = [False] * len(units) + [term.rate for term in self.terms]
        costs = np.maximum(found, 1e-9) / size
        begin = {
            parameter.name: float(1 / cost if rate else cost)
            for parameter, cost, rate in zip(self.parameters, costs, rates, strict=True)
        }
        return [begin]

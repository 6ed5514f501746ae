"""How long prompts and outputs are: laws of token counts by the name that a scenario gives them, one file each.

`empirical` is a law by its quantiles, `mixture` one of several laws, `continuous` holds the usual families; `joint`
draws prompt and output together, and `presets.law` knows recordings by name.
"""

from collections.abc import Mapping
from typing import Any

from kvsim.workload.lengths.constant import Constant
from kvsim.workload.lengths.continuous.exponential import Exponential
from kvsim.workload.lengths.continuous.gamma import Gamma
from kvsim.workload.lengths.continuous.lognormal import Lognormal
from kvsim.workload.lengths.continuous.pareto import Pareto
from kvsim.workload.lengths.continuous.weibull import Weibull
from kvsim.workload.lengths.empirical import Empirical
from kvsim.workload.lengths.interface import LONGEST, LengthDistribution, Tally
from kvsim.workload.lengths.joint import JointRows
from kvsim.workload.lengths.mixture import Mixture
from kvsim.workload.lengths.uniform import Uniform
from kvsim.workload.lengths.zipf import Zipf
from kvsim.workload.presets.law import Preset

LENGTHS: dict[str, type[LengthDistribution]] = {
    kind.distribution: kind
    for kind in (Constant, Uniform, Lognormal, Gamma, Weibull, Exponential, Pareto, Zipf, Empirical, Mixture, Preset)
}
"""Length distributions by the name that a scenario gives them."""


def law_of(spec: Mapping[str, Any]) -> LengthDistribution:
    """The law that a scenario writes as a mapping: its `distribution` and that one's parameters.

    ValueError naming the argument where a parameter is wrong, TypeError where one is missing or unknown.
    """
    parameters = {word: value for word, value in spec.items() if word != "distribution"}
    if "parts" in parameters:
        parameters["parts"] = [
            (part["weight"], law_of({word: value for word, value in part.items() if word != "weight"}))
            for part in parameters["parts"]
        ]
    return LENGTHS[spec["distribution"]](**parameters)


__all__ = [
    "LENGTHS",
    "LONGEST",
    "Constant",
    "Empirical",
    "Exponential",
    "Gamma",
    "JointRows",
    "LengthDistribution",
    "Lognormal",
    "Mixture",
    "Pareto",
    "Preset",
    "Tally",
    "Uniform",
    "Weibull",
    "Zipf",
    "law_of",
]

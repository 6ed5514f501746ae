"""Length distributions of a scenario."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from kvsim.scenario.schema.fields import Count, Part, Positive

_BOUNDS = ("min", "max", "outside")

DISTRIBUTIONS: dict[str, tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]] = {
    "constant": ((("value",),), ()),
    "uniform": ((("min",), ("max",)), ()),
    "lognormal": ((("mean", "median", "mu"), ("sigma",)), _BOUNDS),
    "gamma": ((("mean",), ("cv",)), _BOUNDS),
    "weibull": ((("mean", "scale"), ("shape",)), _BOUNDS),
    "exponential": ((("mean",),), _BOUNDS),
    "pareto": ((("alpha",), ("min",)), ("max", "outside")),
    "zipf": ((("theta",), ("min",), ("max",)), ()),
    "empirical": ((("quantiles",),), ("between", *_BOUNDS)),
    "mixture": ((("parts",),), _BOUNDS),
    "preset": ((("preset",), ("of",)), ("form", *_BOUNDS)),
}
"""Distribution to what it needs (exactly one key of each group) and what it may have (bounds that clip)."""


def _quantiles(value: object) -> list[list[float]]:
    """Return quantiles as [probability, length] pairs; evenly spaced where only lengths are given."""
    example = "for example [[0, 10], [0.5, 200], [1, 4000]], or lengths alone: [10, 200, 4000]"
    if not isinstance(value, list) or len(value) < 2:
        raise ValueError(f"{value!r} is not a list of two or more quantiles; write {example}")
    if all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
        pairs = [[index / (len(value) - 1), length] for index, length in enumerate(value)]
    else:
        pairs = value
    for pair in pairs:
        numbers = pair if isinstance(pair, list) else []
        if len(numbers) != 2 or any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers):
            raise ValueError(f"{pair!r} is not a pair of probability and length; write {example}")
        if not numbers[1] >= 1:
            raise ValueError(f"{numbers[1]} is not a length of 1 token or more; write {example}")
    probabilities, lengths = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if probabilities[0] != 0 or probabilities[-1] != 1 or sorted(set(probabilities)) != probabilities:
        raise ValueError(f"{probabilities} is no rising list of probabilities from 0 to 1; write {example}")
    if sorted(lengths) != lengths:
        raise ValueError(f"{lengths} is falling somewhere; quantiles must not fall, {example}")
    return [[float(probability), float(length)] for probability, length in pairs]


class LawSettings(Part):
    """A distribution of prompt or output lengths in tokens that is made of no others."""

    distribution: Literal[
        "constant",
        "uniform",
        "lognormal",
        "gamma",
        "weibull",
        "exponential",
        "pareto",
        "zipf",
        "empirical",
        "preset",
    ]
    value: Count | None = None
    """constant: the length."""
    min: Count | None = None
    """The shortest length: a parameter of uniform, pareto and zipf, a bound that clips for the others."""
    max: Count | None = None
    """The longest length, likewise."""
    outside: Literal["clip", "redraw"] | None = None
    """What becomes of a length outside the bounds: it is put on the bound, or drawn again; absent: clip."""
    mean: Annotated[float, Field(ge=1)] | None = None
    """lognormal, gamma, weibull, exponential: the mean before clipping and rounding."""
    median: Annotated[float, Field(ge=1)] | None = None
    """lognormal: the median, in place of the mean."""
    mu: float | None = None
    """lognormal: the mean of the logarithm, in place of the mean."""
    sigma: Annotated[float, Field(ge=0)] | None = None
    """lognormal: the standard deviation of the logarithm."""
    cv: Positive | None = None
    """gamma: standard deviation over mean."""
    shape: Positive | None = None
    """weibull: the shape; below 1 the tail is heavier than an exponential one."""
    scale: Positive | None = None
    """weibull: the length below which 63 % lie, in place of the mean."""
    alpha: Positive | None = None
    """pareto: the exponent of the tail; the chance to be longer than x is (min / x) to this power."""
    theta: Annotated[float, Field(ge=0)] | None = None
    """zipf: the exponent; length k has weight k^-theta."""
    quantiles: (
        Annotated[
            list[list[float]],
            BeforeValidator(_quantiles),
            WithJsonSchema(
                {
                    "type": "array",
                    "minItems": 2,
                    "items": {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]},
                }
            ),
        ]
        | None
    ) = None
    """empirical: [probability, length] pairs from 0 to 1, or evenly spaced lengths."""
    between: Literal["straight", "geometric"] | None = None
    """empirical: straight lines between the quantiles, or between their logarithms; absent: straight."""
    preset: Annotated[str, Field(min_length=1)] | None = None
    """preset: a name from `kvsim presets`."""
    of: Literal["prompt_tokens", "output_tokens", "new_tokens", "turns", "think_s"] | None = None
    """preset: the variable that was recorded."""
    form: Literal["quantiles", "lognormals"] | None = None
    """preset: the recorded quantiles, or three lognormal laws fitted to them; absent: quantiles."""


class PartSettings(LawSettings):
    """One of the laws of a mixture."""

    weight: Positive
    """Its weight among the parts."""


class LengthSettings(LawSettings):
    """A distribution of prompt or output lengths in tokens; a number alone is a constant length."""

    distribution: Literal[  # type: ignore[assignment]
        "constant",
        "uniform",
        "lognormal",
        "gamma",
        "weibull",
        "exponential",
        "pareto",
        "zipf",
        "empirical",
        "mixture",
        "preset",
    ]
    parts: Annotated[list[PartSettings], Field(min_length=1, max_length=100)] | None = None
    """mixture: its laws, each a distribution with its `weight`."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The law as `kvsim.workload.lengths.law_of` reads it."""
        return self.model_dump(exclude_none=True)

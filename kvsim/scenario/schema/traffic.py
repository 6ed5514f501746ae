"""The traffic side of a scenario: requests from a trace or from distributions, goals, and what is
measured."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from kvsim.scenario.schema.fields import Count, Duration, Part, Positive, Rate, Share, Timespan

DISTRIBUTIONS: dict[str, tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]] = {
    "constant": ((("value",),), ()),
    "uniform": ((("min",), ("max",)), ()),
    "lognormal": ((("mean", "median", "mu"), ("sigma",)), ("min", "max")),
    "gamma": ((("mean",), ("cv",)), ("min", "max")),
    "exponential": ((("mean",),), ("min", "max")),
    "zipf": ((("theta",), ("min",), ("max",)), ()),
    "empirical": ((("quantiles",),), ("min", "max")),
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


class LengthSettings(Part):
    """A distribution of prompt or output lengths in tokens; a number alone is a constant length."""

    distribution: Literal["constant", "uniform", "lognormal", "gamma", "exponential", "zipf", "empirical"]
    value: Count | None = None
    """constant: the length."""
    min: Count | None = None
    """The shortest length: a parameter of uniform and zipf, a bound that clips for the others."""
    max: Count | None = None
    """The longest length, likewise."""
    mean: Annotated[float, Field(ge=1)] | None = None
    """lognormal, gamma, exponential: the mean before clipping and rounding."""
    median: Annotated[float, Field(ge=1)] | None = None
    """lognormal: the median, in place of the mean."""
    mu: float | None = None
    """lognormal: the mean of the logarithm, in place of the mean."""
    sigma: Annotated[float, Field(ge=0)] | None = None
    """lognormal: the standard deviation of the logarithm."""
    cv: Positive | None = None
    """gamma: standard deviation over mean."""
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
    """empirical: [probability, length] pairs from 0 to 1, or evenly spaced lengths; straight lines between
    them."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that were given, as keyword arguments of the distribution."""
        return self.model_dump(exclude={"distribution"}, exclude_none=True)


class ArrivalSettings(Part):
    """How requests are spread in time, at `workload.rate`."""

    process: Literal["poisson", "constant", "gamma"] = "poisson"
    """The process of the gaps between arrivals."""
    cv: Positive | None = None
    """gamma: standard deviation over mean of the gaps; above 1 is burstier than poisson."""


class TimesOutput(Part):
    """`max_tokens` as a multiple of the true output: an oracle, since no client knows it."""

    times_output: Annotated[float, Field(gt=0, le=1e6)]
    """The multiple, rounded up to a whole token."""


class CancelSettings(Part):
    """Clients that lose patience."""

    after: Timespan
    """How long after its arrival a request is cancelled."""
    share: Share = 1.0
    """The share of the requests whose client does so."""


class BeamSettings(Part):
    """Candidates of a beam search as the memory sees them: dropped while others fork."""

    turnover: Share
    """The probability that a candidate other than the best is dropped after a token, and another forks in its place."""


class PrefixSettings(Part):
    """A system prompt at the start of every prompt, one of several; what follows it is like no other request's."""

    tokens: Count
    """Tokens of each system prompt. `workload.prompt_tokens` includes them, and is at least one more."""
    groups: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """How many different system prompts there are."""
    theta: Annotated[float, Field(ge=0)] = 0.0
    """How unevenly they are used: the k-th has weight k^-theta (Zipf's law); 0: evenly."""


def _kind_of_limit(value: object) -> str:
    if isinstance(value, dict | TimesOutput):
        return "multiple"
    return "word" if isinstance(value, str) else "fixed"


MaxTokens = Annotated[
    Annotated[Count, Tag("fixed")]
    | Annotated[Literal["model_limit"], Tag("word")]
    | Annotated[TimesOutput, Tag("multiple")],
    Discriminator(_kind_of_limit),
]


class WorkloadSettings(Part):
    """The requests: either from a `trace`, or generated from `rate`, `arrivals`, `prompt_tokens` and
    `output_tokens`."""

    trace: Annotated[str, Field(min_length=1)] | None = None
    """A packaged trace by name, or a file: relative to the scenario's file, or to the working folder from
    --set."""
    format: (
        Literal[
            "azure",
            "burstgpt",
            "vidur",
            "lengths",
            "splitwise",
            "blis",
            "mooncake",
            "bailian",
            "servegen-offline",
            "llmservingsim",
            "dynamo",
            "dynamo-agentic",
            "weka",
            "copilot",
            "tracelab",
            "applied-compute",
            "serving-benchmark",
            "otel",
            "sharegpt",
            "aiperf-turns",
            "aiperf-single-turn",
            "vllm-custom",
            "openai-batch",
            "table",
        ]
        | None
    ) = None
    """The trace's format; absent: known from how it begins."""
    on_bad_row: Literal["error", "drop"] = "error"
    """What happens at a row of the trace that cannot be used; dropped rows are counted."""
    sort: bool = False
    """Whether the rows are sorted by time first; unsorted rows are an error otherwise."""
    requests: Count | None = None
    """How many requests arrive; absent: all of the trace, or all until the horizon."""
    rate: Rate | None = None
    """The mean rate of arrivals; a trace's time is stretched to it."""
    arrivals: ArrivalSettings | None = None
    """The arrival process of generated traffic; absent: poisson."""
    prompt_tokens: LengthSettings | None = None
    """Prompt lengths of generated traffic."""
    output_tokens: LengthSettings | None = None
    """True output lengths of generated traffic; no policy sees them."""
    prefix: PrefixSettings | None = None
    """System prompts that generated traffic shares; absent: no two prompts begin alike."""
    samples: Annotated[int, Field(ge=1, le=1024)] = 1
    """Outputs asked of each request for the same prompt, each of a length of its own where lengths are drawn."""
    beam: BeamSettings | None = None
    """Beam search: the samples are its candidates, all of one length; absent: they are independent."""
    max_tokens: MaxTokens = "model_limit"
    """What the client allows: a number, the model's limit minus the prompt, or a multiple of the true
    output."""
    cancel: CancelSettings | None = None
    """Clients that cancel; absent: none."""
    priority: Annotated[int, Field(ge=-(1 << 63), le=(1 << 63) - 1)] = 0
    """The priority of every request."""
    tenant: str = ""
    """The tenant of every request."""


class SloSettings(Part):
    """The latency goals; a finished request that meets every given one counts for goodput."""

    ttft: Timespan | None = None
    """Arrival to first output token."""
    tpot: Timespan | None = None
    """Time per output token after the first."""
    e2e: Timespan | None = None
    """Arrival to last output token."""


class WindowSettings(Part):
    """The part of the run that is measured."""

    warmup: Duration = 0
    """What is left out at the start."""
    until: Literal["auto", "last_finish", "saturated"] = "auto"
    """The end: the last arrival (`auto`; the last finish where arrivals span under a tenth of the run), or as
    named."""

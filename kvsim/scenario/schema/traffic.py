"""The traffic side of a scenario: requests from a trace or from distributions, goals, and what is
measured."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from kvsim.scenario.schema.fields import Count, Duration, Part, Positive, Rate, Share, Timespan
from kvsim.scenario.schema.generated.arrivals import ArrivalSettings
from kvsim.scenario.schema.generated.layers import DatasetSettings, LayerSettings, PrefixSettings
from kvsim.scenario.schema.generated.lengths import LengthSettings
from kvsim.scenario.schema.generated.sessions import ClientSettings, SessionSettings
from kvsim.scenario.schema.recorded import Format, ReadSettings, ReshapeSettings


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


class TagSettings(Part):
    """A kind of client, with what its requests carry."""

    weight: Positive = 1.0
    """Its weight among the kinds; of sessions, each is of one kind."""
    tenant: str = ""
    """The tenant of its requests."""
    priority: Annotated[int, Field(ge=-(1 << 63), le=(1 << 63) - 1)] = 0
    """Their priority."""
    slo_class: str = ""
    """Their class of service."""
    max_tokens: MaxTokens | None = None
    """What it allows; absent: as `workload.max_tokens`."""


class WarmSettings(Part):
    """What the prefix cache holds when the run begins."""

    requests: Count | None = None
    """The prompts and outputs of so many requests from the front of the traffic, which do not arrive: the others come
    as early as if the last of these had come at the start. Not in closed loops."""
    shared: bool = False
    """The texts of `prefix`, `layers` or `dataset` that prompts begin with, as many as fit, the commonest used last."""


class WorkloadSettings(Part):
    """The requests: either from a `trace`, or generated from `rate`, `arrivals`, `prompt_tokens` and
    `output_tokens`."""

    trace: Annotated[str, Field(min_length=1)] | None = None
    """A packaged trace by name, or a file: relative to the scenario's file, or to the working folder from
    --set."""
    format: Format | None = None
    """The trace's format; absent: known from how it begins."""
    on_bad_row: Literal["error", "drop"] = "error"
    """What happens at a row of the trace that cannot be used; dropped rows are counted."""
    read: ReadSettings | None = None
    """What the trace's file cannot say of itself."""
    sort: bool = False
    """Whether the rows are sorted by time first; unsorted rows are an error otherwise."""
    requests: Count | None = None
    """How many requests arrive; absent: all of the trace, or all until the horizon."""
    rate: Rate | None = None
    """The mean rate of arrivals, of `sessions` that of sessions; a trace's time is stretched to it (a time warp), with
    sessions in a closed loop only from the beginning of one to that of the next. Absent: that of `arrivals`, if it has
    one."""
    preset: Annotated[str, Field(min_length=1)] | None = None
    """Lengths as recorded somewhere, by a name from `kvsim presets`; the keys below change parts of it."""
    lengths_of: Annotated[str, Field(min_length=1)] | None = None
    """A trace whose rows give prompt and output lengths together, each row as likely as the others."""
    arrivals: ArrivalSettings | None = None
    """The arrival process of generated traffic (absent: poisson), or of a trace's sessions (absent: as recorded)."""
    prompt_tokens: LengthSettings | None = None
    """Prompt lengths of generated traffic."""
    output_tokens: LengthSettings | None = None
    """True output lengths of generated traffic; no policy sees them."""
    prefix: PrefixSettings | None = None
    """System prompts that generated traffic shares; absent: no two prompts begin alike."""
    layers: Annotated[list[LayerSettings], Field(min_length=1, max_length=100)] | None = None
    """Texts that prompts share, in layers, in place of `prefix`; `prompt_tokens` includes them."""
    dataset: DatasetSettings | None = None
    """Shared prefixes as a load generator says them, by its name or with its options."""
    sessions: SessionSettings | None = None
    """Requests that follow one another, drawn or as the trace recorded them; absent: each stands alone, and those of a
    trace come at their times."""
    clients: ClientSettings | None = None
    """A closed loop of clients, in place of `rate` and `arrivals`; beside a trace each sends its sessions one after the
    other: of N clients the k-th has session k, k + N and so on."""
    mix: Annotated[list[TagSettings], Field(min_length=1, max_length=1000)] | None = None
    """Kinds of client, in place of `priority` and `tenant`."""
    reshape: ReshapeSettings | None = None
    """What is made of a trace, or of generated requests that stand alone; absent: nothing."""
    warm: WarmSettings | None = None
    """What the prefix cache holds when the run begins; absent: nothing, a cold start."""
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


class GoalSettings(Part):
    """Latency goals."""

    ttft: Timespan | None = None
    """Arrival to first output token."""
    tpot: Timespan | None = None
    """Time per output token after the first."""
    e2e: Timespan | None = None
    """Arrival to last output token."""


class SloSettings(GoalSettings):
    """The latency goals; a finished request that meets every given one counts for goodput."""

    classes: Annotated[dict[Annotated[str, Field(min_length=1)], GoalSettings], Field(max_length=100)] | None = None
    """Goals of classes of service (`slo_class` of `workload.mix`, or of a trace), by name, in place of the goals above
    where given; the summary then tells each class apart."""


class WindowSettings(Part):
    """The part of the run that is measured."""

    warmup: Duration = 0
    """What is left out at the start."""
    until: Literal["auto", "last_finish", "saturated"] = "auto"
    """The end: the last arrival (`auto`; the last finish where arrivals span under a tenth of the run), or as
    named."""

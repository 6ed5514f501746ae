"""Sessions, agents, clients and kinds of client, in a scenario."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from kvsim.scenario.schema.fields import Count, Duration, Part, Positive, Share, Timespan
from kvsim.scenario.schema.generated.lengths import LengthSettings

_PS_PER_MS = 10**9

_THINKS: dict[str, tuple[tuple[str, ...], ...]] = {
    "constant": (("value",),),
    "uniform": (("min",), ("max",)),
    "lognormal": (("mean", "median"), ("sigma",)),
    "gamma": (("mean",), ("cv",)),
    "weibull": (("mean",), ("shape",)),
    "exponential": (("mean",),),
    "preset": (("preset",),),
    "recorded": (),
}
"""Distribution of think times to what it needs: exactly one key of each group."""


class ThinkSettings(Part):
    """A pause before the next turn; a duration alone is a constant one."""

    distribution: Literal[
        "constant", "uniform", "lognormal", "gamma", "weibull", "exponential", "preset", "recorded"
    ] = "constant"
    """The law of the pauses; `recorded`: those of the trace, within `min` and `max`."""
    value: Duration | None = None
    """constant: the pause."""
    mean: Timespan | None = None
    """lognormal, gamma, weibull, exponential: the mean."""
    median: Timespan | None = None
    """lognormal: the median, in place of the mean."""
    sigma: Annotated[float, Field(ge=0)] | None = None
    """lognormal: the standard deviation of the logarithm."""
    cv: Positive | None = None
    """gamma: standard deviation over mean."""
    shape: Positive | None = None
    """weibull: the shape."""
    preset: Annotated[str, Field(min_length=1)] | None = None
    """preset: a name from `kvsim presets` that tells of think times."""
    min: Timespan | None = None
    """The shortest pause: of uniform, and a bound for the others."""
    max: Timespan | None = None
    """The longest pause, likewise."""

    @model_validator(mode="after")
    def _goes_together(self) -> "ThinkSettings":
        given = set(self.model_dump(exclude={"distribution"}, exclude_none=True))
        for group in _THINKS[self.distribution]:
            if len(given & set(group)) != 1:
                raise ValueError(f"{self.distribution} pauses need {' or '.join(group)}, once")
        known = {word for group in _THINKS[self.distribution] for word in group} | {"min", "max"}
        if given - known or (self.distribution == "constant" and len(given) > 1):
            word = sorted(given - (known - {"min", "max"} if self.distribution == "constant" else known))[0]
            raise ValueError(f"{word} means nothing to {self.distribution} pauses; remove it")
        return self

    @property
    def law(self) -> dict[str, Any] | None:
        """The law in milliseconds, as `kvsim.workload.lengths.law_of` reads it; None: no pause at all."""
        if self.value == 0:
            return None
        given = self.model_dump(exclude_none=True)
        for key in ("value", "min", "max"):
            if key in given:
                given[key] = max(1, round(given[key] / _PS_PER_MS))
        for key in ("mean", "median"):
            if key in given:
                given[key] /= _PS_PER_MS
        return given | ({"of": "think_s"} if self.distribution == "preset" else {})


class HistorySettings(Part):
    """What later prompts still hold of earlier turns."""

    keep: Literal["whole", "window", "truncate", "compact"] = "whole"
    """All of it; the last `turns` turns; whole turns from the end up to `tokens` tokens; or all of it until it is
    more than `tokens`, and then a summary of `summary_tokens`."""
    turns: Count | None = None
    """window: how many turns."""
    tokens: Count | None = None
    """truncate, compact: the most tokens of history."""
    summary_tokens: Count | None = None
    """compact: tokens of the summary."""

    @model_validator(mode="after")
    def _goes_together(self) -> "HistorySettings":
        needed = {"whole": set(), "window": {"turns"}, "truncate": {"tokens"}, "compact": {"tokens", "summary_tokens"}}
        given = set(self.model_dump(exclude={"keep"}, exclude_none=True))
        for word in sorted(needed[self.keep] ^ given):
            problem = "is needed by" if word in needed[self.keep] else "means nothing to"
            raise ValueError(f"{word} {problem} a history of keep: {self.keep}")
        return self

    @property
    def parameters(self) -> dict[str, int]:
        """What the rule needs."""
        return self.model_dump(exclude={"keep"}, exclude_none=True)


class AgentSettings(Part):
    """Agents that a turn calls; each is a session of its own, and the next turn waits for all of them."""

    share: Share
    """The share of the turns that call agents; the last turn of a session calls none."""
    count: LengthSettings | None = None
    """How many at a time; absent: one."""
    turns: LengthSettings | None = None
    """The turns of each; absent: one."""
    relation: Literal["fork", "spawn"] = "fork"
    """Whether an agent inherits the conversation, or begins anew behind the shared layers."""
    join: bool = True
    """Whether the next turn takes their last answers in."""


class FailureSettings(Part):
    """What a turn that was rejected, cancelled or aborted does to its session; needs a closed loop."""

    then: Literal["end", "go-on", "retry"] = "end"
    """The session is over, goes on with its next turn, or tries the same turn again."""
    back_off: Timespan = 10**12
    """The wait before that; twice as long with each further attempt."""
    retries: Annotated[int, Field(ge=1, le=1000)] = 3
    """retry: how often, before the session is over."""


class SessionSettings(Part):
    """Requests that follow one another, each with what was said before it. `workload.rate` is then that of sessions.

    Beside a trace: the sessions that it recorded, with their agents, tags and cancellations; of these keys it takes
    `loop`, `think` and `on_failure`.
    """

    loop: Literal["closed", "open"] = "closed"
    """Whether a turn comes after the answer to the one before and a pause, or at its time whatever happens."""
    turns: LengthSettings | None = None
    """How many turns a session has; absent: one, or what `workload.preset` tells."""
    new_tokens: LengthSettings | None = None
    """What each turn after the first adds to the prompt; absent: as `workload.prompt_tokens`."""
    think: ThinkSettings | None = None
    """The pause before a turn: from the end of the one before, or from its arrival where the loop is open. Absent:
    none; of a trace as recorded, or where it has no pauses, what lies between an end and the next start, or if it tells
    no ends, what is left of the time from start to start when the answer is there."""
    history: HistorySettings = Field(default_factory=HistorySettings)
    """What later prompts still hold of earlier turns."""
    agents: AgentSettings | None = None
    """Agents that turns call; absent: none."""
    on_failure: FailureSettings = Field(default_factory=FailureSettings)
    """What a failed turn does to its session."""


class ClientSettings(Part):
    """A closed loop: so many clients, each of which sends again when it has its answer and has thought."""

    count: Annotated[int, Field(ge=1, le=1_000_000)]
    """How many clients."""
    think: ThinkSettings | None = None
    """The pause before a client's next request or session; absent: none."""
    ramp: Duration = 0
    """The time over which the clients begin, evenly."""

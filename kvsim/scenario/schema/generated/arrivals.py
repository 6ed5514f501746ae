"""Arrival processes of a scenario."""

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from kvsim.request import PS_PER_S
from kvsim.scenario.schema.fields import Duration, Part, Positive, Timespan
from kvsim.units import parse_rate, rate_text

PROCESSES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "poisson": ((), ()),
    "constant": ((), ()),
    "gamma": (("cv",), ()),
    "weibull": (("cv",), ()),
    "mmpp": (("rates", "sojourns"), ("moves", "scale", "cv")),
    "on-off": (("on", "off"), ("cv",)),
    "diurnal": (("profile",), ("noise", "day", "start_hour", "cv")),
    "spikes": (("factor", "every", "spike"), ("first", "cv")),
    "ramp": (("ramp",), ("start", "cv")),
    "stages": (("stages",), ("repeat", "cv")),
    "clients": (("clients",), ("theta", "each", "cv")),
}
"""Arrival process to the keys that it needs, and those that it may have."""

Process = Literal[
    "poisson",
    "constant",
    "gamma",
    "weibull",
    "mmpp",
    "on-off",
    "diurnal",
    "spikes",
    "ramp",
    "stages",
    "clients",
    "steady-chat",
    "bursty-code",
    "mooncake",
    "quiet-then-busy",
    "diurnal-large",
    "diurnal-mid",
    "diurnal-small",
    "diurnal-reasoning",
    "diurnal-images",
    "client-mix",
]

PRESETS = tuple(name for name in get_args(Process) if name not in PROCESSES)
"""Processes as recorded, by name; a test holds them to the data file."""

OWN_RATE = ("mmpp", "stages", *PRESETS)
"""Processes that bring a rate along, which `workload.rate` changes."""


def _rate_from_0(value: object) -> float:
    """A rate that may be none at all, `0/s`."""
    if isinstance(value, str) and re.match(r"\s*0+(\.0*)?\s*/", value):
        parse_rate("1/" + value.partition("/")[2])
        return 0.0
    return parse_rate(value)


RateFrom0 = Annotated[
    float,
    BeforeValidator(_rate_from_0),
    PlainSerializer(rate_text, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9.]+\s*/ *(s|min|h|d)\s*$", "examples": ["8/s", "0/s"]}),
]
"""A rate from 0 on, written `8/s`; held per second."""

FromZero = Annotated[float, Field(ge=0)]


class StageSettings(Part):
    """A stage of planned traffic."""

    rate: RateFrom0
    """The mean rate in it, or at its beginning."""
    to: RateFrom0 | None = None
    """The rate at its end, reached in a straight line; absent: as at its beginning."""
    duration: Timespan
    """How long it lasts."""


class ArrivalSettings(Part):
    """How requests are spread in time, at `workload.rate`."""

    process: Process = "poisson"
    """The process of the arrivals, or the name of a recorded one from `kvsim presets`."""
    cv: Positive | None = None
    """gamma, weibull, clients: standard deviation over mean of the gaps; above 1 is burstier than poisson. Processes
    of changing rate: that of the gaps while the rate is steady; absent: 1."""
    rates: list[RateFrom0] | None = None
    """mmpp: the rate in each state."""
    sojourns: list[Timespan] | None = None
    """mmpp: the mean duration of each state."""
    moves: list[list[float]] | None = None
    """mmpp: by state the probabilities of the states that may follow it; absent: all alike."""
    scale: Literal["time", "count"] | None = None
    """mmpp and its presets: whether another rate shortens the states (`time`) or fills them (`count`); absent: time."""
    on: Timespan | None = None
    """on-off: the mean duration of a burst."""
    off: Timespan | None = None
    """on-off: the mean pause between bursts."""
    profile: Annotated[list[FromZero], Field(min_length=24, max_length=24)] | None = None
    """diurnal: the 24 hours of a day, relative to one another."""
    noise: FromZero | None = None
    """diurnal: standard deviation over mean of a factor drawn for each hour; absent: 0."""
    day: Timespan | None = None
    """diurnal: how long a day is; absent: 24h."""
    start_hour: Annotated[float, Field(ge=0, lt=24)] | None = None
    """diurnal: the hour at which the run begins; absent: 0."""
    factor: FromZero | None = None
    """spikes: how many times the usual rate."""
    every: Timespan | None = None
    """spikes: from the start of one to that of the next."""
    spike: Timespan | None = None
    """spikes: how long each lasts."""
    first: Duration | None = None
    """spikes: when the first one begins; absent: one pause after the start."""
    ramp: Timespan | None = None
    """ramp: how long it takes to the full rate."""
    start: FromZero | None = None
    """ramp: the share of the rate at which it begins; absent: 0."""
    stages: Annotated[list[StageSettings], Field(min_length=1, max_length=10_000)] | None = None
    """stages: one after the other."""
    repeat: bool | None = None
    """stages: whether they begin again after the last one; absent: arrivals end."""
    clients: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """clients: how many there are."""
    theta: FromZero | None = None
    """clients: the k-th sends a share proportional to k^-theta; absent: 1."""
    each: Literal["poisson", "gamma", "weibull"] | None = None
    """clients: the process of each; absent: poisson."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that were given, as keyword arguments of the process: durations in seconds."""
        given = self.model_dump(exclude={"process"}, exclude_none=True)
        for key in ("on", "off", "day", "every", "spike", "first", "ramp"):
            if key in given:
                given[f"{key}_s"] = given.pop(key) / PS_PER_S
        if "sojourns" in given:
            given["sojourns_s"] = [duration_ps / PS_PER_S for duration_ps in given.pop("sojourns")]
        for stage in given.get("stages", ()):
            stage["duration_s"] = stage.pop("duration") / PS_PER_S
        return given

"""Goals as people write them, `ttft_p99<1s, rejected<0.1%`, and whether the metrics of a run meet them."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvsim.errors import InputError
from kvsim.metrics.histogram import PERCENTILES
from kvsim.scenario.messages import suggestion
from kvsim.scenario.schema.traffic import SloSettings
from kvsim.units import duration_text, parse_seconds, parse_share

LATENCIES = ("ttft", "tpot", "itl", "e2e", "queue", "prefill")
STATISTICS = ("mean", *(f"p{percent}" for percent in PERCENTILES), "max")
ENDS = ("rejected", "aborted", "cancelled", "unfinished")
"""Ways for a request to end that a goal limits the share of."""
GOODPUT = "goodput"
"""Of the requests that finish, the share that meets every goal under the scenario's `slo`."""

NAMES = (*(f"{latency}_{statistic}" for latency in LATENCIES for statistic in STATISTICS), *ENDS, GOODPUT)

_SIGN = re.compile(r"[<>]")
_FORM = re.compile(r"\s*(\w+)\s*([<>])=?\s*(\S.*?)\s*")


@dataclass(frozen=True)
class Goal:
    """One of them: `name` stays below `limit`, or above it where `above` is set. Seconds, or a share."""

    name: str
    limit: float
    above: bool
    text: str

    def value(self, metrics: Mapping[str, Any]) -> float | None:
        """What the goal is about, in a run's metrics; None where it does not exist, as where nobody finished."""
        if self.name == GOODPUT:
            good, finished = metrics["goodput_per_s"], metrics["requests_per_s"]
            return None if good is None or not finished else float(good / finished)
        if self.name in ENDS:
            return metrics[self.name] / metrics["arrived"] if metrics["arrived"] else None
        latency, _, statistic = self.name.rpartition("_")
        spread = metrics[f"{latency}_s"]
        return None if spread is None else float(spread[statistic])

    def missed_by(self, value: float | None) -> float:
        """By which share of the limit the value is on the wrong side of it: 0 where it meets it, infinite for none."""
        if value is None:
            return math.inf
        return max(0.0, (self.limit - value if self.above else value - self.limit) / self.limit)

    def meets(self, value: float | None) -> bool:
        """Whether this value meets the goal; none does not: nobody was served."""
        return value is not None and (value > self.limit if self.above else value < self.limit)


def goals_of(text: str) -> list[Goal]:
    """The goals of a text, separated by commas. Raises InputError with what is wrong with the first that is none."""
    goals: list[Goal] = []
    for part in text.split(","):
        if not part.strip():
            continue
        goal = _goal(part)
        if any(goal.name == other.name and goal.above == other.above for other in goals):
            raise InputError(f"--slo: {goal.name}: is given twice; keep one of the two")
        goals.append(goal)
    if not goals:
        raise InputError("--slo: is empty; write, for example, ttft_p99<1s,rejected<0.1%")
    return goals


PER_REQUEST = "p99"
"""A limit under `slo:` is one for each request; as a goal of all of them it is that of this percentile."""

OF_CLASSES = "goodput>99%"
"""The same where classes of service have limits of their own."""


def goals_of_slo(slo: SloSettings) -> list[Goal]:
    """The goals that a scenario's own `slo` amounts to; InputError where it sets none."""
    if slo.classes:
        return goals_of(OF_CLASSES)
    limits = {"ttft": slo.ttft, "tpot": slo.tpot, "e2e": slo.e2e}
    text = ",".join(f"{name}_{PER_REQUEST}<{duration_text(limit)}" for name, limit in limits.items() if limit)
    if not text:
        raise InputError("--slo: is missing, and the scenario has no slo; write, for example, --slo 'ttft_p99<1s'")
    return goals_of(text)


def check_goodput(goals: Sequence[Goal], slo: SloSettings) -> None:
    """InputError where a goal is about goodput, and nothing says what is good."""
    if any(goal.name == GOODPUT for goal in goals) and not (slo.ttft or slo.tpot or slo.e2e or slo.classes):
        raise InputError(
            f"--slo: {GOODPUT}: is the share of requests within the scenario's slo, and it has none; "
            "add --set slo.ttft=1s, or write ttft_p99<1s"
        )


def _goal(part: str) -> Goal:
    form = _FORM.fullmatch(part)
    if form is not None and len(_SIGN.findall(part)) > 1:
        raise InputError(f"--slo: {part.strip()!r} is more than one goal; separate goals by commas")
    if form is None:
        raise InputError(f"--slo: {part.strip()!r} is no goal; write NAME<LIMIT, for example ttft_p99<1s")
    name, sign, limit = form[1], form[2], form[3]
    if name not in NAMES:
        raise InputError(f"--slo: {name}: is nothing that goals are about; {suggestion(name, NAMES)}")
    above = sign == ">"
    if above != (name == GOODPUT):
        right = f"{name}>95%" if name == GOODPUT else f"{name}<{limit}"
        raise InputError(f"--slo: {part.strip()}: asks for the worse; write {right}")
    is_share = name in (*ENDS, GOODPUT)
    try:
        number = parse_share(limit) if is_share else parse_seconds(limit)
    except ValueError as error:
        raise InputError(f"--slo: {name}: {error}") from None
    if not number and not above:
        raise InputError(f"--slo: {name}: nothing is below {limit}; write a limit above 0")
    return Goal(name, number, above, f"{name}{sign}{limit}")


def unmet(goals: Sequence[Goal], values: Sequence[float | None]) -> list[Goal]:
    """Those of the goals that their values do not meet."""
    return [goal for goal, value in zip(goals, values, strict=True) if not goal.meets(value)]

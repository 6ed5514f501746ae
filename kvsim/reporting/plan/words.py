"""A plan in words: the answer in a sentence, and what to say of each candidate."""

from collections.abc import Sequence

from kvsim.reporting.finding import shared_by, sources_of, three_digits
from kvsim.reporting.front import front
from kvsim.study.notes import LEFT_RANGE, left_range_together
from kvsim.study.planning.goals import LATENCIES, Goal
from kvsim.study.planning.plan import SAFETY, Plan, Planned
from kvsim.study.planning.rates.sustained import LEAST_STAYS, Trial
from kvsim.study.replication.trust import listed
from kvsim.timing.fitted import HERE
from kvsim.units import format_rate

_IN_MS = ("tpot", "itl")
"""Latencies that people have in milliseconds."""


def answer(plan: Plan) -> str:
    """The answer in one or a few sentences: what meets the goals at least cost, or what comes nearest."""
    asked = f"{goals_text(plan.goals)}{_at_rate(plan)}"
    fewest, cheapest = plan.fewest, plan.cheapest
    if fewest is None or cheapest is None:
        return f"No candidate meets {asked}. {_nearest(plan)}"
    if fewest is cheapest:
        how = "with the fewest GPUs" + (" and at the lowest cost" if _has_price(cheapest) else "")
        said = f"{setup(fewest)} meets {asked} {how}: {_costs(fewest)}."
    else:
        said = f"Cheapest to meet {asked}: {setup(cheapest)}, {_costs(cheapest)}. Fewest GPUs: {setup(fewest)}, "
        said += f"{_costs(fewest)}."
    by_token, told = plan.cheapest_by_token, (fewest, cheapest)
    # At equal cost an hour tokens of one traffic differ by what is refused alone.
    if by_token is not None and by_token.cost("usd_per_hour") not in (one.cost("usd_per_hour") for one in told):
        said += f" Cheapest by token: {setup(by_token)}, {_costs(by_token)}."
    return " ".join([said, *_verified(plan)])


def setup(one: Planned) -> str:
    """A candidate with its replicas: `H100-SXM TP 2`, `3 x H100-SXM TP 2`."""
    return one.candidate.name if one.replicas in (None, 1) else f"{one.replicas} x {one.candidate.name}"


def goals_text(goals: Sequence[Goal]) -> str:
    """The goals as they were written."""
    return ", ".join(goal.text for goal in goals)


def goal_label(goal: Goal) -> tuple[str, str, float]:
    """What people call what the goal is about, its unit, and by what its value is multiplied for that."""
    latency, _, statistic = goal.name.rpartition("_")
    if latency in LATENCIES:
        name = latency.upper() if latency not in ("queue", "prefill") else latency
        return f"{name} {statistic}", "ms" if latency in _IN_MS else "s", 1000.0 if latency in _IN_MS else 1.0
    return goal.name, "%", 100.0


def value_text(goal: Goal, value: float | None) -> str:
    """The value of a goal with its unit."""
    label, unit, scale = goal_label(goal)
    return f"{label} {'none' if value is None else f'{three_digits(value * scale)} {unit}'}"


def latency_goal(plan: Plan) -> int | None:
    """The place of the first goal that is about a latency; None where none is."""
    return next((at for at, goal in enumerate(plan.goals) if goal.name.rpartition("_")[0] in LATENCIES), None)


def latency(plan: Plan, one: Planned) -> tuple[str, float | None]:
    """The latency by which candidates are told apart, and the candidate's, in seconds: that of the first such goal."""
    at = latency_goal(plan)
    if at is None:
        return "TTFT p99", None if one.trial is None else one.trial.mean("ttft_s", "p99")
    return goal_label(plan.goals[at])[0], None if one.trial is None else one.trial.values[at]


def price(plan: Plan, one: Planned) -> float | None:
    """What the candidate costs: US dollars an hour, or GPUs where some price is not known."""
    by_money = all(_has_price(other) for other in plan.rows if other.trial is not None)
    return one.cost("usd_per_hour") if by_money else one.cost("gpus")


def price_label(plan: Plan) -> str:
    """What `price` is."""
    return "US dollars an hour" if all(_has_price(one) for one in plan.rows if one.trial is not None) else "GPUs"


def best(plan: Plan) -> list[Planned]:
    """Those whose queue does not grow and that no other beats in both cost and latency."""
    there = [one for one in plan.rows if one.trial is not None and not one.trial.saturated]
    return [there[place] for place in front([(price(plan, one), latency(plan, one)[1]) for one in there])]


def advice_lines(plan: Plan) -> list[str]:
    """What binds each candidate that was simulated, and what to change next; alike ones together."""
    said: dict[tuple[str, str], list[str]] = {}
    for one in plan.rows:
        if one.advice is not None:
            said.setdefault((one.advice.binds, one.advice.next_change), []).append(one.candidate.name)
    return [f"{', '.join(names)}: {binds} binds. {change}" for (binds, change), names in said.items()]


def notes(plan: Plan) -> list[str]:
    """What is not simulated and why, what is not to be trusted, and what else the reader should know."""
    out = [f"{one.candidate.name} is out: {one.out.rstrip('.')}." for one in plan.rows if one.out is not None]
    return [*out, *_too_short(plan), *_left_range(plan), *plan.notes]


def _left_range(plan: Plan) -> list[str]:
    """Where the step times of candidates are extrapolated: under the traffic, or else at the most that they bear."""
    told = {}
    for one in _tried(plan):
        trials = [trial for trial in (_best_trial(one), one.trial) if trial is not None]
        notes = [note for trial in trials for note in trial.notes if note.startswith(LEFT_RANGE)]
        told[one.candidate.name] = list({note.partition(HERE)[0]: note for note in notes}.values())
    return left_range_together(told)


def too_short(one: Planned) -> float | None:
    """How many times as many requests it takes for a steady stretch to show; None where one shows, or nothing ran."""
    best = _best_trial(one)
    stays = min((trial.stays for trial in (one.trial, best) if trial is not None), default=None)
    return None if stays is None or stays >= LEAST_STAYS else LEAST_STAYS / max(stays, 0.01)


def _too_short(plan: Plan) -> list[str]:
    lacks = {setup(one): times for one in plan.rows if (times := too_short(one)) is not None}
    if not lacks:
        return []
    return [
        f"What {listed(lacks)} can bear (marked ?) is not to be trusted: some of the runs last less than {LEAST_STAYS} "
        f"times as long as a request stays. Simulate {three_digits(max(lacks.values()))} times as many requests "
        "(workload.requests)."
    ]


COSTS = (
    "US dollars an hour over what the traffic sent comes to, its rate times the mean of the requests that are served, "
    "whatever the measured window; where the queue grows, or requests wait for answers, over what came out in that "
    "window"
)
"""What costs by the million are of."""


def sources(plan: Plan) -> list[str]:
    """Where the numbers come from and how far latencies are expected to be off, each line once; one that does not hold
    for all candidates names those it holds for."""
    pairs = zip(plan.provenance, plan.expected_errors, strict=True)
    lines = [sources_of(_without_pool(provenance), error) for provenance, error in pairs]
    return shared_by([one.candidate.name for one in _tried(plan)], lines)


def how(plan: Plan) -> str:
    """How the answer was found, in a sentence."""
    several = f"{plan.replications} replications on common random numbers"
    runs = several if plan.replications > 1 else "one run"
    return (
        f"screened (out: more than {SAFETY:g} times below the rate), then simulated: {runs} a trial, seed {plan.seed}; "
        f"largest rates to {plan.tolerance:.0%}"
    )


def _tried(plan: Plan) -> list[Planned]:
    """Those that were simulated, in their order."""
    return [one for one in plan.rows if one.trial is not None]


def _best_trial(one: Planned) -> Trial | None:
    """At the largest rate that it bears."""
    return None if one.sustained is None else one.sustained.best


def _without_pool(provenance: object) -> dict[str, str]:
    """Every candidate has a pool of its own, which stands in the table of candidates."""
    assert isinstance(provenance, dict)
    return {family: source for family, source in provenance.items() if family != "pool"}


def _at_rate(plan: Plan) -> str:
    rate = plan.traffic.rate_per_s
    return "" if rate is None else f" at {format_rate(rate).replace(' /s', '/s')}"


def _has_price(one: Planned) -> bool:
    return one.cost("usd_per_hour") is not None


def _costs(one: Planned) -> str:
    said = [f"{one.gpus} GPU{'' if one.gpus == 1 else 's'}"]
    hour, tokens = one.cost("usd_per_hour"), one.cost("usd_per_million_output_tokens")
    if hour is not None:
        said.append(f"{three_digits(hour)} USD/h")
    if tokens is not None:
        said.append(f"{three_digits(tokens)} USD per million output tokens")
    return ", ".join(said)


def _verified(plan: Plan) -> list[str]:
    """Whether the best held on fresh seeds; nothing where there are none."""
    if not plan.verified:
        return []
    several = len(plan.verified) > 1
    if all(trial.borne for trial in plan.verified.values()):
        return [f"{'All of them' if several else 'It'} held on fresh seeds."]
    said = []
    for name, trial in plan.verified.items():
        held = "held" if trial.borne else "did not hold"
        why = "" if trial.borne else f": {_misses(plan.goals, trial)}; leave more headroom"
        said.append(f"{name if several else 'It'} {held} on fresh seeds{why}.")
    return said


def _nearest(plan: Plan) -> str:
    one = plan.nearest
    if one is None or one.trial is None:
        return "None was simulated: none can hold the model, or all screen far below the rate."
    return f"Nearest: {setup(one)} ({_costs(one)}): {_misses(plan.goals, one.trial)}."


def _misses(goals: Sequence[Goal], trial: Trial) -> str:
    """By how much the goals are missed, and whether the queue grows, or the runs are too short to tell."""
    said = [
        f"misses {goal.text} by {goal.missed_by(value):.0%} ({value_text(goal, value)})"
        if value is not None
        else f"has no {goal_label(goal)[0]}: nobody was served"
        for goal, value in zip(goals, trial.values, strict=True)
        if goal in trial.unmet
    ]
    if trial.saturated:
        said.append("its queue grows" if trial.growth is not None else "arrivals are over long before the work is")
    return ", ".join(said)

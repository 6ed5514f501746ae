"""A plan and a cliff as one object for machines."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvsim.metrics.result import SCHEMA
from kvsim.reporting.plan.cliff_words import cliff_answer
from kvsim.reporting.plan.words import COSTS, answer, best, notes, sources, too_short
from kvsim.study.planning.cliff import Cliff
from kvsim.study.planning.goals import Goal
from kvsim.study.planning.plan import Plan, Planned
from kvsim.study.planning.rates.sustained import Trial
from kvsim.version import __version__


def plan_summary(plan: Plan) -> dict[str, Any]:
    """The object that `kvsim plan --json` prints and `plan.json` holds."""
    nearest, front = plan.nearest, best(plan)
    return {
        "schema": SCHEMA,
        "scenario": plan.name,
        "version": __version__,
        "seed": plan.seed,
        "replications": plan.replications,
        "tolerance": plan.tolerance,
        "goals": [
            {"name": goal.name, "limit": goal.limit, "above": goal.above, "text": goal.text} for goal in plan.goals
        ],
        "rate_per_s": plan.traffic.rate_per_s,
        "answer": answer(plan),
        "costs_are": COSTS,
        "meets": plan.fewest is not None,
        "fewest_gpus": _named(plan.fewest),
        "cheapest_per_hour": _named(plan.cheapest),
        "cheapest_per_million_output_tokens": _named(plan.cheapest_by_token),
        "cheapest_at_full_load": _named(plan.cheapest_at_full_load),
        "nearest": None
        if nearest is None or plan.fewest is not None
        else {**(_named(nearest) or {}), "missed_by": _finite(nearest.missed_by(plan.goals))},
        "verified": {name: _trial(trial, plan.goals) for name, trial in plan.verified.items()},
        "candidates": [candidate_row(plan, one) | {"pareto": one in front} for one in plan.rows],
        "notes": notes(plan),
        "sources": sources(plan),
        "provenance": list(plan.provenance),
        "expected_error": [dict(error) for error in plan.expected_errors],
        "not_modelled": list(plan.not_modelled),
    }


def candidate_row(plan: Plan, one: Planned) -> dict[str, Any]:
    """What a plan says of one candidate, in plain values."""
    screened, sustained = one.screened, one.sustained
    return {
        "name": one.candidate.name,
        "changes": dict(one.candidate.changes),
        "out": one.out,
        "replicas": one.replicas,
        "gpus": one.gpus,
        "gpus_per_replica": one.candidate.gpus,
        "meets": one.meets,
        "at_rate": None if one.trial is None else _trial(one.trial, plan.goals),
        "usd_per_hour": one.cost("usd_per_hour"),
        "usd_per_million_output_tokens": one.cost("usd_per_million_output_tokens"),
        "usd_per_million_requests": one.cost("usd_per_million_requests"),
        "usd_per_million_output_tokens_at_full_load": one.full_cost(),
        "largest_rate_per_s": one.largest_per_s,
        "requests_too_few_by": too_short(one),
        "first_rate_not_borne_per_s": None if sustained is None else sustained.found.not_borne,
        "headroom": plan.headroom(one),
        "screened_rate_per_s": None if screened is None else screened.rate_per_s * (one.replicas or 1),
        "pool_tokens_per_replica": None if screened is None else screened.pool_tokens,
        "binds": None if one.advice is None else one.advice.binds,
        "next_change": None if one.advice is None else one.advice.next_change,
    }


def cliff_summary(cliff: Cliff) -> dict[str, Any]:
    """The object that `kvsim plan --where-is-the-cliff --json` prints and `cliff.json` holds."""
    return {
        "schema": SCHEMA,
        "scenario": cliff.name,
        "answer": cliff_answer(cliff),
        "version": __version__,
        "seed": cliff.seed,
        "replications": cliff.replications,
        "rate_per_s": cliff.traffic.rate_per_s,
        "screened_rate_per_s": None if cliff.screened is None else cliff.screened.rate_per_s,
        "low_load_ttft_p99_s": cliff.low_load_s,
        "knee_per_s": cliff.knee_per_s,
        "preemption_onset_per_s": cliff.preemption_onset_per_s,
        "queue_blow_up_per_s": cliff.blow_up_per_s,
        "saturated_from_per_s": cliff.saturated_from_per_s,
        "rates": [
            {
                "rate_per_s": trial.rate_per_s,
                "ttft_p99_s": trial.mean("ttft_s", "p99"),
                "tpot_p99_s": trial.mean("tpot_s", "p99"),
                "e2e_p99_s": trial.mean("e2e_s", "p99"),
                "mean_running": trial.mean("mean_running"),
                "mean_waiting": trial.mean("mean_waiting"),
                "used_share": trial.mean("mean_share", "used"),
                "preemptions": trial.mean("preemptions"),
                "output_tokens_per_s": trial.mean("output_tokens_per_s"),
                "usd_per_million_output_tokens": trial.cost("usd_per_million_output_tokens"),
                "queue_growth": trial.growth,
                "saturated": trial.saturated,
            }
            for trial in cliff.trials
        ],
        "notes": list(cliff.notes),
        "provenance": dict(cliff.provenance),
        "expected_error": dict(cliff.expected_error),
        "not_modelled": list(cliff.not_modelled),
    }


def _named(one: Planned | None) -> dict[str, Any] | None:
    return None if one is None else {"name": one.candidate.name, "replicas": one.replicas, "gpus": one.gpus}


def _trial(trial: Trial, goals: Sequence[Goal]) -> Mapping[str, Any]:
    return {
        "rate_per_s": trial.rate_per_s,
        "meets": trial.borne,
        "saturated": trial.saturated,
        "values": {goal.name: value for goal, value in zip(goals, trial.values, strict=True)},
        "unmet": [goal.text for goal in trial.unmet],
    }


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None

"""The rule of the activation peak without one model's logs: no model is scored by a rule that it helped to make."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from statistics import median
from typing import Any

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.overheads.estimate import StepRule, activation, stated_rule
from kvsim.capacity.overheads.releases import engine_release, overheads
from kvsim.capacity.span import Span
from kvsim.capacity.weights.quantization import scheme
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.units import GIB

SWEEPS = 20
"""Rounds over the numbers of the rule; they settle within ten."""
NUDGE = 1e-3
"""Step of a number, in its own unit, that shows whether a peak depends on it."""


@cache
def rule_without(name: str) -> StepRule:
    """The rule fitted to the logged peaks of all models but `name`; with '' the one that the catalogue states.

    Number by number, to the median of what the peaks that depend on it say. One that no other model's peak depends on
    keeps its stated value.
    """
    rule = stated_rule()
    if not name:
        return rule
    peaks = [(_deployment(start), start["activation_gib"] * GIB) for start in _peaks() if start["model"] != name]
    for _ in range(SWEEPS):
        for change, value in _numbers(rule):
            said = list(_said(peaks, rule, change, value))
            if said:
                rule = change(rule, median(said))
    return rule


Change = Callable[[StepRule, float], StepRule]


def _numbers(rule: StepRule) -> Iterable[tuple[Change, float]]:
    """Each number of the rule, largest effect first, with how it is changed."""
    for sampler in rule.logit_bytes:
        yield partial(_with_logits, sampler), rule.logit_bytes[sampler]
    for name in ("expert_workspaces", "hidden_copies", "library_gib"):
        yield partial(_with, name), getattr(rule, name)


def _with(name: str, rule: StepRule, value: float) -> StepRule:
    return replace(rule, **{name: max(0.0, value)})  # type: ignore[arg-type]


def _with_logits(sampler: str, rule: StepRule, value: float) -> StepRule:
    return replace(rule, logit_bytes={**rule.logit_bytes, sampler: max(0.0, value)})


def _said(peaks: Iterable[tuple[Deployment, float]], rule: StepRule, change: Change, value: float) -> Iterable[float]:
    """What each logged peak says the number is, all others as they are."""
    for deployment, logged in peaks:
        now = activation(deployment, rule=rule).best
        slope = (activation(deployment, rule=change(rule, value + NUDGE)).best - now) / NUDGE
        if slope:
            yield value + (logged - now) / slope


@cache
def _peaks() -> list[dict[str, Any]]:
    return [start for start in overheads()["observed"] if "activation_gib" in start]


def _deployment(start: dict[str, Any]) -> Deployment:
    card = gpu(start["gpu"]) if start["gpu"] else None
    return Deployment(
        model=model(start["model"]),
        engine=engine_release(start["engine"], start["release"]),
        gpu=card,
        total=Span.exactly(card.memory_bytes if card is not None else start["total_gib"] * GIB),
        scheme=scheme(start["quantization"]) if "quantization" in start else None,
        tensor_parallel=start["tp"],
        max_model_len=start.get("max_model_len"),
    )

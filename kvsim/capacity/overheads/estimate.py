"""Activation peak, non-torch memory and CUDA graphs where nobody gives them, each with its spread.

The activation peak is physics: hidden states of the profiled step, the MLP's halves, the experts' workspaces, and the
sampler's copies of the logits. Non-torch memory is what start-ups logged. `without` leaves out one model's logs, for an
honest score.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log2
from statistics import median
from typing import Any

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.overheads.releases import numbers, overheads
from kvsim.capacity.span import Span
from kvsim.units import GIB

V1_SINCE = (0, 8)
"""vLLM's V1 core is the default from here on."""
NEIGHBOURS = 3
"""Releases of V0 that lie so far apart are alike where the cards differ anyway."""
_REFERENCE = "0.19"
"""The release with most logged starts: other engines, of which none are at hand, borrow its figures."""


@dataclass(frozen=True)
class StepRule:
    """The numbers of the activation peak that logged peaks can move; everything else in it is counted.

    Copies of the hidden states, workspaces of the experts, GiB of the libraries, and bytes that each sampler holds for
    every logit.
    """

    hidden_copies: float
    expert_workspaces: float
    library_gib: float
    logit_bytes: Mapping[str, float]


@cache
def stated_rule() -> StepRule:
    """The rule as the catalogue states it."""
    data = overheads()
    step, samplers = data["step"], data["samplers"]
    copies, workspaces, library = (step[name] for name in ("hidden_copies", "expert_workspaces", "library_gib"))
    return StepRule(copies, workspaces, library, {name: one["logit_bytes"] for name, one in samplers.items()})


def activation(deployment: Deployment, *, sampler: bool = True, rule: StepRule | None = None) -> Span:
    """The peak of the profiled step on one rank, in bytes; `sampler`: whether the stage samples."""
    step, rule = overheads()["step"], rule or stated_rule()
    tokens, model, width = deployment.step_tokens, deployment.model, deployment.number_bytes
    hidden = tokens * model.hidden * width
    embedded = hidden if model.other_params_b else 0
    passed_on = 2 * hidden if deployment.pipeline_parallel > 1 else 0
    peak = hidden + rule.expert_workspaces * _experts(deployment) + embedded + passed_on + rule.library_gib * GIB
    forward = (rule.hidden_copies - 1) * hidden + _mlp(deployment)
    logits = _logits(deployment, rule) if sampler else 0
    peak += max(forward, logits)
    return Span.within(peak, step["spread"] * peak + step["spread_gib"] * GIB)


def non_torch(deployment: Deployment, *, without: str = "") -> Span:
    """What driver, context and communication hold on one rank: the median of the nearest logged starts."""
    card = deployment.gpu.name if deployment.gpu is not None else ""
    same = nearest_starts(deployment, without=without)
    values = sorted(_at(start, deployment.tensor_parallel) for start in same)
    best = median(values)
    spread = max(0.1, 0.15 * best, values[-1] - best, best - values[0])
    if not any(start["gpu"] == card for start in same):
        spread = max(spread, 0.3)
    return Span.within(best * GIB, spread * GIB)


def nearest_starts(deployment: Deployment, *, without: str = "") -> list[dict[str, Any]]:
    """The logged starts whose non-torch memory stands for this one's: entries of the catalogue."""
    starts = [
        start
        for start in overheads()["observed"]
        if start["model"] != without and (start["tp"] > 1) == (deployment.tensor_parallel > 1)
    ]
    return _nearest(starts, deployment.gpu.name if deployment.gpu is not None else "", deployment)


def cuda_graphs(deployment: Deployment) -> Span:
    """What captured graphs hold on one rank; nothing with `enforce_eager` or in a release that captures none."""
    rule, model = overheads()["graphs"], deployment.model
    if deployment.enforce_eager or not deployment.engine.rules.get("graphs", True):
        return Span.exactly(0)
    layers = model.layers / deployment.pipeline_parallel
    gib = rule["base_gib"] + rule["layer_gib"] * layers
    if model.moe_layers:
        gib += rule["expert_gib"]
        if deployment.scheme is not None:
            gib += rule["expert_kernel_gib"].get(deployment.scheme.name, 0)
    gib *= deployment.tensor_parallel ** rule["ranks_power"]
    if deployment.sequences <= 256:
        gib *= rule["small_card_share"]
    return Span.within(gib * GIB, rule["spread"] * gib * GIB)


def _mlp(deployment: Deployment) -> float:
    """The gated halves and their product for all tokens of the step, in the widest dense layer."""
    model = deployment.model
    dense = (
        model.intermediate if model.layers > model.moe_layers else model.shared_experts * (model.moe_intermediate or 0)
    )
    copies = 3 if model.gated_mlp else 2
    narrow = (dense or 0) / deployment.tensor_parallel
    quantised = narrow if deployment.scheme is not None and deployment.scheme.bits == 8 else 0
    return deployment.step_tokens * (copies * narrow * deployment.number_bytes + quantised)


def _experts(deployment: Deployment) -> float:
    """One workspace of the experts: a row for each token and active expert."""
    model = deployment.model
    own_kernel = deployment.scheme is not None and deployment.scheme.name in overheads()["graphs"]["expert_kernel_gib"]
    if not model.moe_layers or own_kernel or deployment.engine.number < (0, 8):
        return 0
    rows = deployment.step_tokens * model.experts_active
    return float(rows * max(model.hidden, model.moe_intermediate or 0) * deployment.number_bytes)


def _logits(deployment: Deployment, rule: StepRule) -> float:
    name = deployment.engine.rules["sampler"]
    sampler = overheads()["samplers"][name]
    sequences = min(deployment.sequences, deployment.step_tokens)
    size = rule.logit_bytes[name] + max(0, deployment.number_bytes - 2)
    rows = 0
    if sampler.get("rows_per_multiprocessor"):
        known = overheads()["multiprocessors"]
        card = deployment.gpu.name if deployment.gpu is not None else ""
        rows = min(sequences, known["values"].get(card, known["otherwise"]))
    return float(deployment.model.vocab * (sequences * size + rows * 4))


def _nearest(starts: Sequence[dict[str, Any]], card: str, deployment: Deployment) -> list[dict[str, Any]]:
    """The logged starts with the same core (vLLM's V0 or V1), on the same card where there are any, of the closest
    release."""
    own = deployment.engine.number if deployment.engine.engine == "vllm" else numbers(_REFERENCE)
    same = [start for start in starts if _is_v0(start) == (own < V1_SINCE)] or list(starts)
    on_card = [start for start in same if start["gpu"] == card]
    # V0 differs by card more than by release: without a start on the card, its neighbours count too.
    reach = NEIGHBOURS if own < V1_SINCE and not on_card else 0

    def apart(start: dict[str, Any]) -> int:
        return abs(_minor(numbers(start["release"])) - _minor(own))

    near = min(map(apart, on_card or same)) + reach
    return [start for start in on_card or same if apart(start) <= near]


def _at(start: dict[str, Any], ranks: int) -> float:
    """What the start would have logged on so many ranks, where two of its kind say how it grows with them."""
    return float(start["non_torch_gib"] + start.get("per_doubling_gib", 0) * log2(ranks / start["tp"]))


def _is_v0(start: dict[str, Any]) -> bool:
    return start.get("core") == "v0" or numbers(start["release"]) < V1_SINCE


def _minor(number: tuple[int, ...]) -> int:
    return number[1] if len(number) > 1 else 0

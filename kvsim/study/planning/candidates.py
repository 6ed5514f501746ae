"""The candidates of a plan: every combination of the choices, each as the scenario of one replica."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from kvsim.catalog.gpus import gpu
from kvsim.errors import InputError
from kvsim.scenario.messages import Origin
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.schema.fleet import RouterSettings
from kvsim.study.planning.rates.sustained import PLAN
from kvsim.study.values import shown

Choices = Mapping[str, Sequence[Any]]
"""Dotted keys of a scenario to the values that come into question."""

REPLICAS = "fleet.replicas"
GPU, TP, KV_DTYPE = "gpu", "tensor_parallel", "model.kv_dtype"
BLOCK_SIZE, PREFIX_CACHING, UTILIZATION = (
    "allocator.block_size",
    "allocator.prefix_caching",
    "capacity.gpu_memory_utilization",
)

USUAL_TP = (1, 2, 4, 8)
"""Ranks that come into question where nobody says what does, as far as they divide the model."""

_HOLDS = (GPU, TP, KV_DTYPE, "model.weights_dtype", "model.name", "pipeline_parallel")
"""Keys with which what a card has room for changes, beside all of `capacity`."""

_SHORT = {
    TP: "TP {}",
    KV_DTYPE: "KV {}",
    BLOCK_SIZE: "block {}",
    UTILIZATION: "util {}",
}


@dataclass(frozen=True)
class Candidate:
    """One way to serve the traffic, but for the number of replicas: `scenario` is one of them, or as many as it says.

    `changes` are those to the scenario that was given, `gpus` what one replica takes.
    """

    name: str
    changes: Mapping[str, Any]
    scenario: Scenario
    gpus: int

    def with_replicas(self, count: int) -> Scenario:
        """The scenario with so many replicas behind its router; one alone needs none."""
        if count == 1 and self.scenario.settings.fleet is None:
            return self.scenario
        return self.scenario.changed({REPLICAS: count}, PLAN)


def candidates_of(scenarios: Sequence[Scenario], choices: Choices) -> list[Candidate]:
    """Every scenario with every combination of the choices, the last key changing fastest.

    Without any choice they are the scenario's own GPU at `USUAL_TP`. Where candidates differ in what a card has room
    for, each has the pool that its card leaves, whatever pool the scenario gives. InputError with the mistakes of the
    first that is wrong.
    """
    for key, values in choices.items():
        if not values:
            raise InputError(f"plan: {key}: has no values, so that there is no candidate; give at least one")
    if REPLICAS in choices:
        raise InputError(f"plan: {REPLICAS}: is what a plan searches for; say how many may be with --replicas")
    every = choices or {TP: _usual_ranks(scenarios[0])}
    sizes = any(key in _HOLDS or key.startswith("capacity.") for key in every)
    pools = any(key.split(".")[0] == "pool" for key in every)
    found: list[Candidate] = []
    for scenario in scenarios:
        own = len(found)
        if scenario.settings.fleet is not None and scenario.settings.fleet.autoscale is not None:
            raise InputError(
                f"{scenario.label}: fleet.autoscale: scales the replicas that a plan searches for; leave it out with "
                "--set fleet.autoscale=null"
            )
        for values in product(*every.values()):
            changes = dict(zip(every, values, strict=True))
            name = _name(scenario, changes, every)
            whole = {**changes, "pool": None} if sizes and not pools else changes
            made = scenario.changed(whole, Origin("list", f"candidate {name}"))
            until = made.settings.window.until
            if until != "auto":
                raise InputError(
                    f"{made.label}: window.until: {until}: such a window does not show whether the queue grows, which "
                    "a plan goes by; leave it out with --set window.until=auto"
                )
            for one in found[own:]:
                if one.name == name or one.scenario.settings == made.settings:
                    raise InputError(f"plan: candidates {one.name} and {name} are the same; give each value once")
            ranks = made.settings.tensor_parallel * made.settings.pipeline_parallel
            found.append(Candidate(name, changes, made, ranks))
    return found


def notes_on(scenarios: Sequence[Scenario], candidates: Sequence[Candidate]) -> list[str]:
    """What a reader should know of how these candidates were made from the scenarios."""
    said = []
    left_out = any(one.settings.pool is not None for one in scenarios) and any(
        one.scenario.settings.pool is None for one in candidates
    )
    if left_out:
        said.append("The scenario's own pool is left out: each candidate has the pool that its card leaves.")
    fleet = scenarios[0].settings.fleet
    router = RouterSettings().name if fleet is None else fleet.router.name
    said.append(f"Several replicas stand behind the router {router} (fleet.router).")
    return said


def _usual_ranks(scenario: Scenario) -> list[int]:
    """Those of `USUAL_TP` that divide the scenario's model."""
    found = []
    for ranks in USUAL_TP:
        try:
            scenario.changed({TP: ranks}, PLAN)
        except InputError:
            continue
        found.append(ranks)
    return found or [scenario.settings.tensor_parallel]


def _name(scenario: Scenario, changes: Mapping[str, Any], every: Choices) -> str:
    """The variant and what tells the candidate from others, in as few letters as will do."""
    words = [scenario.variant] if scenario.variant else []
    words += [_word(key, value) for key, value in changes.items() if len(every[key]) > 1 or key in (GPU, TP)]
    return " ".join(words) or scenario.label


def _word(key: str, value: Any) -> str:
    if key == GPU:
        try:
            return gpu(str(value)).name
        except InputError:
            return str(value)  # told with the candidate's mistakes
    if key == PREFIX_CACHING:
        return "caching" if value in (True, "true") else "no caching"
    return _SHORT.get(key, f"{key.rpartition('.')[2]}={{}}").format(shown(value))

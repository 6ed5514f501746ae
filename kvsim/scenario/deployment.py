"""The engine start that a run stands for, as the start-up planner sees it: what `kvsim capacity` would be asked."""

from typing import TypeVar

from kvsim.capacity.deployment import Deployment, Given
from kvsim.capacity.overheads.releases import release_of_profile
from kvsim.capacity.plan import Plan
from kvsim.capacity.planner import plan
from kvsim.capacity.span import Span
from kvsim.capacity.weights.quantization import scheme
from kvsim.catalog.engines import Profile
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.errors import InputError
from kvsim.scenario.resolve import Scenario

T = TypeVar("T")

SCHEMES = {"fp8": "fp8", "int8": "int8", "int4": "w4a16"}
"""Weights of a scenario to the scheme that stores them so; the engine computes in bf16 then."""


def deployment(scenario: Scenario, rules: Profile) -> Deployment:
    """The start of `scenario`, whose engine profile is `rules`: what it says, else what the profile does.

    `capacity.activation`, `non_torch` and `cuda_graphs` replace the planner's estimates. Raises InputError for settings
    with which no engine starts.
    """
    settings, card = scenario.settings, gpu(scenario.settings.gpu)
    engine, capacity, weights = settings.engine, settings.capacity, settings.model.weights_dtype
    return Deployment(
        model=model(scenario.model),
        engine=release_of_profile(rules.engine, rules.version),
        total=Span.exactly(card.memory_bytes),
        gpu=card,
        dtype="bf16" if weights in SCHEMES else weights,
        scheme=scheme(SCHEMES[weights]) if weights in SCHEMES else None,
        kv_dtype=settings.model.kv_dtype,
        tensor_parallel=settings.tensor_parallel,
        pipeline_parallel=settings.pipeline_parallel,
        utilization=chosen(capacity.gpu_memory_utilization, rules.gpu_memory_utilization),
        max_model_len=engine.max_model_len,
        max_num_seqs=chosen(engine.max_num_seqs, rules.max_num_seqs),
        max_num_batched_tokens=chosen(engine.max_num_batched_tokens, scenario.token_budget),
        enforce_eager=engine.enforce_eager,
        # Where the scenario names none, the release may be forced to a larger one than the profile's.
        block_size=getattr(settings.allocator, "block_size", None),
        given=Given(
            activation=_exactly(capacity.activation),
            non_torch=_exactly(capacity.non_torch),
            cuda_graphs=_exactly(capacity.cuda_graphs),
        ),
    )


def planned(scenario: Scenario, rules: Profile) -> Plan | None:
    """The planned start of `scenario`; None where no engine starts so, but its pool is given and a run needs no plan.

    Raises ValueError where the pool is to follow from the card.
    """
    try:
        return plan(deployment(scenario, rules))
    except InputError as error:
        if scenario.settings.pool is None:
            raise ValueError(str(error)) from error
        return None


def chosen(value: T | None, default: T) -> T:
    """What the scenario gives, else the default."""
    return default if value is None else value


def _exactly(size_bytes: int | None) -> Span | None:
    return None if size_bytes is None else Span.exactly(size_bytes)

"""The planner: a deployment to a Plan. Exact arithmetic on what is given, spans where something is estimated."""

from kvsim.capacity.answers.provenance import not_modelled, provenance
from kvsim.capacity.answers.verdict import verdict
from kvsim.capacity.deployment import Deployment
from kvsim.capacity.engines import EnginePolicy, policy
from kvsim.capacity.engines.interface import Memory
from kvsim.capacity.layout.groups import Layout, layout
from kvsim.capacity.overheads.estimate import activation, cuda_graphs, non_torch
from kvsim.capacity.overheads.refit import rule_without
from kvsim.capacity.plan import Plan, StageMemory
from kvsim.capacity.span import Span
from kvsim.capacity.weights.extras import extra_weight_bytes
from kvsim.capacity.weights.loaded import Stage, loaded_weights, stage_layers
from kvsim.errors import InputError


def plan(deployment: Deployment, *, without: str = "") -> Plan:
    """Plan one engine start.

    Every stage and rank gets its own breakdown; the poorest decides the pool. `without` names a model whose logged
    starts neither lend their figures nor shape the rules (for scores). Raises InputError where the model's weights are
    not known and not given.
    """
    rules = policy(deployment.engine)
    stages = tuple(_stages(deployment, rules, without))
    poorest = min(stages, key=lambda stage: stage.blocks.best)
    blocks = Span(*(min(getattr(stage.blocks, end) for stage in stages) for end in ("low", "best", "high")))
    tokens, concurrency = _pool(deployment, rules, poorest.layout, blocks)
    return Plan(
        deployment=deployment,
        stages=stages,
        stage=poorest,
        blocks=blocks,
        tokens=tokens,
        concurrency=concurrency,
        verdict=verdict(deployment, poorest, blocks),
        provenance=provenance(deployment, rules),
        not_modelled=not_modelled(deployment),
    )


def _stages(deployment: Deployment, rules: EnginePolicy, without: str) -> list[StageMemory]:
    given, count = deployment.given, deployment.pipeline_parallel
    overhead = given.non_torch or non_torch(deployment, without=without)
    graphs = given.cuda_graphs or cuda_graphs(deployment)
    found = []
    for number, stage in enumerate(_weights(deployment)):
        weights = given.weights or Span.exactly(max(0, stage.weight_bytes - deployment.offload_bytes))
        last = number == count - 1
        peak = given.activation or activation(deployment, sampler=last, rule=rule_without(without))
        memory = Memory(deployment.total, deployment.share, deployment.used_bytes, weights, peak, overhead, graphs)
        kv = given.kv_memory or rules.kv_bytes(memory)
        blocks_of = layout(deployment, stage)
        blocks = kv.each(lambda size, shape=blocks_of: rules.blocks(size, shape.block_bytes))  # type: ignore[misc]
        if given.num_gpu_blocks is not None:
            blocks = Span.exactly(given.num_gpu_blocks)
        most_tokens = rules.most_tokens(deployment.longest) or deployment.most_tokens
        if most_tokens is not None:
            most = most_tokens // blocks_of.block
            blocks = blocks.each(lambda count, most=most: min(count, most))  # type: ignore[misc]
            kv = kv.each(lambda size, most=most * blocks_of.block_bytes: min(size, most))  # type: ignore[misc]
        found.append(StageMemory(number, count, weights, peak, overhead, graphs, kv, blocks, blocks_of))
    return found


def _weights(deployment: Deployment) -> list[Stage]:
    model, stages = deployment.model, deployment.pipeline_parallel
    given = deployment.given
    if not model.weights_known:
        if given.weights is None and given.kv_memory is None and given.num_gpu_blocks is None:
            raise InputError(
                f"{model.name}: nobody published its weights, and its fields do not describe them all; give "
                "--weights-gib (the size of the checkpoint's files, divided by the ranks, is close)"
            )
        # Only the layers of each stage matter where the weights, or what they leave, are given.
        counts = stage_layers(model.layers, stages)
        return [Stage(sum(counts[:number]), layers, 0) for number, layers in enumerate(counts)]
    found = loaded_weights(
        model,
        dtype=deployment.dtype,
        scheme=deployment.scheme,
        ranks=deployment.tensor_parallel,
        attention_ranks=deployment.attention_ranks,
        stages=stages,
        whole_tables=deployment.engine.rules.get("whole_tables", False),
    )
    extra = extra_weight_bytes(deployment)
    return [Stage(one.first_layer, one.layers, one.weight_bytes + extra) for one in found]


def _pool(deployment: Deployment, rules: EnginePolicy, shape: Layout, blocks: Span) -> tuple[Span, Span]:
    """(tokens, concurrency) of the pools of all ranks that add up."""
    longest, step, ranks = deployment.longest, deployment.step_tokens, deployment.pool_ranks
    concurrency = blocks.each(lambda count: rules.concurrency(shape, count, longest, step) * ranks)
    tokens = Span(
        *(
            rules.tokens(shape, count, times / ranks, longest) * ranks
            for count, times in zip(
                (blocks.low, blocks.best, blocks.high),
                (concurrency.low, concurrency.best, concurrency.high),
                strict=True,
            )
        )
    )
    return tokens, concurrency

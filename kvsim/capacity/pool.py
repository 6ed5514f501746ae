"""The pool of a run from the plan of its engine's start: how many slots are left for KV.

What the planner leaves for KV is cut into the allocator's blocks; one table holds all layers.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.plan import Plan
from kvsim.capacity.planner import plan
from kvsim.capacity.weights.loaded import stage_layers
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import Model
from kvsim.errors import DoesNotFitError, InputError
from kvsim.units import format_size


@dataclass(frozen=True, slots=True)
class Pool:
    """`slots` of KV for one token each on a rank, with the sentence that says where the number comes from."""

    slots: int
    provenance: str


def pool_from_card(made: Plan, *, block_size: int, block_bytes: int | None = None) -> Pool:
    """The pool that a start leaves on the poorest rank, rounded down to whole blocks of `block_size` tokens.

    `block_bytes` is the memory of a block where that is more than its tokens' KV takes (a page row).
    Raises DoesNotFitError, with the breakdown, when not even one block is left.
    """
    asked, stage = made.deployment, made.stage
    left = int(stage.kv.best)
    blocks = left // (block_bytes or block_size * _token_bytes(asked)) if left > 0 else 0
    usable = asked.total.best * asked.share
    card = asked.gpu.name if asked.gpu is not None else "a card of"
    sums = (
        f"{card} {format_size(asked.total.best)} x {asked.share:g} = {format_size(usable)}, less weights "
        f"{format_size(stage.weights.best)} and overheads {format_size(usable - stage.weights.best - left)}"
    )
    if blocks < 1:
        raise DoesNotFitError(
            f"{asked.model.name} does not fit: {sums} leaves no room for one block of {block_size} tokens of KV. "
            f"{_remedy(asked, block_size)}"
        )
    return Pool(blocks * block_size, f"from the card: {sums} leaves {format_size(left)} of KV per rank")


def _token_bytes(asked: Deployment) -> int:
    whole = Footprint(asked.model, asked.tensor_parallel, asked.cache_dtype).kv_bytes_per_token
    return math.ceil(whole * stage_share(asked.model, asked.pipeline_parallel))


def stage_share(model: Model, stages: int) -> Fraction:
    """The part of the layers that the largest of so many pipeline stages holds, and so of each token's KV."""
    return Fraction(max(stage_layers(model.layers, stages)), model.layers)


def _remedy(asked: Deployment, block_size: int) -> str:
    """What would make the model fit: the fewest ranks that leave room for a block, where any number does."""
    steps = "smaller steps (max_num_batched_tokens; max_model_len where prompts come whole)"
    others = f"a larger card, a smaller dtype, a higher utilisation or {steps} would help"
    for split in _splits(asked):
        if plan(split).stage.kv.best >= block_size * _token_bytes(split):
            return f"tensor_parallel: {split.tensor_parallel} would fit; {others} too"
    return f"No tensor_parallel fits; {others}"


def _splits(asked: Deployment) -> Iterator[Deployment]:
    for ranks in range(asked.tensor_parallel + 1, asked.model.heads + 1):
        try:
            yield replace(asked, tensor_parallel=ranks)
        except InputError:
            continue

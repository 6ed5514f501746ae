"""From a card to the pool of a run: how many slots are left for KV when the engine has started.

The planner's weights and the arithmetic of the newest vLLM, with the overheads that the scenario or the profile states;
every rank is alike here, so each is the poorest. Blocks are the allocator's: one table holds all layers.
"""

from dataclasses import dataclass, replace

from kvsim.capacity.engines.interface import Memory
from kvsim.capacity.engines.vllm_graphs import VllmGraphs
from kvsim.capacity.span import Span
from kvsim.capacity.weights.loaded import loaded_weights
from kvsim.capacity.weights.quantization import scheme
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import Gpu
from kvsim.errors import DoesNotFitError
from kvsim.units import format_size


@dataclass(frozen=True, slots=True)
class Pool:
    """`slots` of KV for one token each on a rank, with the sentence that says where the number comes from."""

    slots: int
    provenance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """Memory per rank that is neither weights nor KV, in bytes."""

    activation_bytes: int
    non_torch_bytes: int
    cuda_graphs_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.activation_bytes + self.non_torch_bytes + self.cuda_graphs_bytes


def pool_from_card(
    footprint: Footprint,
    gpu: Gpu,
    *,
    utilization: float,
    overheads: Overheads,
    block_size: int,
    block_bytes: int | None = None,
) -> Pool:
    """The pool that a card leaves, rounded down to whole blocks.

    `utilization` is the share of the card's memory that the engine may use (above 0, at most 1). `block_bytes` is the
    memory of a block where that is more than its tokens' KV takes (a page row).
    Raises DoesNotFitError, with the breakdown, when not even one block is left.
    """
    if not 0 < utilization <= 1:
        raise ValueError(f"utilization is {utilization}; it must be a share above 0, at most 1")
    weights = loaded_bytes(footprint)
    memory = Memory(
        Span.exactly(gpu.memory_bytes),
        utilization,
        0,
        Span.exactly(weights),
        Span.exactly(overheads.activation_bytes),
        Span.exactly(overheads.non_torch_bytes),
        Span.exactly(overheads.cuda_graphs_bytes),
    )
    left = int(VllmGraphs().kv_bytes(memory).best)
    usable = left + weights + overheads.total_bytes
    blocks = left // (block_bytes or block_size * footprint.kv_bytes_per_token) if left > 0 else 0
    sums = (
        f"{gpu.name} {format_size(gpu.memory_bytes)} x {utilization:g} = {format_size(usable)}, less weights "
        f"{format_size(weights)} and overheads {format_size(overheads.total_bytes)}"
    )
    if blocks < 1:
        raise DoesNotFitError(
            f"{footprint.model.name} does not fit: {sums} leaves no room for one block of {block_size} tokens of KV. "
            f"{_remedy(footprint, usable - overheads.total_bytes, block_size)}"
        )
    return Pool(blocks * block_size, f"from the card: {sums} leaves {format_size(left)} of KV per rank")


def loaded_bytes(footprint: Footprint) -> int:
    """What each rank loads."""
    schemes = {"fp8": "fp8", "int8": "int8", "int4": "w4a16"}
    dtype = footprint.weights_dtype
    [stage] = loaded_weights(
        footprint.model,
        dtype="bf16" if dtype in schemes else dtype,
        scheme=scheme(schemes[dtype]) if dtype in schemes else None,
        ranks=footprint.tensor_parallel,
    )
    return stage.weight_bytes


def _remedy(footprint: Footprint, room_bytes: int, block_size: int) -> str:
    """What would make the model fit: the fewest ranks that leave room for a block, where any number does."""
    others = "a larger card, a smaller dtype or a higher utilisation would help"
    for ranks in range(footprint.tensor_parallel + 1, footprint.model.heads + 1):
        try:
            split = replace(footprint, tensor_parallel=ranks)
        except ValueError:
            continue
        if room_bytes - loaded_bytes(split) >= block_size * split.kv_bytes_per_token:
            return f"tensor_parallel: {ranks} would fit; {others} too"
    return f"No tensor_parallel fits; {others}"

"""What a reader of the numbers should know about a scenario, and what its run leaves out."""

from kvsim.capacity.device import Device
from kvsim.capacity.plan import Plan
from kvsim.capacity.weights.quantization import of_checkpoint
from kvsim.catalog.engines import Profile
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.scenario.deployment import SCHEMES, chosen
from kvsim.scenario.messages import alternatives
from kvsim.scenario.schema.serving import (
    ContiguousSettings,
    NoCacheSettings,
    PagedSettings,
    RadixSettings,
    VirtualSettings,
)
from kvsim.scenario.schema.settings import Settings
from kvsim.units import SIZE_UNITS, format_size

LARGE_GPU_BYTES = 70 * SIZE_UNITS["GiB"]
LARGE_GPU_DEFAULTS = "1,024 sequences and 8,192 tokens"
"""vLLM's server defaults of max_num_seqs and max_num_batched_tokens on GPUs of 70 GiB or more other than A100
(`EngineArgs.get_batch_defaults` in vllm/engine/arg_utils.py, Apache-2.0)."""


def notes(
    settings: Settings,
    rules: Profile,
    footprint: Footprint,
    pool_slots: int,
    device: Device | None,
    start: Plan | None,
    *,
    slot_bytes: int,
    host_bytes: int,
) -> list[str]:
    """Return sentences on this scenario: a pool beyond its card, a start that is refused, weights or defaults that are
    not those of its model or card, host memory that is needed.

    `slot_bytes` and `host_bytes` are those of a slot, on a GPU and beside it on the host.
    """
    said = []
    card = gpu(settings.gpu)
    if settings.pool is not None and footprint.model.weights_known:
        pool_bytes = pool_slots * slot_bytes
        # What the overheads really are varies from start to start, but beside the weights nothing else exists.
        left_bytes = max(0, card.memory_bytes - footprint.weight_bytes // settings.pipeline_parallel)
        if pool_bytes > left_bytes:
            beside = f"the {format_size(left_bytes)} that {card.name} has beside the weights of {footprint.model.name}"
            said.append(f"The pool of {format_size(pool_bytes)} is more than {beside}; no such engine would start.")
        elif device is not None:
            sequences = settings.engine.max_num_seqs or rules.max_num_seqs
            wanted = device.workspace_bytes(sequences, sequences)
            if wanted > device.room_bytes:
                said.append(
                    f"Beside weights, pool and {format_size(device.other_bytes)} of overheads {card.name} has "
                    f"{format_size(max(0, device.room_bytes))} for the workspace of a step; one in which "
                    f"{sequences} sequences decode takes {format_size(wanted)}. No such engine would start."
                )
    if settings.placement.host_share:
        said.append(
            f"Host memory holds {format_size(pool_slots * host_bytes)} of KV for each GPU when the pool is full."
        )
    if settings.pool is None and rules.engine == "vllm" and start is not None and not start.verdict.runs:
        said.append(f"vLLM would refuse to start: {start.verdict.reason}; set engine.max_model_len.")
    published = of_checkpoint(footprint.model.name)[1]
    if published is not None and settings.model.weights_dtype not in SCHEMES:
        said.append(
            f"{footprint.model.name} is published in {published}, and its weights are {settings.model.weights_dtype} "
            f"here; set model.weights_dtype to {alternatives(list(SCHEMES))} for smaller ones."
        )
    engine = settings.engine
    large = card.memory_bytes >= LARGE_GPU_BYTES and not card.name.upper().startswith("A100")
    if rules.engine == "vllm" and large and engine.max_num_seqs is None and engine.max_num_batched_tokens is None:
        said.append(
            f"On {card.name} vLLM's server default is {LARGE_GPU_DEFAULTS} a step, not the {rules.max_num_seqs:,} and "
            f"{rules.max_num_batched_tokens:,} of {rules.name}; set engine.max_num_seqs and "
            f"engine.max_num_batched_tokens."
        )
    return said


def not_modelled(settings: Settings, rules: Profile, footprint: Footprint) -> list[str]:
    """What this run leaves out, in sentences for every output."""
    said = list(rules.known_deviations)
    shape = footprint.model
    allocator = settings.allocator
    if isinstance(allocator, PagedSettings | RadixSettings):
        said.append("The allocator's own time on the host, beyond what a step costs in any case.")
        if isinstance(allocator, RadixSettings) or chosen(allocator.prefix_caching, rules.prefix_caching):
            what = "Slots whose content another live request also holds"
            said.append(f"{what} are not counted while prefixes are cached.")
    if isinstance(allocator, RadixSettings):
        if chosen(settings.engine.scheduler, rules.scheduler) != "sglang":
            said.append(
                f"SGLang's scheduling: requests are ordered, admitted and preempted by the rules of {rules.name}."
            )
        if settings.workload.samples > 1:
            said.append(
                "SGLang computes the prompt of several samples once before they start; here those that start in one "
                "step compute it each."
            )
        if allocator.page_size < rules.block_size:
            said.append(
                f"How long attention takes to find single slots or short pages: it is charged as for blocks of "
                f"{rules.block_size}."
            )
    if isinstance(settings.allocator, ContiguousSettings) and settings.allocator.growth == "cat":
        said.append("Where the tensors of one request lie: they stay side by side, as one region.")
    if isinstance(settings.allocator, VirtualSettings):
        said.append("Pages that stay mapped after a request for the next one to take over: each maps all of its own.")
    if shape.window_layers:
        said.append(
            f"Sliding windows: the {shape.window_layers} window layers of {shape.name} "
            f"keep and read the whole sequence."
        )
    if shape.state_layers:
        said.append(f"Fixed state per request: the {shape.state_layers} state layers of {shape.name} take no memory.")
    if isinstance(settings.allocator, NoCacheSettings):
        said.append("The workspace in which a step keeps the keys and values that it throws away afterwards.")
    if settings.placement.host_share:
        said.append(
            "The buffers in which KV from the host waits for its layer, and what else crosses the host link meanwhile."
        )
    if settings.pipeline_parallel > 1:
        said.append(
            "Stages that differ: the LM head and layers that cannot be dealt evenly make the pipeline wait for the "
            "slowest; a prompt is computed by chunks of one micro-batch after the other."
        )
    said.append("Sampling, tokenisation, network and the client's side of TTFT.")
    return said

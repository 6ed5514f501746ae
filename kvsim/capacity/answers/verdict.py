"""Whether the engine would start, in its own classes of refusal."""

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.overheads.releases import overheads
from kvsim.capacity.plan import StageMemory, Verdict
from kvsim.capacity.span import Span
from kvsim.units import GIB, format_size

CLASSES = {
    "no_kv_memory": "weights and overheads leave nothing for KV ('No available memory for the cache blocks')",
    "max_model_len_above_pool": "one request of max_model_len needs more KV than there is ('To serve at least one "
    "request with the model's max seq len'; older: 'max seq len is larger than the maximum number of tokens')",
    "gpu_memory_taken": "other processes use so much that the engine's share is not free ('Free memory on "
    "device is less than desired GPU memory utilization')",
    "out_of_memory": "weights, overheads and the pool that is given are more than the card ('CUDA out of memory')",
    "context_exceeds_memory": "weights and KV of the given context exceed the card (llama.cpp: 'failed to allocate')",
    "layers_on_host": "llama.cpp keeps some layers on the host (-ngl)",
    "weights_on_host": "weights were moved to the host (--cpu-offload-gb)",
    "max_model_len_above_model": "more than the model was made for: refused by vLLM ('User-specified max_model_len is "
    "greater than the derived max_model_len') and SGLang unless rope scaling extends the model",
    "oom_after_kv": "the plan holds, but CUDA graphs and warm-up outside it may run out of memory",
    "within_error": "fits by the best estimate, but not at the pessimistic end of the interval",
}
"""Classes of reasons: the last three are `at_risk`, those on the host `offload`, the others `refused`."""


def verdict(deployment: Deployment, stage: StageMemory, blocks: Span) -> Verdict:
    """`fits`, `at_risk`, `offload` (weights were moved to the host to fit) or `refused`."""
    refusal = _refusal(deployment, stage, blocks.best)
    if refusal is not None:
        layers = _layers_that_fit(deployment, stage)
        if layers:
            on_gpu = f"{layers} of {deployment.model.layers} layers fit on the GPU (-ngl {layers})"
            return Verdict("offload", "layers_on_host", f"{on_gpu}; {refusal[1]}")
        return Verdict("refused", *refusal)
    risk = _graphs_risk(deployment, stage) or _rest_risk(deployment, stage)
    if risk is not None:
        return Verdict("at_risk", "oom_after_kv", risk)
    if _refusal(deployment, stage, blocks.low) is not None:
        low, high = int(blocks.low), int(blocks.high)
        return Verdict(
            "at_risk", "within_error", f"{low:,} to {high:,} blocks are possible, and the low end is too few"
        )
    if deployment.longest > deployment.model.max_context and deployment.engine.engine in ("vllm", "sglang"):
        return Verdict(
            "at_risk",
            "max_model_len_above_model",
            f"max_model_len is {deployment.longest:,}, {deployment.model.name} was made for "
            f"{deployment.model.max_context:,} tokens: refused unless rope scaling (--hf-overrides) extends it",
        )
    if deployment.offload_bytes:
        host = format_size(deployment.offload_bytes)
        return Verdict("offload", "weights_on_host", f"up to {host} of the weights are kept on the host")
    return Verdict("fits")


def _refusal(deployment: Deployment, stage: StageMemory, blocks: float) -> tuple[str, str] | None:
    engine, longest = deployment.engine.engine, deployment.longest
    if engine == "vllm" and deployment.used_bytes > deployment.total.best * (1 - deployment.share):
        free = deployment.total.best - deployment.used_bytes
        return "gpu_memory_taken", (
            f"{format_size(free)} of {format_size(deployment.total.best)} are free, less than the share of "
            f"{deployment.share:g} that the engine asks for"
        )
    given = deployment.given.kv_memory is not None or deployment.given.num_gpu_blocks is not None
    if blocks < 1:
        weights, left = format_size(stage.weights.best), format_size(stage.kv.best)
        return "no_kv_memory", (
            "the pool that is given holds not one block"
            if given
            else f"weights {weights} and overheads leave {left} for KV on {stage.name}"
        )
    taken = stage.weights.low + stage.non_torch.low + blocks * stage.layout.block_bytes
    if given and 0 < deployment.total.high < taken:
        return "out_of_memory", (
            f"weights, non-torch memory and the pool that is given take {format_size(taken)}, more than the card's "
            f"{format_size(deployment.total.best)}"
        )
    ranks = deployment.decode_context_parallel
    needed = stage.layout.request_blocks(-(-longest // ranks), deployment.step_tokens)
    if needed <= blocks:
        return None
    size = needed * stage.layout.block_bytes
    name = "context_exceeds_memory" if engine == "llama.cpp" else "max_model_len_above_pool"
    return name, (
        f"one request of {longest:,} tokens needs {needed:,} blocks ({format_size(size)}), the pool has "
        f"{int(blocks):,} ({format_size(blocks * stage.layout.block_bytes)})"
    )


def _layers_that_fit(deployment: Deployment, stage: StageMemory) -> int:
    """Layers, each with its weights and the KV of the whole context, that the card holds; 0 where the engine cannot run
    the others on the host."""
    if deployment.engine.engine != "llama.cpp":
        return 0
    room = stage.kv.best + stage.weights.best
    kv = stage.layout.request_blocks(deployment.longest, deployment.step_tokens) * stage.layout.block_bytes
    a_layer = (stage.weights.best + kv) / deployment.model.layers
    return max(0, min(deployment.model.layers - 1, int(room / a_layer)))


def _graphs_risk(deployment: Deployment, stage: StageMemory) -> str | None:
    """Where the graphs lie outside the budget: whether they take too much of what the budget leaves of the card."""
    outside = deployment.total.best * (1 - deployment.share)
    if deployment.engine.rules["policy"] != "vllm" or deployment.enforce_eager or not deployment.total.best:
        return None
    graphs = stage.cuda_graphs.best
    rule = overheads()["at_risk"]
    if graphs <= rule["graphs_share"] * outside:
        return None
    return (
        f"outside its share of the card the engine leaves {outside / GIB:.2f} GiB and captures "
        f"{graphs / GIB:.2f} GiB of CUDA graphs in it: {(outside - graphs) / GIB:.2f} GiB are left for warm-up, which "
        f"asks for {_warm_up(deployment) / GIB:.2f} GiB at a time ({rule['source']})"
    )


def _rest_risk(deployment: Deployment, stage: StageMemory) -> str | None:
    """Whether the card holds a step and its CUDA graphs beside all else, whatever the engine's share counts."""
    if not deployment.total.best:
        return None
    rest = deployment.total.best - deployment.used_bytes - stage.weights.best - stage.kv.best - stage.non_torch.best
    needed = stage.activation.best + stage.cuda_graphs.best
    if needed <= rest:
        return None
    return (
        f"weights, non-torch memory and KV leave {rest / GIB:.2f} GiB of the card, and a step with its CUDA graphs "
        f"takes {needed / GIB:.2f} GiB"
    )


def _warm_up(deployment: Deployment) -> int:
    """The largest single tensor of the sampler's warm-up: float32 logits of every sequence."""
    return 4 * min(deployment.sequences, deployment.step_tokens) * deployment.model.vocab

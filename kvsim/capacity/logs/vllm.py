"""Lines of vLLM's start-up, from 0.2 (blocks only) to 0.29 (pool and concurrency on one line).

The formats are those of logs in public issues; where no engine is named beside a rule, of the V1 engine (since 0.8).
"""

from kvsim.capacity.logs.printed import Printed
from kvsim.capacity.logs.rules import COUNT, NUMBER, SIZE, rule

EXAMPLE = "GPU KV cache size: 41,408 tokens"

RULES = (
    rule("vLLM API server version", r"vLLM API server version (?P<version>\S+)", restarts=True),
    rule("█", r"utils\.py:\d+\].*█.*\bversion (?P<version>\d\S*)"),  # a banner with a logo
    rule("non-default args: ", r"non-default args: (?P<echo>.*)"),
    rule("args: Namespace(", r"args: Namespace\((?P<echo>.*)"),
    rule("Initializing a", r"Initializing an? (?:V1 )?LLM engine \(v?(?P<version>[^)\s]+)\)"),
    rule("with config: ", r"Initializing an? (?:V1 )?LLM engine .*?with config: (?P<echo>.*)"),
    rule("Using max model len", rf"Using max model len (?P<set_max_model_len>{COUNT})"),
    rule("Chunked prefill is enabled", rf"max_num_batched_tokens=(?P<set_max_num_batched_tokens>{COUNT})"),
    # What a state page of a hybrid model, or an attention backend, forces.
    rule("block size to", rf"Setting (?:attention|kv cache) block size to (?P<set_block_size>{COUNT})\b", keep="last"),
    # Weights: "Loading model weights took 14.9595 GB" in early releases.
    rule("Loading model weights took", rf"Loading model weights took (?P<weights_gib>{SIZE})", keep="exact"),
    rule("Model loading took", rf"Model loading took (?P<weights_gib>{SIZE})", keep="exact"),
    # The budget of the V0 engine, since the end of 2024.
    rule(
        "x gpu_memory_utilization",
        rf"total_gpu_memory \((?P<total_gib>{SIZE})\) x gpu_memory_utilization"
        rf" \((?P<set_gpu_memory_utilization>{NUMBER})\) = (?P<usable_gib>{SIZE})",
    ),
    rule("model weights take", rf"model weights take (?P<weights_gib>{SIZE})", keep="exact"),
    rule("non_torch_memory takes", rf"non_torch_memory takes (?P<non_torch_gib>{SIZE})"),
    rule("activation peak memory takes", rf"activation peak memory takes (?P<activation_gib>{SIZE})"),
    rule("reserved for KV Cache", rf"memory reserved for KV Cache is (?P<kv_memory_gib>{SIZE})", keep="exact"),
    # The same before, as in 0.6.4; the torch peak holds the weights.
    rule(
        "Memory profiling results:",
        rf"total_gpu_memory=(?P<total_gib>{SIZE}) .*peak_torch_memory=(?P<peak_torch_gib>{SIZE}) .*"
        rf"non_torch_memory=(?P<non_torch_gib>{SIZE}) kv_cache_size=(?P<kv_memory_gib>{SIZE})"
        rf" gpu_memory_utilization=(?P<set_gpu_memory_utilization>{NUMBER})",
    ),
    # V1 at log level DEBUG.
    rule("torch peak memory increase", rf"torch peak memory increase: (?P<activation_gib>{SIZE})"),
    rule("non-torch forward increase", rf"non-torch forward increase memory: (?P<non_torch_gib>{SIZE})"),
    rule("weights memory:", rf"weights memory: (?P<weights_gib>{SIZE})", keep="exact"),
    rule("Requested memory:", rf"Requested memory: [\d.]+ \(util\), (?P<usable_gib>{SIZE})"),
    # V1 after the start, since 0.11.
    rule("Free memory on device", rf"Free memory on device[^(]*\((?P<free_gib>{NUMBER})/(?P<total_gib>{NUMBER}) GiB\)"),
    rule(
        "GPU memory utilization",
        rf"GPU memory utilization (?:is )?\((?P<set_gpu_memory_utilization>{NUMBER}), (?P<usable_gib>{SIZE})\)",
    ),
    rule("for weight", rf"Actual usage is (?P<weights_gib>{SIZE}) for weight\b", keep="exact"),
    rule("for consumed memory", rf"Actual usage is (?P<consumed_gib>{SIZE}) for consumed memory"),
    rule("for peak activation", rf"(?P<activation_gib>{SIZE}) for peak activation"),
    rule("for non-torch memory", rf"(?P<non_torch_gib>{SIZE}) for non-torch memory"),
    rule("for CUDAGraph memory", rf"(?P<cuda_graph_gib>{SIZE}) for CUDAGraph memory"),
    rule("Current kv cache memory", rf"Current kv cache memory in use is (?P<kv_memory_gib>{SIZE})", keep="exact"),
    rule("Available KV cache memory:", rf"Available KV cache memory: (?P<kv_memory_gib>{SIZE})", keep="exact"),
    rule("memory for KV Cache as specified", rf"reserved (?P<kv_memory_gib>{SIZE}) memory for KV Cache", keep="exact"),
    # CUDA graphs; from 0.21 on an estimate is set aside first.
    rule("Graph capturing finished", rf"Graph capturing finished in .* took (?P<cuda_graph_gib>{SIZE})"),
    rule("CUDA graph memory:", rf"Estimated CUDA graph memory: (?P<cuda_graph_estimate_gib>{SIZE})"),
    rule(
        "CUDA graph memory profiling", r"CUDA graph memory profiling is (?P<set_cuda_graph_profiling>enabled|disabled)"
    ),
    rule(
        "is equivalent to --gpu-memory-utilization=",
        rf"The current --gpu-memory-utilization=(?P<set_gpu_memory_utilization>{NUMBER}) is equivalent",
    ),
    # The pool: blocks ("# GPU blocks", later "# cuda blocks") of the V0 engine, tokens since.
    rule(" blocks: ", rf"# \w+ blocks: (?P<kv_blocks>{COUNT})(?:, # CPU blocks: (?P<cpu_blocks>{COUNT}))?"),
    rule(
        "Overriding num_gpu_blocks=",  # "=0": a probe of the engine's own
        rf"num_gpu_blocks=[1-9]\d* with num_gpu_blocks_override=(?P<set_num_gpu_blocks_override>{COUNT})",
    ),
    rule("KV cache size:", rf"GPU KV cache size: (?P<kv_tokens>{COUNT}) tokens"),
    rule(
        "Maximum concurrency for",
        rf"Maximum concurrency for (?P<set_max_model_len>{COUNT}) tokens per request: (?P<max_concurrency>{NUMBER})x",
    ),
    rule("init engine", r"init engine \(.*\) took", ready=True),
    # Refusals.
    rule("o serve at least one request", r"o serve at least one request", reason_class="max_model_len_above_pool"),
    rule("max seq len", rf"max seq len \((?P<set_max_model_len>{COUNT})\)"),
    rule("KV cache is needed", rf"(?P<needed_kv_gib>{SIZE}) KV cache is needed"),
    rule("larger than the available KV", rf"larger than the available KV cache memory \((?P<kv_memory_gib>{SIZE})\)"),
    rule("estimated maximum model length", rf"estimated maximum model length is (?P<estimated_max_len>{COUNT})"),
    rule(
        "larger than the maximum number of tokens",
        rf"larger than the maximum number of tokens that can be stored in KV cache \((?P<kv_tokens>{COUNT})\)",
        reason_class="max_model_len_above_pool",
    ),
    rule("for the cache blocks", r"No available memory for the cache blocks", reason_class="no_kv_memory"),
    rule(
        "less than desired GPU memory",
        r"Free memory on device.* is less than desired GPU memory utilization",
        reason_class="gpu_memory_taken",
    ),
)


def derive(numbers: dict[str, Printed]) -> None:
    """Add the activation peak where releases such as 0.6.4 print it together with the weights."""
    if "activation_gib" not in numbers and {"peak_torch_gib", "weights_gib"} <= numbers.keys():
        numbers["activation_gib"] = numbers["peak_torch_gib"].minus(numbers["weights_gib"])

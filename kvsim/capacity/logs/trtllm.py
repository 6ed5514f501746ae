"""Lines of TensorRT-LLM's start-up, 0.5 to 1.x, engines built ahead and the PyTorch backend alike.

The PyTorch backend sizes a small pool to measure the peak before it sizes the real one: the last line counts.
"""

from kvsim.capacity.logs.printed import Printed
from kvsim.capacity.logs.rules import COUNT, NUMBER, SIZE, rule

EXAMPLE = "[MemUsageChange] Allocated 26.91 GiB for max tokens in paged KV cache (220480)."

RULES = (
    rule("LLM version:", r"TensorRT[- ]LLM version: (?P<version>\d[\w.+-]*)"),
    rule("[TensorRT-LLM]", r"\[TensorRT-LLM\]\[INFO\] Engine version (?P<version>\d[\w.+-]*)"),
    rule("LLM Args:", r"\[TRT-LLM\].* LLM Args: (?P<echo>.*)"),
    rule("[TensorRT-LLM]", rf"MPI size: (?P<set_world_size>{COUNT})"),
    rule("TRTGptModel", rf"TRTGptModel maxBatchSize: (?P<set_max_num_seqs>{COUNT})"),
    rule("TRTGptModel", rf"TRTGptModel maxSequenceLen: (?P<set_max_model_len>{COUNT})"),
    rule("TRTGptModel", rf"TRTGptModel maxNumTokens: (?P<set_max_num_batched_tokens>{COUNT})"),
    rule("Loaded engine size:", rf"Loaded engine size: (?P<weights_gib>{SIZE})"),
    rule(
        "when calculating max tokens",
        rf"paged kv cache: total: (?P<total_gib>{SIZE}), available: (?P<available_gib>{SIZE})",
    ),
    # The PyTorch backend.
    rule("loading model weights", rf"weights \(inside torch\) in memory usage profiling: (?P<weights_gib>{SIZE})"),
    rule("dynamically allocated during", rf"\(inside torch\) in memory usage profiling: (?P<activation_gib>{SIZE})"),
    rule("Memory used outside torch", rf"in memory usage profiling: (?P<non_torch_gib>{SIZE})"),
    rule("Peak memory during", rf"fraction is set (?P<set_free_gpu_memory_fraction>{NUMBER})", keep="last"),
    rule("Peak memory during", rf"kv size (?:per token )?is (?P<kv_bytes_per_token>{COUNT})", keep="last"),
    rule("Peak memory during", rf"device total memory (?P<total_gib>{SIZE})", keep="last"),
    rule(
        "max_num_requests=",
        rf"max_seq_len=(?P<set_max_model_len>{COUNT}), max_num_requests=\d+, "
        rf"max_num_tokens=(?P<set_max_num_batched_tokens>{COUNT})(?:, max_batch_size=(?P<set_max_num_seqs>{COUNT}))?",
        keep="last",
    ),
    # The pool.
    rule("primary pool:", rf"blocks in KV cache primary pool: (?P<kv_blocks>{COUNT})", keep="last"),
    rule("primary blocks=", rf"primary blocks=(?P<kv_blocks>{COUNT})", keep="last"),
    rule("tokens per block=", rf"tokens per block=(?P<set_block_size>{COUNT})", keep="last"),
    rule("tokens per block:", rf"Number of tokens per block: (?P<set_block_size>{COUNT})", keep="last"),
    rule(
        "tokens in paged KV cache",
        rf"Allocated (?P<kv_memory_gib>{SIZE}) for max tokens in paged KV cache \((?P<kv_tokens>{COUNT})\)",
        keep="last",
    ),
    rule("for k/v cache", rf"Allocate (?P<kv_memory_gib>{SIZE}) for k/v cache", keep="last"),  # 0.5 to 0.8
    rule("tokens in paged KV cache", rf"Using (?P<kv_tokens>{COUNT}) tokens in paged KV cache", keep="last"),
    rule("Engine loaded and ready", r"Engine loaded and ready to serve", ready=True),
    rule("Executor instance created", r"Executor instance created by worker", ready=True),
    # Refusals.
    rule(
        "maxTokensInPagedKvCache",
        r"maxTokensInPagedKvCache must be large enough to process at least 1 sequence",
        reason_class="max_model_len_above_pool",
    ),
    rule("could not be created:", r"component could not be created: KV cache", reason_class="no_kv_memory"),
    rule("could not be created:", r"component could not be created: (?!KV cache)", reason_class="oom"),
)


def derive(numbers: dict[str, Printed]) -> None:
    """Nothing is printed in parts here."""

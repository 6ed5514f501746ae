"""Lines of SGLang's start-up, 0.2 to 0.5. It prints "GB" for GiB, and K and V apart."""

from kvsim.capacity.logs.printed import Printed
from kvsim.capacity.logs.rules import COUNT, SIZE, rule

EXAMPLE = "KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB"

RULES = (
    rule("server_args=ServerArgs(", r"server_args=ServerArgs\((?P<echo>.*)", restarts=True),
    rule("version", r"\bSGLang version:? (?P<version>\d[\w.+-]*)"),
    rule("Load weight begin.", rf"Load weight begin\. avail mem=(?P<free_gib>{SIZE})"),
    rule("Load weight end.", rf"Load weight end\..* avail mem=(?P<after_weights_gib>{SIZE})"),
    rule("Load weight end.", rf"Load weight end\..* mem usage=(?P<weights_gib>{SIZE})"),
    # A draft model's pool comes after the model's: the first counts.
    rule("KV Cache is allocated.", rf"KV Cache is allocated\..*#tokens: (?P<kv_tokens>{COUNT})"),
    rule("KV Cache is allocated.", rf"\bK size: (?P<k_gib>{SIZE}), V size: (?P<v_gib>{SIZE})"),
    rule("KV Cache is allocated.", rf"\bKV size: (?P<kv_memory_gib>{SIZE})"),
    # Sliding windows: two pools of different length, each announced like the only one, then the sum.
    rule(
        "SWAKVPool",
        rf"SWAKVPool mem usage: (?P<kv_memory_gib>{SIZE}), swa size: \d+, full size: (?P<kv_tokens>{COUNT})",
        keep="last",
    ),
    # One capture each for decode, prefill and draft; the words around differ by release.
    rule("Capture", rf"Capture .*(?:cuda|CUDA) graph end\..* mem usage=(?P<cuda_graph_gib>{SIZE})", keep="sum"),
    rule(
        "max_total_num_tokens=",
        rf"max_total_num_tokens=(?P<kv_tokens>{COUNT})"
        rf"(?:, chunked_prefill_size=(?P<set_max_num_batched_tokens>-?{COUNT}))?"
        rf"(?:, max_prefill_tokens=\d+)?(?:, max_running_requests=(?P<set_max_num_seqs>{COUNT}))?"
        rf"(?:, context_len=(?P<set_max_model_len>{COUNT}))?(?:, available_gpu_mem=(?P<left_gib>{SIZE}))?",
    ),
    rule("fired up", r"The server is fired up and ready to roll", ready=True),
    rule(
        "Not enough memory.",
        r"Not enough memory\. Please try to increase --mem-fraction-static",
        reason_class="no_kv_memory",
    ),
    rule("memory capacity is unbalanced", r"The memory capacity is unbalanced", reason_class="gpu_memory_taken"),
)


def derive(numbers: dict[str, Printed]) -> None:
    """Add K and V together, and the weights where releases before 0.4.4 print only what is free around them."""
    if "kv_memory_gib" not in numbers and "k_gib" in numbers:
        numbers["kv_memory_gib"] = numbers["k_gib"].plus(numbers["v_gib"])
    if "weights_gib" not in numbers and {"free_gib", "after_weights_gib"} <= numbers.keys():
        numbers["weights_gib"] = numbers["free_gib"].minus(numbers["after_weights_gib"])

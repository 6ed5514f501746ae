"""What is read from start-up logs of SGLang and TensorRT-LLM, in their formats with the numbers of real rows."""

import pytest

from kvsim.capacity.logs import read_log

# C031: gemma-3-4b-it on an H200, SGLang of the 0.4.4 era; rank 1 is added.
SGLANG = """\
[2025-03-27 16:37:01] server_args=ServerArgs(model_path='google/gemma-3-4b-it', tokenizer_path='x', dtype='auto', \
quantization=None, kv_cache_dtype='auto', mem_fraction_static=0.88, max_running_requests=None, tp_size=2, page_size=1)
[2025-03-27 16:37:02 TP0] Load weight begin. avail mem=139.21 GB
[2025-03-27 16:37:06 TP0] Load weight end. type=Gemma3ForConditionalGeneration, dtype=torch.bfloat16, \
avail mem=131.08 GB, mem usage=8.13 GB.
[2025-03-27 16:37:06 TP0] KV Cache is allocated. #tokens: 834615, K size: 54.12 GB, V size: 54.12 GB
[2025-03-27 16:37:06 TP1] KV Cache is allocated. #tokens: 834615, K size: 54.13 GB, V size: 54.13 GB
[2025-03-27 16:37:06 TP0] KV Cache is allocated. #tokens: 834615, K size: 0.33 GB, V size: 0.33 GB
[2025-03-27 16:37:06 TP0] Memory pool end. avail mem=14.61 GB
[2025-03-27 16:37:24 TP0] Capture cuda graph end. Time elapsed: 18.07 s. mem usage=1.10 GB. avail mem=13.51 GB.
[2025-03-27 16:37:30 TP0] Capture draft cuda graph end. Time elapsed: 2.00 s. mem usage=0.20 GB. avail mem=13.31 GB.
[2025-03-27 16:37:30 TP0] max_total_num_tokens=834615, chunked_prefill_size=8192, max_prefill_tokens=16384, \
max_running_requests=2048, context_len=131072, available_gpu_mem=13.31 GB
[2025-03-27 16:37:31] The server is fired up and ready to roll!
"""


def test_sglangs_k_and_v_are_added_together():
    log = read_log(SGLANG)
    kv = log.ranks["TP0"]["kv_memory_gib"]
    assert (log.engine, log.model, log.outcome) == ("sglang", "google/gemma-3-4b-it", "started")
    assert (kv.value, kv.low, kv.high) == pytest.approx((108.24, 108.23, 108.25))
    assert log.binding_rank == "TP0"


def test_sglangs_first_pool_is_the_models_and_a_drafts_comes_after():
    assert read_log(SGLANG).numbers["k_gib"].value == 54.12


def test_sglangs_captures_add_up():
    assert read_log(SGLANG).numbers["cuda_graph_gib"].value == pytest.approx(1.30)


def test_sglangs_settings_have_the_names_of_vllms():
    assert read_log(SGLANG).settings == {
        "mem_fraction_static": 0.88,
        "tensor_parallel": 2,
        "block_size": 1,
        "max_num_batched_tokens": 8192,
        "max_num_seqs": 2048,
        "max_model_len": 131_072,
    }


def test_weights_follow_from_what_is_free_around_them_where_only_that_is_printed():
    log = read_log(
        "[gpu_id=0] Load weight begin. avail mem=23.40 GB\n"
        "[gpu_id=0] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=15.61 GB\n"
    )
    assert log.ranks["rank 0"]["weights_gib"].value == pytest.approx(7.79)


def test_sliding_windows_make_two_pools_whose_sum_counts():
    log = read_log(
        "[2026-07-15 10:00:00] KV Cache is allocated. #tokens: 171008, K size: 9.00 GB, V size: 9.00 GB\n"
        "[2026-07-15 10:00:00] SWAKVPool mem usage: 36.69 GB, swa size: 171008, full size: 213761\n"
    )
    assert (log.numbers["kv_memory_gib"].value, log.numbers["kv_tokens"].value) == (36.69, 213_761)


def test_a_latent_cache_has_no_halves():
    log = read_log("[2025-12-18 22:43:05 TP2] KV Cache is allocated. #tokens: 60000, KV size: 0.13 GB\n\n")
    assert {name: number.value for name, number in log.numbers.items()} == {"kv_tokens": 60000, "kv_memory_gib": 0.13}


@pytest.mark.parametrize(
    ("line", "reason_class"),
    [
        ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "no_kv_memory"),
        (
            "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.",
            "gpu_memory_taken",
        ),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "oom_before_kv"),
    ],
)
def test_sglangs_failures_have_classes(line, reason_class):
    assert (
        read_log(f"[2025-03-27 16:37:02 TP0] Load weight begin. avail mem=23.21 GB\n{line}\n").reason_class
        == reason_class
    )


def test_tensorrt_llm_gives_memory_tokens_and_block_size():
    # C059.
    log = read_log(
        "[TensorRT-LLM] TensorRT-LLM version: 0.17.0.post1\n"
        "[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 3445\n"
        "[TensorRT-LLM][INFO] Number of tokens per block: 64.\n"
        "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 26.91 GiB for max tokens in paged KV cache (220480).\n"
        "[02/14/2025-09:38:53] [TRT-LLM] [I] max_seq_len=131072, max_num_requests=2048, max_num_tokens=8192\n"
        "[02/14/2025-09:38:53] [TRT-LLM] [I] Engine loaded and ready to serve...\n"
    )
    assert (log.engine, log.version, log.outcome) == ("trtllm", "0.17.0.post1", "started")
    assert log.settings == {"block_size": 64, "max_model_len": 131_072, "max_num_batched_tokens": 8192}
    assert {name: number.value for name, number in log.numbers.items()} == {
        "kv_blocks": 3445,
        "kv_memory_gib": 26.91,
        "kv_tokens": 220_480,
    }


def test_the_pool_that_the_pytorch_backend_measures_with_gives_way_to_the_real_one():
    log = read_log(
        "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 0.56 GiB for max tokens in paged KV cache (8224).\n"
        "[TRT-LLM] [I] Memory used after loading model weights (inside torch) in memory usage profiling: 63.52 GiB\n"
        "[TRT-LLM] [I] Memory used after loading model weights (outside torch) in memory usage profiling: 49.78 GiB\n"
        "[TRT-LLM] [I] Memory dynamically allocated during inference (inside torch) in memory usage profiling: 0.85 "
        "GiB\n"
        "[TRT-LLM] [I] Memory used outside torch (e.g., NCCL and CUDA graphs) in memory usage profiling: 49.28 GiB\n"
        "[TRT-LLM] [I] Peak memory during memory usage profiling (torch + non-torch): 113.65 GiB, available KV cache "
        "memory when calculating max tokens: 5.95 GiB, fraction is set 0.8999999761581421, kv size is 73728. device "
        "total memory 119.70 GiB, , tmp kv_mem 0.56 GiB\n"
        "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 5.95 GiB for max tokens in paged KV cache (86720).\n"
    )
    assert {name: number.value for name, number in log.numbers.items()} == {
        "kv_memory_gib": 5.95,
        "kv_tokens": 86_720,
        "weights_gib": 63.52,
        "activation_gib": 0.85,
        "non_torch_gib": 49.28,
        "kv_bytes_per_token": 73_728,
        "total_gib": 119.70,
    }
    assert log.numbers["kv_tokens"].value * 73_728 / 2**30 in log.numbers["kv_memory_gib"]


@pytest.mark.parametrize(
    ("line", "reason_class"),
    [
        (
            "maxTokensInPagedKvCache must be large enough to process at least 1 sequence to completion",
            "max_model_len_above_pool",
        ),
        ("The following component could not be created: KV cache", "no_kv_memory"),
        ("The following component could not be created: Model", "oom_before_kv"),
        ("CUDA runtime error in ::cudaMallocAsync(ptr, n, stream): out of memory (tllmBuffers.h:112)", "oom_before_kv"),
    ],
)
def test_tensorrt_llms_failures_have_classes(line, reason_class):
    assert read_log(f"[TensorRT-LLM][INFO] MPI size: 1, rank: 0\n{line}\n").reason_class == reason_class


def test_the_card_is_named_where_the_log_lists_it():
    engine = "[TensorRT-LLM] TensorRT-LLM version: 0.20.0\n"
    assert read_log(f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n{engine}").gpu == "NVIDIA H100 80GB HBM3"
    table = "|   0  NVIDIA GeForce RTX 4090        On  |   00000000:01:00.0 Off |\n"
    assert read_log(table + engine).gpu == "NVIDIA GeForce RTX 4090"

"""What is read from vLLM's start-up logs: written here in its formats, with the numbers of real rows.

Row names (C087, ...) are those of the table of public start-ups that the oracle tests read.
"""

import pytest

from kvsim.capacity.logs import read_log

# C087: Llama-3.1-8B, vLLM 0.19, two H100. Rank 1 is made a little poorer than rank 0.
TWO_RANKS = """\
\x1b[1;36m(APIServer pid=1)\x1b[0;0m INFO 05-21 21:03:02 [api_server.py:840] vLLM API server version 0.19.0
(APIServer pid=1) INFO 05-21 21:03:02 [utils.py:233] non-default args: \
{'model_tag': 'meta-llama/Llama-3.1-8B-Instruct', 'speculative_config': {'model': 'draft', 'sizes': [1, 2]}, \
'max_model_len': 8192, 'gpu_memory_utilization': 0.95}
(EngineCore_0 pid=199) INFO 05-21 21:03:20 [core.py:109] Initializing a V1 LLM engine (v0.19.0) with config: \
model='meta-llama/Llama-3.1-8B-Instruct', speculative_config=SpeculativeConfig(method='mtp', model='draft'), \
dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=2, quantization=None, kv_cache_dtype=auto
(Worker_TP0 pid=201) INFO 05-21 21:03:40 [gpu_model_runner.py:5187] Model loading took 7.51 GiB memory and 3.2 seconds
(Worker_TP0 pid=201) INFO 05-21 21:03:50 [gpu_worker.py:456] Available KV cache memory: 63.8 GiB
(Worker_TP1 pid=202) INFO 05-21 21:03:50 [gpu_worker.py:456] Available KV cache memory: 63.76 GiB
(EngineCore_0 pid=199) INFO 05-21 21:03:51 [kv_cache_utils.py:1316] GPU KV cache size: 1,044,688 tokens
(EngineCore_0 pid=199) INFO 05-21 21:03:51 [kv_cache_utils.py:1321] Maximum concurrency for 8,192 tokens per request: \
127.53x
Capturing CUDA graphs: 50%|#####\rCapturing CUDA graphs: 100%|##########
(Worker_TP0 pid=201) INFO 05-21 21:04:02 [gpu_model_runner.py:5279] Graph capturing finished in 5 secs, took 0.76 GiB
(EngineCore_0 pid=199) INFO 05-21 21:04:03 [core.py:288] init engine (profile, create kv cache, warmup model) took 43 s
(APIServer pid=1) INFO:     Application startup complete.
(EngineCore_0 pid=199) INFO 05-21 22:00:00 torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB
"""


def test_settings_are_read_under_kvsims_names_and_a_drafts_model_is_not_taken_for_the_model():
    log = read_log(TWO_RANKS)
    assert (log.engine, log.version, log.model) == ("vllm", "0.19.0", "meta-llama/Llama-3.1-8B-Instruct")
    assert log.settings == {
        "max_model_len": 8192,
        "gpu_memory_utilization": 0.95,
        "dtype": "bfloat16",
        "tensor_parallel": 2,
    }


def test_numbers_stand_per_rank_and_the_poorest_rank_decides():
    log = read_log(TWO_RANKS)
    assert log.ranks["TP0"]["kv_memory_gib"].value == 63.8
    assert log.binding_rank == "TP1"
    assert log.numbers["kv_memory_gib"].value == 63.76
    assert log.numbers["weights_gib"].value == 7.51  # only rank 0 prints it
    assert (log.numbers["kv_tokens"].value, log.numbers["max_concurrency"].value) == (1_044_688, 127.53)


def test_a_number_knows_its_line_and_what_its_digits_can_mean():
    number = read_log(TWO_RANKS).numbers["kv_memory_gib"]
    assert (number.low, number.high, number.line_number) == (63.755, 63.765, 6)
    assert number.text.endswith("Available KV cache memory: 63.76 GiB")


def test_a_dropped_zero_widens_nothing_because_the_engine_rounds_to_two_decimals():
    number = read_log(TWO_RANKS).ranks["TP0"]["kv_memory_gib"]
    assert (number.low, number.high) == (63.795, 63.805)


def test_what_fails_after_the_start_is_no_reason():
    log = read_log(TWO_RANKS)
    assert (log.outcome, log.reason_class) == ("started", None)


def test_the_log_of_an_early_release_gives_blocks():
    log = read_log(
        "INFO 10-18 09:59:26 llm_engine.py:73] Initializing an LLM engine with config: "
        "model='meta-llama/Llama-3.1-8B', dtype=torch.float16, max_seq_len=131072, tensor_parallel_size=1\n"
        "INFO 10-18 09:59:56 llm_engine.py:322] # GPU blocks: 2588, # CPU blocks: 2048\n"
    )
    assert (log.version, log.outcome) == (None, "unknown")
    assert (log.numbers["kv_blocks"].value, log.numbers["cpu_blocks"].value) == (2588, 2048)
    assert log.settings["dtype"] == "float16"


def test_the_budget_of_the_v0_engine_is_read_part_by_part():
    # C008: Llama-3-8B, 0.6.4+, H100.
    log = read_log(
        "INFO 12-14 worker.py:267] Memory profiling takes 1.73 seconds\n"
        "INFO 12-14 worker.py:267] the current vLLM instance can use total_gpu_memory (79.22GiB) x "
        "gpu_memory_utilization (0.90) = 71.30GiB\n"
        "INFO 12-14 worker.py:267] model weights take 14.96GiB; non_torch_memory takes 1.79GiB; PyTorch activation "
        "peak memory takes 1.26GiB; the rest of the memory reserved for KV Cache is 53.29GiB.\n"
        "INFO 12-14 executor_base.py:113] # cuda blocks: 27284, # CPU blocks: 0\n"
    )
    names = ("total_gib", "usable_gib", "weights_gib", "non_torch_gib", "activation_gib", "kv_memory_gib", "kv_blocks")
    assert [log.numbers[name].value for name in names] == [79.22, 71.30, 14.96, 1.79, 1.26, 53.29, 27284]
    assert log.settings == {"gpu_memory_utilization": 0.9}


def test_a_torch_peak_that_holds_the_weights_gives_the_activation_as_a_difference():
    log = read_log(
        "INFO 12-06 model_runner.py:1077] Loading model weights took 2.6419 GB\n"
        "INFO 12-06 worker.py:232] Memory profiling results: total_gpu_memory=7.92GiB initial_memory_usage=3.09GiB "
        "peak_torch_memory=3.12GiB memory_usage_post_profile=3.12Gib non_torch_memory=0.47GiB kv_cache_size=3.54GiB "
        "gpu_memory_utilization=0.90\n"
    )
    activation = log.numbers["activation_gib"]
    assert activation.value == pytest.approx(0.4781)
    assert (activation.low, activation.high) == pytest.approx((0.47305, 0.48315))


def test_of_two_prints_of_one_number_the_one_with_more_digits_is_kept():
    log = read_log(
        "INFO 09-28 [gpu_worker.py:298] Available KV cache memory: 8.60 GiB\n"
        "INFO 09-28 [gpu_worker.py:391] Free memory on device (23.08/23.53 GiB) on startup. Desired GPU memory "
        "utilization is (0.8, 18.82 GiB). Actual usage is 8.8 GiB for weight, 1.4 GiB for peak activation, 0.02 GiB "
        "for non-torch memory, and 0.68 GiB for CUDAGraph memory. Current kv cache memory in use is 9232221491 bytes.\n"
    )
    kv = log.numbers["kv_memory_gib"]
    assert kv.value * 2**30 == 9_232_221_491
    assert kv.width == 0
    assert {name: log.numbers[name].value for name in ("free_gib", "total_gib", "usable_gib")} == {
        "free_gib": 23.08,
        "total_gib": 23.53,
        "usable_gib": 18.82,
    }
    parts = ("weights_gib", "activation_gib", "non_torch_gib", "cuda_graph_gib")
    assert [log.numbers[name].value for name in parts] == [8.8, 1.4, 0.02, 0.68]
    assert (log.numbers["weights_gib"].low, log.numbers["weights_gib"].high) == (8.795, 8.805)


def test_weights_and_non_torch_are_one_number_in_late_releases():
    log = read_log(
        "(EngineCore pid=7) INFO 08-17 [kv_cache_utils.py:2033] GPU KV cache size: 313,650 tokens, Maximum concurrency "
        "for 262,144 tokens per request: 1.20x\n"
        "(EngineCore pid=7) INFO 08-17 [gpu_worker.py:804] Free memory on device (79.99/80.0 GiB) on startup. Desired "
        "GPU memory utilization is (0.92, 73.6 GiB). Actual usage is 51.66 GiB for consumed memory (weights + "
        "non-torch), 2.4 GiB for peak activation, and 0.71 GiB for CUDAGraph memory. Current kv cache memory in use is "
        "19.54 GiB.\n"
    )
    assert "weights_gib" not in log.numbers
    assert log.numbers["consumed_gib"].value == 51.66
    assert (log.numbers["kv_tokens"].value, log.numbers["max_concurrency"].value) == (313_650, 1.2)
    assert log.settings["max_model_len"] == 262_144


def test_the_last_start_counts_where_earlier_ones_failed():
    failed = (
        "INFO [api_server.py:1] vLLM API server version 0.11.0\nValueError: No available memory for the cache blocks.\n"
    )
    log = read_log(failed + TWO_RANKS)
    assert (log.outcome, log.version) == ("started", "0.19.0")


@pytest.mark.parametrize(
    ("line", "outcome", "reason_class", "numbers"),
    [
        (  # C056
            "ValueError: To serve at least one request with the model's max seq len (65536), (4.76 GiB KV cache is "
            "needed, which is larger than the available KV cache memory (1.56 GiB). Based on the available memory, "
            "the estimated maximum model length is 15984.",
            "refused",
            "max_model_len_above_pool",
            {"needed_kv_gib": 4.76, "kv_memory_gib": 1.56, "estimated_max_len": 15984},
        ),
        (
            "ValueError: To serve at least one request with the model's max seq len (262144), 12.0 GiB KV cache is "
            "needed, which is larger than the available KV cache memory (9.5 GiB).",
            "refused",
            "max_model_len_above_pool",
            {"needed_kv_gib": 12.0, "kv_memory_gib": 9.5},
        ),
        (  # C052
            "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be "
            "stored in KV cache (79392). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`.",
            "refused",
            "max_model_len_above_pool",
            {"kv_tokens": 79392},
        ),
        ("ValueError: No available memory for the cache blocks.", "refused", "no_kv_memory", {}),
        (
            "ValueError: Free memory on device cuda:0 (22.04/23.52 GiB) on startup is less than desired GPU memory "
            "utilization (0.95, 22.34 GiB). Decrease GPU memory utilization.",
            "refused",
            "gpu_memory_taken",
            {"free_gib": 22.04, "total_gib": 23.52, "usable_gib": 22.34},
        ),
        (
            "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).",
            "refused",
            "tensor_parallel",
            {},
        ),
        ("AssertionError: 151552 is not divisible by 6", "refused", "tensor_parallel", {}),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of "
            "23.52 GiB of which 512.00 MiB is free. Including non-PyTorch memory, this process has 22.9 GiB in use.",
            "oom",
            "oom_before_kv",
            {"oom_asked_gib": 1.5, "total_gib": 23.52, "oom_free_gib": 0.5},
        ),
    ],
)
def test_a_start_that_fails_has_a_class_and_the_numbers_of_its_message(line, outcome, reason_class, numbers):
    log = read_log(
        f"(EngineCore_DP0 pid=9) INFO [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: x\n{line}\n"
    )
    assert (log.outcome, log.reason_class, log.reason, log.reason_line_number) == (outcome, reason_class, line, 2)
    assert {name: number.value for name, number in log.numbers.items()} == numbers


def test_memory_that_runs_out_after_the_pool_was_sized_is_a_class_of_its_own():
    # C098: gpt-oss-20b at 0.95.
    log = read_log(
        "(EngineCore_DP0 pid=9) INFO [gpu_worker.py:1] Available KV cache memory: 58.47 GiB\n"
        "(EngineCore_DP0 pid=9) INFO [kv_cache_utils.py:1] GPU KV cache size: 1,277,184 tokens\n"
        "(EngineCore_DP0 pid=9) ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 786.00 MiB. GPU 0 "
        "has a total capacity of 79.19 GiB of which 552.50 MiB is free.\n"
    )
    assert (log.outcome, log.reason_class) == ("oom", "oom_after_kv")
    assert log.numbers["oom_asked_gib"].value * 1024 == 786
    assert log.numbers["oom_free_gib"].value * 1024 == 552.5


def test_a_hint_at_memory_running_out_is_no_death():
    log = read_log(
        "INFO model_runner.py:977] CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of "
        "memory, consider decreasing `gpu_memory_utilization`.\n"
        "INFO gpu_executor.py:119] # GPU blocks: 27793, # CPU blocks: 2048\n"
    )
    assert log.reason_class is None


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("(Worker_TP0_EP0 pid=1159) ", "TP0_EP0"),
        ("(Worker_PP1_TP0 pid=4633) ", "PP1_TP0"),
        ("(VllmWorker TP2 pid=415) ", "TP2"),
        ("[1;36m(VllmWorker rank=3 pid=415)[0;0m ", "rank 3"),
        ("(VllmWorkerProcess pid=29708) ", "rank 29708"),
        ("(EngineCore_DP1 pid=250) ", "DP1"),
        ("(EngineCore pid=250) ", ""),
        ("2026-04-19 12:09:28.974 | vllm_0  | ", ""),
    ],
)
def test_the_rank_is_read_from_the_prefix(prefix, rank):
    log = read_log(f"{prefix}INFO 10-06 12:00:31 [gpu_worker.py:1] Available KV cache memory: 1.23 GiB\n\n")
    assert list(log.ranks) == [rank]


def test_from_0_21_on_the_log_says_whether_an_estimate_of_the_graphs_was_set_aside():
    log = read_log(
        "(Worker_TP0 pid=514) INFO 07-12 02:34:00 [interface.py:620] Setting kv cache block size to 256 for "
        "DEEPSEEK_SPARSE_SWA backend.\n"
        "(Worker_TP0 pid=514) INFO [gpu_model_runner.py:6639] Estimated CUDA graph memory: 1.58 GiB total\n"
        "(Worker_TP0 pid=514) INFO 07-12 02:35:26 [gpu_worker.py:553] CUDA graph memory profiling is enabled (default "
        "since v0.21.0). The current --gpu-memory-utilization=0.9500 is equivalent to --gpu-memory-utilization=0.9334 "
        "without CUDA graph memory profiling.\n"
    )
    assert log.numbers["cuda_graph_estimate_gib"].value == 1.58
    assert log.settings == {"block_size": 256, "cuda_graph_profiling": "enabled", "gpu_memory_utilization": 0.95}


def test_the_banner_names_the_release():
    text = "(APIServer pid=1) INFO 07-30 07:06:32 [api_utils.py:345]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.26.0\n"
    assert read_log(f"{text}(EngineCore pid=79) INFO GPU KV cache size: 2,324,244 tokens\n").version == "0.26.0"

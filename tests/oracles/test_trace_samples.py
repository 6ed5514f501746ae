"""Every published or sample file is read to the last number.

Counts and sums were taken with zcat, jq and awk: of texts, with `length / 4 | ceil` of each message (4 characters a
token), prompts being all that was said before.
"""

import os
from pathlib import Path

import pytest

from kvsim.errors import InputError
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.trace.recording import Recording

pytestmark = pytest.mark.oracle

TEXT = ReadOptions(chars_per_token=4, output_tokens=1)


def path(name):
    folder = os.environ.get("KVSIM_DATA")
    if not folder:
        pytest.skip("KVSIM_DATA names no folder of recorded traces")
    return Path(folder, "traces", name)


def read(name, options=TEXT, on_bad_row="error"):
    recording = Recording(path(name), options=options, on_bad_row=on_bad_row)
    return list(recording), recording.report


# Name, format, requests, prompt tokens, output tokens, blocks (where the file has them).
SAMPLES = [
    ("aiperf_dag.jsonl.gz", "aiperf-turns", 4, 58, 210, None),
    ("aiperf_mooncake_sessions_delay.jsonl.gz", "mooncake", 3, 14_674, 1_010, 31),
    ("aiperf_multi_turn.jsonl.gz", "aiperf-turns", 3, 139, 290, None),
    ("aiperf_precise_schedule.jsonl.gz", "mooncake", 8, 2_800, 2_056, 10),
    ("aiperf_single_turn.jsonl.gz", "aiperf-single-turn", 3, 16, 160, None),
    ("azure_llm_2024.csv.gz", "azure", 5, 14_683, 35, 0),
    ("azure_lmm_2025_multimodal.csv.gz", "azure", 5, 4_485, 729, 0),
    ("bailian.jsonl.gz", "bailian", 3, 1_261, 221, 80),
    ("blis_trace_v2.csv.gz", "blis", 3, 3_416, 400, 16),
    ("dynamo_replay_agentic_mooncake.jsonl.gz", "dynamo-agentic", 3, 12, 6, 3),
    ("dynamo_replay_applied_compute_agentic.jsonl.gz", "applied-compute", 3, 16 + 28 + 40, 12, 0),
    ("dynamo_replay_dynamo_agentic.jsonl.gz", "dynamo", 4, 16, 8, 4),
    ("dynamo_replay_dynamo_standard.jsonl.gz", "dynamo", 2, 8, 4, 2),
    ("dynamo_replay_mooncake.jsonl.gz", "mooncake", 2, 56, 7, 2),
    ("dynamo_replay_mooncake_delta.jsonl.gz", "mooncake", 2, 24, 8, 2),
    ("github_copilot_agent_2026.jsonl.gz", "copilot", 2, 42_000, 360, 0),
    ("inference_perf_otel_parallel_requests.json.gz", "otel", 5, 439, 203, None),
    ("inference_perf_otel_simple_chain.json.gz", "otel", 3, 185, 132, None),
    ("llmservingsim_agentic.jsonl.gz", "llmservingsim", 2, 3_054, 258, 0),
    ("llmservingsim_flat.jsonl.gz", "llmservingsim", 10, 120, 591, 12),
    ("mooncake_tiny.jsonl.gz", "mooncake", 16, 154_607, 4_347, 313),
    ("openai_batch.jsonl.gz", "openai-batch", 1, 5, 32, None),
    ("servegen_offline_content_hash.jsonl.gz", "servegen-offline", 3, 816, 3, 52),
    ("servegen_offline_stat.jsonl.gz", "servegen-offline", 2, 115, 4_401, 0),
    ("sharegpt.json.gz", "sharegpt", 3, 23, 17, None),
    ("splitwise_sim.csv.gz", "splitwise", 3, 1_649, 208, 0),
    ("tracelab_round_trace.sanitized.jsonl.gz", "tracelab", 19, 514_012, 11_335, 0),
    ("vidur_trace.csv.gz", "vidur", 2, 770, 153, 0),
    ("vllm_custom.jsonl.gz", "vllm-custom", 2, 15, 2, None),
]

PUBLISHED = [
    ("azure_llm_2023/AzureLLMInferenceTrace_code.csv.gz", "azure", 8_819, 18_059_974, 245_896, 0),
    ("burstgpt/BurstGPT_1.first400.csv.gz", "burstgpt", 383, 208_189, 110_612, 0),
    ("burstgpt/BurstGPT_3.first400.csv.gz", "burstgpt", 399, 246_941, 68_350, 0),
    ("mooncake/conversation_trace.jsonl.gz", "mooncake", 12_031, 144_793_823, 4_122_048, 288_500),
    ("agent_lmcache/miniswe_qwen_blksz_16.jsonl.gz", "bailian", 402, 2_539_538, 44_251, 158_919),
    ("agent_lmcache/magagent_qwen_blksz_16.jsonl.gz", "bailian", 693, 1_574_007, 442_876, 98_676),
    (
        "lengths_vidur_etalon/sharegpt_8k_filtered_stats_llama2_tokenizer.csv.gz",
        *("lengths", 30_731, 71_911_571, 13_481_988, 0),
    ),
    (
        "lengths_vidur_etalon/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv.gz",
        *("lengths", 28_257, 73_131_321, 8_234_948, 0),
    ),
    (
        "lengths_vidur_etalon/bwb_stats_llama2_tokenizer_filtered_v2.csv.gz",
        *("lengths", 33_768, 36_036_681, 54_461_924, 0),
    ),
    ("lengths_vidur_etalon/splitwise_code.csv.gz", "vidur", 8_819, 18_059_974, 245_896, 0),
    ("lengths_vidur_etalon/splitwise_conv.first2600s.csv.gz", "vidur", 15_314, 18_070_623, 3_085_087, 0),
]


@pytest.mark.parametrize(
    ("name", "format", "requests", "prompts", "outputs", "blocks"),
    [(f"format_samples/{name}", *rest) for name, *rest in SAMPLES] + PUBLISHED,
)
def test_counts_and_sums_are_those_of_other_tools(name, format, requests, prompts, outputs, blocks):
    found, report = read(name)
    assert report.format == format
    assert len(found) == report.rows_kept == requests
    assert sum(request.prompt_tokens for request in found) == prompts
    assert sum(request.output_tokens for request in found) == outputs
    assert blocks in (None, sum(len(request.blocks) for request in found))


def test_every_sample_that_is_a_trace_is_among_these():
    there = {place.name for place in path("format_samples").iterdir()}
    no_trace = {
        "aiperf_production_trace.jsonl.gz",
        "blis_workload_spec_multiturn.yaml.gz",
        "inference_perf_shared_prefix.yaml.gz",
        "vllm_multi_turn_generate.json.gz",
    }
    assert there == {name for name, *_ in SAMPLES} | no_trace


@pytest.mark.parametrize(
    "name",
    [
        "blis_workload_spec_multiturn.yaml.gz",
        "inference_perf_shared_prefix.yaml.gz",
        "vllm_multi_turn_generate.json.gz",
    ],
)
def test_a_description_of_traffic_is_no_trace(name):
    with pytest.raises(InputError, match="no header of a known format; known formats: "):
        read(f"format_samples/{name}")


def test_the_sample_that_contradicts_itself_is_refused_at_its_row():
    """aiperf's production sample has 3 ids for 1,024 tokens in its third row: one more than blocks of 512 hold."""
    name = "format_samples/aiperf_production_trace.jsonl.gz"
    with pytest.raises(InputError, match=r"row 3 .*: 3 ids for 1024 tokens, not 2 of 512"):
        read(name)
    found, report = read(name, on_bad_row="drop")
    assert (len(found), report.rows_read) == (9, 10)
    assert sum(request.prompt_tokens for request in found) == 7_680 - 1_024


def test_weka_sessions_are_read_whole_subagents_included():
    """jq: 7,643 requests, 1,129,831,225 prompt and 3,206,215 output tokens, 8 without output, in 150 files."""
    found, report = read("weka_agentic", ReadOptions(failed="keep"))
    assert len(found) == 7_643
    assert sum(request.prompt_tokens for request in found) == 1_129_831_225
    assert sum(request.output_tokens for request in found) == 3_206_215
    assert sum(request.failed for request in found) == 8
    assert len({request.session for request in found}) == 150 + 11
    assert len({request.scope for request in found}) == 150
    assert (report.block_tokens, report.hash_scope, report.prefix_identity) == (64, "session", "real")


def test_sessions_of_the_derived_agent_traces_are_those_that_have_no_parent():
    for name, sessions in (("miniswe", 20), ("magagent", 25)):
        found, _ = read(f"agent_lmcache/{name}_qwen_blksz_16.jsonl.gz")
        assert len({request.session for request in found}) == sessions


def test_the_hashed_sharegpt_trace_is_mooncake_in_blocks_of_16():
    name = "llmservingsim_sharegpt/sharegpt-llama-3.1-8b-300-sps10.hash16.jsonl.gz"
    with pytest.raises(InputError, match="say how many tokens a block of this trace has"):
        read(name)
    found, _ = read(name, ReadOptions(block_tokens=16))
    assert (len(found), sum(request.prompt_tokens for request in found)) == (300, 257_239)
    assert sum(len(request.blocks) for request in found) == 16_225


def test_the_fields_beside_lengths_of_the_samples_are_read():
    deltas, _ = read("format_samples/dynamo_replay_mooncake_delta.jsonl.gz", ReadOptions(prompts="delta"))
    assert [request.prompt_tokens for request in deltas] == [16, 16 + 4 + 8]
    agents, _ = read("format_samples/dynamo_replay_dynamo_agentic.jsonl.gz")
    assert [[link.relation for link in request.after] for request in agents] == [
        [],
        ["spawn"],
        ["turn"],
        ["turn", "join"],
    ]
    copilot, _ = read("format_samples/github_copilot_agent_2026.jsonl.gz")
    assert sum(request.new_prompt_tokens for request in copilot) == 10_000
    rounds, _ = read("format_samples/tracelab_round_trace.sanitized.jsonl.gz")
    assert sum(request.new_prompt_tokens for request in rounds) == 40_456
    assert len({request.session for request in rounds}) == 2

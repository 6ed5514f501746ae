"""Statistics of recorded traces, to the digits that another count printed of the same files.

Printed digits are halves up. The IDC is the variance over the mean of counts in bins of 60 s from the first arrival,
the last, partly filled bin included.
"""

import os
from collections import defaultdict
from functools import cache
from math import floor
from pathlib import Path

import numpy as np
import pytest

from kvsim.workload.readers.clients.servegen import Population
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.statistics.inspect import inspect
from kvsim.workload.statistics.lengths import weighted_spread
from kvsim.workload.statistics.population import inspect_population
from kvsim.workload.trace.recording import Recording

pytestmark = pytest.mark.oracle

CODE = "azure_llm_2023/AzureLLMInferenceTrace_code.csv.gz"
CONVERSATION = "mooncake/conversation_trace.jsonl.gz"
MINISWE = "agent_lmcache/miniswe_qwen_blksz_16.jsonl.gz"
MAGAGENT = "agent_lmcache/magagent_qwen_blksz_16.jsonl.gz"
SHAREGPT = "lengths_vidur_etalon/sharegpt_8k_filtered_stats_llama2_tokenizer.csv.gz"
ARXIV = "lengths_vidur_etalon/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv.gz"
BWB = "lengths_vidur_etalon/bwb_stats_llama2_tokenizer_filtered_v2.csv.gz"
BURST_1 = "burstgpt/BurstGPT_1.first400.csv.gz"
BURST_3 = "burstgpt/BurstGPT_3.first400.csv.gz"


def path(name):
    folder = os.environ.get("KVSIM_DATA")
    if not folder:
        pytest.skip("KVSIM_DATA names no folder of recorded traces")
    return Path(folder, "traces", name)


@cache
def found(name, failed="drop"):
    return inspect(Recording(path(name), options=ReadOptions(failed=failed)))


def printed(value, digits=0):
    """As a table prints it: halves up."""
    return floor(value * 10**digits + 0.5) / 10**digits


def lengths(spread):
    return tuple(printed(value) for value in (spread.mean, spread.p50, spread.p95, spread.p99, spread.max))


LENGTHS = [
    (CODE, "prompt", (2048, 1469, 7303, 7436, 7437)),
    pytest.param(
        *(CODE, "output", (28, 13, 90, 252, 1899)),
        marks=pytest.mark.xfail(
            strict=True,
            reason="p99 is 251.46 here and in the full precision of the same source (fits.json), but printed was 252, "
            "the observation above; of numpy's 13 definitions none but straight lines gives the other 47 percentiles",
        ),
    ),
    (CONVERSATION, "prompt", (12035, 6909, 39551, 85400, 126195)),
    (CONVERSATION, "output", (343, 350, 698, 1119, 2000)),
    (MINISWE, "prompt", (6317, 3993, 25438, 39793, 47021)),
    (MINISWE, "output", (110, 95, 226, 291, 356)),
    (MAGAGENT, "prompt", (2271, 1055, 10623, 11040, 11259)),
    (MAGAGENT, "output", (639, 340, 919, 10000, 10000)),
    (SHAREGPT, "prompt", (2340, 1730, 6563, 7434, 8141)),
    (SHAREGPT, "output", (439, 415, 920, 998, 1024)),
    (ARXIV, "prompt", (2588, 2730, 3813, 3933, 4054)),
    (ARXIV, "output", (291, 167, 736, 3271, 4056)),
    (BWB, "prompt", (1067, 1037, 1584, 1800, 3504)),
    (BWB, "output", (1613, 1601, 2342, 2533, 2858)),
    (BURST_1, "prompt", (544, 353, 1639, 1958, 2126)),
    (BURST_1, "output", (289, 238, 842, 1425, 2019)),
]


@pytest.mark.parametrize(("name", "what", "expected"), LENGTHS)
def test_lengths_have_the_printed_mean_percentiles_and_maximum(name, what, expected):
    trace = found(name)
    assert lengths(trace.prompt_tokens if what == "prompt" else trace.output_tokens) == expected


def test_the_other_four_digits_of_the_code_traces_outputs_are_the_printed_ones():
    mean, p50, p95, p99, most = lengths(found(CODE).output_tokens)
    assert (mean, p50, p95, most) == (28, 13, 90, 1899)
    assert p99 == 251


ROWS = [
    (CODE, 8819, 3436, 2.57, 2, 13.2, 1),
    (CONVERSATION, 12031, 3537, 3.40, 2, 3.03, 2),
    (MINISWE, 402, 552, 0.73, 2, 0.67, 2),
    (MAGAGENT, 693, 6449, 0.11, 2, 1.6, 1),
]


@pytest.mark.parametrize(("name", "rows", "span_s", "rate", "rate_digits", "cv", "cv_digits"), ROWS)
def test_rows_span_rate_and_cv_are_the_printed_ones(name, rows, span_s, rate, rate_digits, cv, cv_digits):
    trace = found(name)
    assert trace.report.rows_kept == rows
    assert printed(trace.arrivals.span_s) == span_s
    assert printed(trace.arrivals.rate_per_s, rate_digits) == rate
    assert printed(trace.arrivals.cv, cv_digits) == cv


def test_the_burstgpt_slice_has_the_printed_row_with_failed_calls_as_arrivals():
    """400 calls, 383 of which did not fail; the printed CV leaves out the 4 gaps of 0 on a clock of seconds."""
    trace = found(BURST_1, "keep")
    assert (trace.report.rows_kept, trace.report.rows_kept - trace.failed) == (400, 383)
    assert printed(trace.arrivals.span_s) == 37_269
    assert printed(trace.arrivals.rate_per_s, 4) == 0.0107
    assert printed(trace.arrivals.cv_untied, 2) == 4.54
    assert printed(trace.arrivals.cv, 2) == 4.56


@pytest.mark.parametrize(
    ("name", "idc", "digits"),
    [
        (CODE, 161, 0),
        (MINISWE, 3.2, 1),
        (MAGAGENT, 3.5, 1),
        pytest.param(
            *(CONVERSATION, 2.9, 1),
            marks=pytest.mark.xfail(
                strict=True,
                reason="2.846 with the last bin, 2.895 without it or as a sample's variance: the code trace would then "
                "have 164 or 163, not 161, and mini-SWE 0.6 or 3.6, not 3.2",
            ),
        ),
    ],
)
def test_the_idc_is_the_printed_one_with_the_last_bin(name, idc, digits):
    assert printed(found(name).arrivals.idc, digits) == idc


def test_the_idc_of_whole_bins_is_told_beside_it():
    assert printed(found(CONVERSATION).arrivals.idc_whole_bins, 1) == 2.9
    assert printed(found(CODE).arrivals.idc_whole_bins) == 164
    assert printed(found(MINISWE).arrivals.idc_whole_bins, 2) == 0.56


@pytest.mark.parametrize(
    ("name", "correlation"),
    [(CODE, -0.02), (CONVERSATION, 0.07), (SHAREGPT, 0.05), (BWB, 0.81)],
)
def test_prompts_and_outputs_correlate_as_printed(name, correlation):
    assert printed(found(name).rank_correlation, 2) == correlation


@pytest.mark.parametrize(
    ("name", "blocks", "distinct", "hit_blocks", "hit_tokens"),
    [
        (CONVERSATION, 288_500, 182_790, 0.366, 0.374),
        (MINISWE, 158_919, 10_645, 0.933, 0.934),
        (MAGAGENT, 98_676, 15_411, 0.844, 0.844),
    ],
)
def test_the_ideal_hit_is_the_printed_one_in_blocks_and_tokens(name, blocks, distinct, hit_blocks, hit_tokens):
    sharing = found(name).sharing
    assert (sharing.blocks, sharing.distinct_blocks) == (blocks, distinct)
    assert (printed(sharing.ideal_hit_blocks, 3), printed(sharing.ideal_hit_tokens, 3)) == (hit_blocks, hit_tokens)


def test_sessions_of_people_are_as_printed():
    """Calls a session 2.9 / 2 / 10 (mean, p50, p95), 43 % single; answer to next call 116 / 2760 / 5187 s."""
    sessions = found(BURST_3).sessions
    assert (printed(sessions.calls.mean, 1), sessions.calls.p50, printed(sessions.calls.p95)) == (2.9, 2, 10)
    assert printed(sessions.single_share, 2) == 0.43
    assert tuple(printed(value) for value in (sessions.wait_s.p50, sessions.wait_s.p95, sessions.wait_s.p99)) == (
        *(116, 2760, 5187),
    )
    assert sessions.wait_from == "end"


@pytest.mark.parametrize(
    ("name", "clients", "rate", "cv", "top_share"),
    [("reason_deepseek-r1", 73, 16.0, 1.0, 0.286), ("multimodal_mm-image", 35, 9.5, 1.0, 0.135)],
)
def test_servegens_clients_have_the_printed_rate_burstiness_and_skew(name, clients, rate, cv, top_share):
    """Of the two sets that are whole: mean rate, rate-weighted median CV, and the share of the busiest client."""
    statistics, _ = inspect_population(Population(path(f"servegen/{name}.tar.gz"), name))
    assert statistics.clients == clients
    assert printed(statistics.rate_per_s, 1) == rate
    assert printed(statistics.cv, 1) == cv
    assert printed(statistics.top_share, 3) == top_share


@pytest.mark.parametrize(
    ("name", "field", "expected"),
    [
        ("reason_deepseek-r1", "input_tokens", (1576, 180, 9163, 26836)),
        ("reason_deepseek-r1", "output_tokens", (2133, 1014, 7858, 15063)),
        ("multimodal_mm-image", "text_tokens", (615, 106, 2379, 3086)),
        ("multimodal_mm-image", "image_tokens", (684, 690, 1232, 1265)),
        ("multimodal_mm-image", "output_tokens", (128, 97, 341, 602)),
    ],
)
def test_servegens_lengths_are_the_printed_ones_by_the_rates_at_which_their_windows_begin(name, field, expected):
    """The printed row weighs the law of six hours with the rate of its first ten minutes.

    `kvsim trace inspect` weighs it with the requests of all six hours: R1's outputs are 1,527 tokens then, not 2,133.
    """
    weights = defaultdict(float)
    for client in Population(path(f"servegen/{name}.tar.gz"), name):
        rates = {window.start_s: window.rate_per_s for window in client.windows}
        for start_s, laws in client.laws.items():
            law, rate = laws.get(field), rates.get(start_s, 0.0)
            if law is not None and sum(law.weights):
                for value, weight in zip(law.values, law.weights, strict=True):
                    weights[value] += rate * weight / sum(law.weights)
    spread = weighted_spread(np.array(list(weights)), np.array(list(weights.values())))
    assert tuple(printed(value) for value in (spread.mean, spread.p50, spread.p95, spread.p99)) == expected

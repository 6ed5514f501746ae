"""Recorded traffic: the packaged slice, the recorded files, limits, and time warped to a rate."""

import os
from fractions import Fraction
from pathlib import Path

import pytest

from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.workload.streams import Streams
from kvsim.workload.trace import PACKAGED, TraceTraffic, trace_path

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
DATA = os.environ.get("KVSIM_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="KVSIM_DATA does not name the folder of recorded traces")


def read(traffic):
    return list(traffic.rows(Streams(0)))


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    seconds = [0, 1, 2, 4, 8]
    path.write_text("\n".join([HEADER, *(f"2023-11-16 18:15:{s:02},{100 + s},{10 + s}" for s in seconds)]))
    return path


# Counts and sums below were taken with awk from the files, not with the reader.


def test_the_packaged_slice_is_the_first_600_calls_of_the_azure_conversation_trace():
    rows = read(TraceTraffic("azure-conv-2023"))
    assert len(rows) == 600
    assert sum(prompt for _, prompt, _ in rows) == 553_386
    assert sum(output for _, _, output in rows) == 156_892
    assert rows[0] == (0, 374, 44)
    assert rows[-1] == (148_189_130_000_000, 91, 24)


@needs_data
@pytest.mark.oracle
def test_the_packaged_slice_equals_the_head_of_the_recorded_file():
    recorded = Path(DATA) / "traces/azure_llm_2023/AzureLLMInferenceTrace_conv.first2600s.csv.gz"
    assert read(TraceTraffic(recorded, requests=600)) == read(TraceTraffic("azure-conv-2023"))


def test_the_packaged_slice_of_code_completion_is_600_calls_with_their_bursts():
    rows = read(TraceTraffic("azure-code-2023"))
    assert len(rows) == 600
    assert sum(prompt for _, prompt, _ in rows) == 1_327_580
    assert sum(output for _, _, output in rows) == 18_338
    pauses = sorted(late - early for (early, *_), (late, *_) in zip(rows, rows[1:], strict=False))
    assert pauses[-1] / PS_PER_S == pytest.approx(38.5136, abs=1e-4)
    assert pauses[300] < PS_PER_S // 10


@needs_data
@pytest.mark.oracle
def test_the_packaged_slice_of_code_completion_is_calls_314_to_913_of_the_recorded_file():
    recorded = read(TraceTraffic(Path(DATA) / "traces/azure_llm_2023/AzureLLMInferenceTrace_code.csv.gz", requests=913))
    first_ps = recorded[313][0]
    packaged = read(TraceTraffic("azure-code-2023"))
    assert [(time_ps - first_ps, prompt, output) for time_ps, prompt, output in recorded[313:]] == packaged


@needs_data
@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "rows", "prompt_tokens", "output_tokens"),
    [
        ("azure_llm_2023/AzureLLMInferenceTrace_conv.first2600s.csv.gz", 15_314, 18_070_623, 3_085_087),
        ("azure_llm_2023/AzureLLMInferenceTrace_code.csv.gz", 8_819, 18_059_974, 245_896),
        ("format_samples/azure_llm_2024.csv.gz", 5, 14_683, 35),
        ("format_samples/azure_lmm_2025_multimodal.csv.gz", 5, 4_485, 729),
    ],
)
def test_the_published_files_are_read_whole(name, rows, prompt_tokens, output_tokens):
    got = read(TraceTraffic(Path(DATA) / "traces" / name))
    assert len(got) == rows
    assert sum(prompt for _, prompt, _ in got) == prompt_tokens
    assert sum(output for _, _, output in got) == output_tokens


def test_requests_keeps_the_first_so_many_and_reads_no_further(trace):
    trace.write_text(trace.read_text() + "\nbroken")
    traffic = TraceTraffic(trace, requests=3)
    assert read(traffic) == [(0, 100, 10), (PS_PER_S, 101, 11), (2 * PS_PER_S, 102, 12)]
    assert traffic.survey().rows_read == 3


def test_a_limit_beyond_the_end_is_told_in_the_report(trace):
    report = TraceTraffic(trace, requests=100).describe()
    assert (report["requests_asked"], report["rows_kept"]) == (100, 5)


def test_a_rate_warps_time_so_that_the_mean_gap_is_its_inverse_and_bursts_keep_their_shape(trace):
    arrivals = [time for time, _, _ in read(TraceTraffic(trace, rate=4))]
    # Four gaps in 8 s: 0.5 per second, so eight times as fast.
    assert arrivals == [0, PS_PER_S // 8, PS_PER_S // 4, PS_PER_S // 2, PS_PER_S]


def test_a_rate_is_that_of_the_rows_that_are_kept(trace):
    arrivals = [time for time, _, _ in read(TraceTraffic(trace, rate=4, requests=3))]
    assert arrivals == [0, PS_PER_S // 4, PS_PER_S // 2]


def test_warped_times_round_once():
    recorded = [time for time, _, _ in read(TraceTraffic("azure-conv-2023"))]
    warped = [time for time, _, _ in read(TraceTraffic("azure-conv-2023", rate=0.7))]
    factor = Fraction(599) / Fraction("0.7") * PS_PER_S / recorded[-1]
    assert all(abs(got - time * factor) <= Fraction(1, 2) for time, got in zip(recorded, warped, strict=True))


def test_the_report_says_how_time_was_warped(trace):
    report = TraceTraffic(trace, rate=4).describe()
    assert report["time_warp"] == 0.125
    assert (report["recorded_rate_per_s"], report["rate_per_s"]) == (0.5, 4.0)
    assert (report["recorded_span_s"], report["span_s"]) == (8.0, 1.0)


def test_a_time_scale_multiplies_every_gap(trace):
    assert [time for time, _, _ in read(TraceTraffic(trace, time_scale=0.5))][1] == PS_PER_S // 2


def test_the_report_counts_rows_and_names_what_the_trace_lacks(trace):
    trace.write_text(trace.read_text() + "\n2023-11-16 18:15:09,5,0\nsoon,5,5\nlater,5,5")
    report = TraceTraffic(trace, on_bad_row="drop").describe()
    assert report["rows_read"] == 8
    assert report["rows_kept"] == 5
    assert report["rows_dropped"] == {"an output of 0 tokens (a failed call)": 1, "not a time": 2}
    assert report["format"] == "azure"
    assert report["prefix_identity"] == "absent"
    assert report["time_warp"] == 1


def test_reading_again_gives_the_same_rows_and_the_same_report(trace):
    traffic = TraceTraffic(trace, rate=3)
    assert read(traffic) == read(traffic)
    assert traffic.describe() == TraceTraffic(trace, rate=3).describe()


def test_rows_at_one_moment_have_no_rate_to_scale(trace):
    with pytest.raises(InputError, match="all 1 rows used have the same time"):
        read(TraceTraffic(trace, rate=4, requests=1))
    assert TraceTraffic(trace, requests=1).describe()["rate_per_s"] is None


def test_a_survey_meets_the_bad_row_before_the_run_does(trace):
    trace.write_text(trace.read_text() + "\nsoon,5,5")
    with pytest.raises(InputError, match=r"row 6 \(line 7 of the file\), column TIMESTAMP"):
        TraceTraffic(trace).survey()


def test_every_packaged_name_has_its_file():
    assert all(trace_path(name).is_file() for name in PACKAGED)


def test_a_trace_that_does_not_exist_is_an_error_with_the_packaged_names(tmp_path):
    with pytest.raises(
        InputError,
        match=r"no such trace file; .* packaged traces: "
        r"azure-conv-2023, azure-code-2023, lmcache-web-agents, mooncake-conversation$",
    ):
        TraceTraffic(tmp_path / "none.csv")
    with pytest.raises(InputError, match=r"did you mean azure-conv-2023\?$"):
        TraceTraffic("azure-conv")


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"format": "csv"}, "format"),
        ({"on_bad_row": "skip"}, "on_bad_row"),
        ({"requests": 0}, "requests"),
        ({"requests": 1.5}, "requests"),
        ({"rate": 0}, "rate"),
        ({"rate": -1}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"rate": float("inf")}, "rate"),
        ({"time_scale": 0}, "time_scale"),
        ({"rate": 1, "time_scale": 1}, "time_scale"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_by_name(options, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        TraceTraffic("azure-conv-2023", **options)

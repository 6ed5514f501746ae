"""Statistics of small samples, counted by hand."""

import tracemalloc

import numpy as np
import pytest

from kvsim.request import PS_PER_S
from kvsim.workload.readers.request import After, TraceRequest
from kvsim.workload.statistics.arrivals import arrivals
from kvsim.workload.statistics.inspect import inspect
from kvsim.workload.statistics.lengths import rank_correlation, spread, weighted_spread
from kvsim.workload.statistics.sessions import SessionsCount
from kvsim.workload.statistics.sharing import SharingCount
from kvsim.workload.trace.recording import Recording
from tests.workload.readers.forms import FORMS


def at_s(*times):
    return [round(time * PS_PER_S) for time in times]


def test_percentiles_lie_on_straight_lines_between_ranks():
    found = spread([1, 2, 3, 4, 10])
    assert (found.mean, found.p50, found.max) == (4, 3, 10)
    # Rank 0.95 x 4 = 3.8: four fifths of the way from 4 to 10.
    assert found.p95 == pytest.approx(8.8)
    assert spread([]) is None


def test_a_law_has_the_percentiles_at_which_enough_of_its_weight_is_reached():
    found = weighted_spread(np.array([30.0, 10.0, 20.0, 99.0]), np.array([0.5, 0.2, 0.3, 0.0]))
    assert (found.mean, found.p50, found.p95, found.max) == (23, 20, 30, 30)
    assert weighted_spread(np.array([1.0]), np.array([0.0])) is None


def test_rank_correlation_looks_at_order_alone_with_ties_at_their_mean():
    assert rank_correlation([1, 2, 3], [10, 1000, 1001]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    # Ranks 1 2.5 2.5 4 against 1 2 3 4.
    assert rank_correlation([1, 5, 5, 9], [1, 2, 3, 4]) == pytest.approx(0.9486833)
    assert rank_correlation([4, 4], [1, 2]) is None
    assert rank_correlation([4], [1]) is None


def test_the_rate_is_that_of_gaps_and_the_cv_their_standard_deviation_over_their_mean():
    found = arrivals(at_s(0, 1, 2, 6))
    assert (found.span_s, found.rate_per_s) == (6, 0.5)
    assert found.cv == pytest.approx(2**0.5 / 2)


def test_the_idc_counts_the_last_bin_or_leaves_it_out():
    # Bins of 60 s from the first arrival: 3, 1, 2 (the last up to 130 s alone).
    found = arrivals(at_s(5, 6, 7, 70, 130, 135))
    assert found.idc == pytest.approx((1 + 1 + 0) / 3 / 2)
    assert found.idc_whole_bins == pytest.approx(1 / 2)


def test_arrivals_in_any_order_and_far_from_the_clocks_start_lose_no_digit():
    start = 63_835_755_346 * PS_PER_S  # In the year 2023, on a clock that begins with the year 1.
    found = arrivals([start + 3, start + 1, start + 2])
    assert found.span_s == 2e-12
    assert found.cv == 0


def test_too_few_arrivals_tell_no_rate():
    assert arrivals([]) is None
    found = arrivals(at_s(5, 5))
    assert (found.rate_per_s, found.cv, found.tied_share) == (None, None, 1)


def request(id, prompt=48, **more):
    return TraceRequest(id, prompt, 1, **more)


def test_a_hit_is_the_leading_run_of_blocks_that_were_there():
    count = SharingCount()
    for blocks in ((1, 2, 3), (1, 2, 4), (9, 2, 3)):
        count.add(request("x", 40, blocks=blocks, block_tokens=16))
    found = count.result()
    assert (found.blocks, found.distinct_blocks) == (9, 5)
    assert found.ideal_hit_blocks == pytest.approx(2 / 9)
    assert found.ideal_hit_tokens == pytest.approx(32 / 120)
    assert found.session_hit_tokens is None


def test_a_whole_prompt_that_was_there_is_no_more_than_its_tokens():
    count = SharingCount()
    for _ in range(2):
        count.add(request("x", 40, blocks=(1, 2, 3), block_tokens=16))
    assert count.result().ideal_hit_tokens == pytest.approx(0.5)


def test_equal_ids_of_two_scopes_are_no_hit():
    count = SharingCount()
    for scope in ("a", "b"):
        count.add(request("x", blocks=(1, 2, 3), block_tokens=16, scope=scope))
    assert count.result().ideal_hit_blocks == 0


def test_what_turns_add_tells_what_was_there():
    count = SharingCount()
    count.add(request("x", 100, new_prompt_tokens=40))
    count.add(request("y", 100, new_prompt_tokens=10))
    assert count.result().session_hit_tokens == pytest.approx(0.75)
    assert count.result().ideal_hit_blocks is None


def test_sessions_are_counted_with_the_waits_that_are_told():
    count = SessionsCount()
    count.add(request("1", session="a", new_prompt_tokens=9))
    count.add(request("2", session="a", after=(After("1", 3 * PS_PER_S),), new_prompt_tokens=5))
    count.add(request("3", session="a", after=(After("2", None),)))
    count.add(request("4", session="b", after=(After("1", 7, "end", "spawn"),)))
    found = count.result()
    assert (found.sessions, found.single_share, found.calls.mean) == (2, 0.5, 2)
    assert (found.wait_from, found.wait_s.mean, found.wait_s.max) == ("end", 3, 3)
    assert found.new_prompt_tokens.mean == 5
    assert SessionsCount().result() is None


def test_a_trace_that_times_some_calls_alone_tells_no_rate(tmp_path):
    assert inspect(FORMS["mooncake"].read(tmp_path)).arrivals is None
    assert inspect(FORMS["bailian"].read(tmp_path)).arrivals.span_s == 13.75


def test_failed_calls_that_are_kept_count_as_arrivals_and_not_as_lengths(tmp_path):
    from kvsim.workload.readers.options import ReadOptions

    path = FORMS["burstgpt"].write(tmp_path)
    found = inspect(Recording(path, options=ReadOptions(failed="keep")))
    assert (found.failed, list(found.prompts), found.arrivals.rate_per_s) == (1, [50, 90], pytest.approx(2 / 30))


def test_a_long_trace_is_read_as_numbers_and_never_held_as_requests(tmp_path):
    path = tmp_path / "long.csv"
    rows = 20_000
    text = "".join(f"{number}.5,{number % 4000 + 1},{number % 500 + 1}\n" for number in range(rows))
    path.write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n" + text)
    inspect(Recording(path, requests=10))  # Imports, once.
    tracemalloc.start()
    try:
        assert sum(1 for _ in Recording(path)) == rows
        streaming = tracemalloc.get_traced_memory()[1]
        assert inspect(Recording(path)).report.rows_kept == rows
        inspecting = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert streaming < 400_000
    # As a list, 20,000 requests would take 6 MB; numbers, and what the percentiles and ranks need, some 100 B each.
    assert inspecting < 150 * rows

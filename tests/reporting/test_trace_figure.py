"""The figure of a trace: equal bytes for an equal trace, one panel where nothing is told of times."""

import pytest

from kvsim.reporting.trace import draw_trace, write_trace
from kvsim.workload.statistics.inspect import inspect
from kvsim.workload.trace.recording import Recording
from tests.workload.readers.forms import FORMS


def test_a_trace_with_times_has_lengths_and_arrivals():
    figure = draw_trace(inspect(Recording("azure-conv-2023")))
    lengths, arrivals = figure.axes
    assert lengths.get_xlabel() == "tokens"
    assert arrivals.get_xlabel() == "minutes since the first request"
    assert "600 of 600 rows of azure-conv-2023" in " ".join(text.get_text() for text in figure.texts)
    (bars,) = arrivals.patches
    counts, edges, _ = bars.get_data()
    step_s = 60 * (edges[1] - edges[0])
    assert sum(counts) * step_s == pytest.approx(600)


def test_a_trace_without_times_has_lengths_alone(tmp_path):
    assert len(draw_trace(inspect(FORMS["lengths"].read(tmp_path))).axes) == 1


def test_calls_at_one_moment_have_no_arrivals_to_draw(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n0,5,1\n0,9,2\n")
    assert len(draw_trace(inspect(Recording(path))).axes) == 1


def test_equal_traces_give_equal_bytes(tmp_path):
    for folder in ("one", "two"):
        write_trace(inspect(Recording("mooncake-conversation")), tmp_path / folder)
    for name in ("trace.json", "trace.png", "trace.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()

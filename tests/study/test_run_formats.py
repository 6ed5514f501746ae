"""Traces of every format that tells when each call came run as they are, and share what they tell."""

import pytest

from kvsim.scenario import Scenario
from kvsim.study import run
from tests.workload.readers.forms import FORMS

TIMED = ["azure", "burstgpt", "vidur", "splitwise", "blis", "bailian", "dynamo", "copilot", "tracelab"]


def result(folder, name, *, caching=False):
    scenario = {
        "model": "llama-3.1-8b",
        "gpu": "H100",
        "engine": {"max_model_len": 32768},
        "workload": {"trace": str(FORMS[name].write(folder))},
    }
    if caching:
        scenario["allocator"] = {"name": "paged", "prefix_caching": True}
    return run(Scenario.from_dict(scenario))


@pytest.mark.parametrize("name", TIMED)
def test_every_call_of_the_trace_arrives_and_finishes(tmp_path, name):
    expected = [request for request in FORMS[name].read(tmp_path) if not request.failed]
    metrics = result(tmp_path, name).summary["metrics"]
    assert metrics["finished"] == len(expected)


def test_failed_calls_are_told_in_the_notes_though_no_row_was_bad(tmp_path):
    notes = " ".join(result(tmp_path, "burstgpt").notes)
    assert "1 of 3 rows of the trace were dropped (a failed call: 1)" in notes


def test_a_chat_finds_the_blocks_of_its_parent_in_the_cache(tmp_path):
    """The second turn's prompt of 64 tokens begins with two whole blocks of the first's."""
    assert result(tmp_path, "bailian", caching=True).summary["metrics"]["hit_rate"] == pytest.approx(32 / (40 + 64))
    assert not result(tmp_path, "bailian").summary["metrics"].get("hit_rate")


def test_a_group_of_prompts_finds_its_shared_blocks(tmp_path):
    shared = result(tmp_path, "blis", caching=True).summary["metrics"]["hit_rate"]
    assert shared == pytest.approx(32 / (552 + 640 + 2048))

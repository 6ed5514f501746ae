"""The timeline keeps to the Trace Event Format, field by field, and tells what the tables tell."""

import json
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from kvsim.cli.main import main
from kvsim.errors import InputError
from kvsim.reporting.exports import EXPORTS, Options, read_source
from kvsim.reporting.exports.chrome_trace import microseconds, trace_events
from kvsim.step import CLASSES

COMMON = {"name": str, "ph": str, "pid": int, "tid": int, "args": dict}
"""Fields that every event of ours has, with their types."""
FIELDS = {
    "X": {"ts": int, "dur": int, "cat": str},
    "C": {"ts": int, "cat": str},
    "i": {"ts": int, "s": str, "cat": str},
    "M": {},
}
"""What each phase adds: complete, counter, instant, metadata events."""
METADATA = {"process_name": {"name": str}, "process_sort_index": {"sort_index": int}, "thread_name": {"name": str}}


@pytest.fixture(scope="module")
def document(folder):
    [(_, lines)] = EXPORTS["chrome-trace"].files(read_source(folder), Options())
    return json.loads("".join(lines))


@pytest.fixture(scope="module")
def events(document):
    return document["traceEvents"]


def of(events, phase, category):
    return [event for event in events if event["ph"] == phase and event.get("cat") == category]


def test_every_event_has_the_fields_of_its_phase_and_no_other(events):
    assert {event["ph"] for event in events} == set(FIELDS)
    for event in events:
        fields = COMMON | FIELDS[event["ph"]]
        assert {name: type(value) for name, value in event.items()} == fields
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
        assert event.get("s", "t") in ("g", "p", "t")
        if event["ph"] == "M":
            assert {name: type(value) for name, value in event["args"].items()} == METADATA[event["name"]]
        if event["ph"] == "C":
            assert event["args"]
            assert all(type(value) is int and value >= 0 for value in event["args"].values())


def test_the_document_is_the_object_form_and_says_where_its_numbers_come_from(document):
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert document["displayTimeUnit"] in ("ms", "ns")
    told = document["otherData"]
    assert told["name"] == "small <b>&"
    assert told["provenance of timing"] == "datasheet"
    assert "Sampling" in told["not modelled"]


def test_every_process_and_thread_with_events_has_one_name(events):
    named = Counter((event["pid"], event["tid"]) for event in events if event["name"] == "thread_name")
    used = {(event["pid"], event["tid"]) for event in events if event["ph"] in ("X", "i")}
    assert set(named) == used
    assert set(named.values()) == {1}
    assert {event["pid"] for event in events} == {event["pid"] for event in events if event["name"] == "process_name"}


def test_each_request_is_a_slice_from_its_arrival_to_its_end(events, result):
    slices = {event["name"]: event for event in of(events, "X", "request")}
    table = result.requests
    assert len(slices) == len(table) == 60
    for row in table.itertuples():
        event = slices[f"request {row.id}"]
        assert event["ts"] == round(row.arrival_s * 1e6)
        assert event["ts"] + event["dur"] == round(row.end_s * 1e6)
        assert event["args"]["prompt_tokens"] == row.prompt_tokens
        assert (event["args"]["end"], event["args"]["tenant"]) == (row.end, row.tenant)
        assert event["args"].get("preemptions", 0) == row.preemptions


def test_phases_fill_a_request_without_gap_or_overlap_and_last_as_long_as_the_table_says(events, result):
    by_thread = defaultdict(list)
    for event in of(events, "X", "phase"):
        by_thread[event["tid"]].append(event)
    away = result.preemptions
    for event in of(events, "X", "request"):
        begin, end = event["ts"], event["ts"] + event["dur"]
        own = [one for one in by_thread[event["tid"]] if begin <= one["ts"] and one["ts"] + one["dur"] <= end]
        row = result.requests.loc[int(event["name"].split()[1])]
        if row.end == "rejected":
            assert (event["dur"], own) == (0, [])
            continue
        assert own[0]["ts"] == begin
        assert all(a["ts"] + a["dur"] == b["ts"] for a, b in pairwise(own))
        assert own[-1]["ts"] + own[-1]["dur"] == end
        lasting = Counter()
        for one in own:
            lasting[one["name"]] += one["dur"]
        mine = away[away.request == row.id]
        gone_s = (mine.resumed_s.fillna(row.end_s) - mine.time_s).sum()
        assert lasting["waiting"] == pytest.approx(row.queue_s * 1e6, abs=1)
        assert lasting["preempted"] == pytest.approx(gone_s * 1e6, abs=2)
        work_s = row.e2e_s - row.queue_s - gone_s
        assert lasting["prefill"] + lasting["decode"] == pytest.approx(work_s * 1e6, abs=3)
        if not len(mine):
            assert lasting["prefill"] == pytest.approx(row.prefill_s * 1e6, abs=1)
        else:
            assert any("computes_again_tokens" in one["args"] for one in own)


def test_no_two_requests_share_a_thread_at_a_time_and_no_thread_is_taken_in_vain(events):
    by_thread = defaultdict(list)
    for event in of(events, "X", "request"):
        by_thread[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in by_thread.values():
        assert all(first[1] <= second[0] for first, second in pairwise(sorted(spans)))
    edges = [(moment, step) for spans in by_thread.values() for a, b in spans for moment, step in ((a, 1), (b, -1))]
    most = present = 0
    for _, step in sorted(edges):
        present += step
        most = max(most, present)
    assert len(by_thread) == most


def test_steps_are_slices_that_do_not_overlap_and_carry_the_counts_of_the_table(events, result):
    slices = of(events, "X", "step")
    assert len(slices) == len(result.steps)
    assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in pairwise(slices))
    for event, row in zip(slices, result.steps.itertuples(), strict=True):
        assert event["ts"] == round(row.start_s * 1e6)
        assert event["dur"] == pytest.approx(row.duration_s * 1e6, abs=1)
        for name in ("steps", "prefill_tokens", "decode_tokens", "context_tokens", "running", "waiting"):
            assert event["args"][name] == getattr(row, name)
        assert ("prefill" in event["name"]) == (row.prefill_tokens > 0)
        assert ("decode" in event["name"]) == (row.decode_tokens > 0)


def test_memory_by_class_adds_up_to_the_pool_at_every_time(events, result):
    counters = [event for event in of(events, "C", "memory") if "by class" in event["name"]]
    assert len(counters) == len(result.memory)
    assert {sum(event["args"].values()) for event in counters} == {120 * 16}
    for event, row in zip(counters, result.memory.itertuples(), strict=True):
        assert (event["ts"], event["args"]) == (
            round(row.time_s * 1e6),
            {name: getattr(row, name) for name in CLASSES},
        )


def test_preemptions_and_refusals_are_instants(events, result):
    lost = of(events, "i", "preemption")
    assert sorted(event["ts"] for event in lost) == [round(time_s * 1e6) for time_s in result.preemptions.time_s]
    told = Counter(event["name"] for event in of(events, "i", "blocked"))
    table = Counter(f"{row.outcome}: {row.cause}" for row in result.events.itertuples())
    assert told == table
    assert told["reject: never"] == 8


def test_rounding_to_microseconds_keeps_the_order_of_times():
    times = [0.1 + 1e-7 * step for step in range(1000)]
    rounded = [microseconds(time_s) for time_s in times]
    assert rounded == sorted(rounded)


def test_the_same_run_gives_the_same_bytes_from_memory_and_from_its_folder(document, result):
    assert list(trace_events(result)) == document["traceEvents"]


def test_a_comparison_is_several_timelines(comparison, capsys):
    with pytest.raises(InputError, match="is a comparison of paged/1, reserve"):
        list(EXPORTS["chrome-trace"].files(read_source(comparison), Options()))
    assert main(["export", str(comparison / "paged-1"), "--to", "chrome-trace"]) == 0
    assert json.loads(capsys.readouterr().out)["otherData"]["name"] == "paged/1"

"""Every format: known from how it begins, and read to the last number. Expectations were counted by hand."""

import gzip

import pytest

from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.workload.readers import READERS
from kvsim.workload.readers.request import After
from kvsim.workload.trace.recording import Recording
from tests.workload.readers.forms import FORMS

MS = PS_PER_S // 1000


@pytest.fixture
def read(tmp_path):
    return lambda name: list(FORMS[name].read(tmp_path))


def test_every_format_of_the_registry_has_a_form_here():
    assert set(FORMS) == set(READERS)


@pytest.mark.parametrize("name", FORMS)
def test_a_format_is_known_from_how_it_begins_plain_and_zipped(tmp_path, name):
    form = FORMS[name]
    plain = form.write(tmp_path)
    assert Recording(plain, options=form.options).reader.format == name
    zipped = tmp_path / "zipped"
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    again = Recording(zipped, options=form.options)
    assert again.reader.format == name
    assert list(again) == list(Recording(plain, options=form.options))


@pytest.mark.parametrize("name", FORMS)
def test_a_byte_order_mark_and_lines_that_end_as_on_windows_do_no_harm(tmp_path, name):
    form = FORMS[name]
    expected = list(form.read(tmp_path))
    path = tmp_path / "other"
    path.write_bytes(("\ufeff" + form.text.replace("\n", "\r\n")).encode())
    assert list(Recording(path, options=form.options)) == expected


@pytest.mark.parametrize("name", FORMS)
def test_ids_are_unlike_and_links_go_to_requests_that_came_before(tmp_path, name):
    seen = set()
    for request in FORMS[name].read(tmp_path):
        assert request.id not in seen
        assert {link.request for link in request.after} <= seen
        seen.add(request.id)


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        ("azure", [(374, 44), (396, 109)]),
        ("burstgpt", [(50, 20), (90, 30)]),
        ("vidur", [(374, 44), (396, 109)]),
        ("recorded-run", [(374, 44), (396, 109)]),
        ("lengths", [(74, 918), (290, 905)]),
        ("splitwise", [(374, 44), (396, 109)]),
        ("blis", [(552, 64), (640, 80), (2048, 256)]),
        ("mooncake", [(1000, 5), (1500, 6), (600, 4)]),
        ("bailian", [(40, 9), (64, 8)]),
        ("servegen-offline", [(31, 7), (33, 7)]),
        ("llmservingsim", [(18, 3), (100, 10), (120, 11)]),
        ("dynamo", [(8, 2), (6, 3)]),
        ("dynamo-agentic", [(4, 2), (5, 2)]),
        ("weka", [(130, 5), (200, 6), (64, 3), (260, 8)]),
        ("copilot", [(20000, 310), (22000, 50)]),
        ("tracelab", [(100, 9), (130, 4)]),
        ("applied-compute", [(16, 4), (28, 5), (42, 3)]),
        ("serving-benchmark", [(10, 1), (30, 3)]),
        ("aiperf-records", [(100, 20), (60, 8), (140, 30)]),
        ("guidellm", [(40, 8), (70, 9), (30, 7)]),
        ("otel", [(10, 2), (20, 1)]),
        ("sharegpt", [(20, 4), (26, 1), (16, 3)]),
        # The root's second turn comes behind the session that it waits for.
        ("aiperf-turns", [(10, 10), (3, 4), (22, 5)]),
        ("aiperf-single-turn", [(10, 64), (11, 64)]),
        ("vllm-custom", [(10, 7), (11, 9)]),
        ("openai-batch", [(10, 32)]),
        ("table", [(33, 4), (48, 5)]),
    ],
)
def test_lengths_are_those_of_the_file(read, name, lengths):
    assert [(request.prompt_tokens, request.output_tokens) for request in read(name)] == lengths


@pytest.mark.parametrize(
    ("name", "times_ps"),
    [
        ("burstgpt", [100 * PS_PER_S, 130 * PS_PER_S]),
        ("vidur", [0, 4_314_579 * 10**6]),
        ("recorded-run", [0, 4_314_579 * 10**6]),
        ("lengths", [None, None]),
        ("splitwise", [0, 4_314_479 * 10**6]),
        ("blis", [0, 2_500_000 * 10**6, 3_000_000 * 10**6]),
        ("mooncake", [0, None, 30 * MS]),
        ("bailian", [61_500 * MS, 75_250 * MS]),
        ("servegen-offline", [None, None]),
        ("llmservingsim", [500_000, 2 * PS_PER_S, None]),
        ("dynamo", [100 * MS, 120 * MS]),
        ("dynamo-agentic", [None, None]),
        ("weka", [None, None, None, None]),
        ("applied-compute", [None, None, None]),
        ("serving-benchmark", [5 * PS_PER_S, 7_500 * MS]),
        ("aiperf-records", [PS_PER_S, 3_200 * MS, 4_500 * MS]),
        ("guidellm", [10 * PS_PER_S, 12_500 * MS, 20 * PS_PER_S]),
        ("sharegpt", [None, None, None]),
        ("aiperf-single-turn", [0, 1500 * MS]),
        ("table", [500 * MS, 2 * PS_PER_S]),
    ],
)
def test_times_are_exact_in_the_unit_of_the_format(read, name, times_ps):
    assert [request.arrival_ps for request in read(name)] == times_ps


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("burstgpt", [(), (After("1", 25 * PS_PER_S),)]),
        ("blis", [(), (After("0", 2_500_000 * 10**6, "start"),), ()]),
        ("mooncake", [(), (After("1", 40 * MS),), ()]),
        ("bailian", [(), (After("1", 13_750 * MS, "start"),)]),
        ("llmservingsim", [(), (), (After("2.0", 7000),)]),
        ("dynamo", [(), (After("p", 10 * MS, "end", "spawn"),)]),
        ("dynamo-agentic", [(), (After("r", 5 * MS, "start", "spawn"),)]),
        (
            "weka",
            [
                (),
                (After("w#1", 10_500 * MS),),
                (After("w#2", 7 * PS_PER_S, "end", "spawn"),),
                (After("w#2", 37 * PS_PER_S), After("w#3", 0, "end", "join")),
            ],
        ),
        ("copilot", [(), (After("m1", 3_800 * MS),)]),
        ("tracelab", [(), (After("m1", 2_500 * MS),)]),
        ("applied-compute", [(), (After("1.0", 500 * MS),), (After("1.1", 2 * PS_PER_S),)]),
        ("otel", [(), (After("t/a", 1_500 * MS),)]),
        ("aiperf-records", [(), (After("a", 200 * MS, "end", "spawn"),), (After("a", 1_500 * MS),)]),
        ("guidellm", [(), (After("q1", PS_PER_S),), ()]),
        # The file does not say how long people thought.
        ("sharegpt", [(), (After("a/1", None),), ()]),
        (
            "aiperf-turns",
            [
                (),
                (After("root/0", 0, "end", "spawn"),),
                (After("root/0", 500 * MS), After("kid/0", 500 * MS, "end", "join")),
            ],
        ),
        ("table", [(), (After("1", None),)]),
    ],
)
def test_links_say_what_a_request_waits_for_and_how_long(read, name, links):
    assert [request.after for request in read(name)] == links


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("copilot", [8000, 2000]),
        ("tracelab", [40, 30]),
        ("applied-compute", [16, 8, 9]),
        ("sharegpt", [20, 2, 16]),
        ("aiperf-turns", [10, 3, 2]),
        ("mooncake", [None, None, None]),
    ],
)
def test_what_a_turn_adds_is_there_where_the_file_tells_it(read, name, new):
    assert [request.new_prompt_tokens for request in read(name)] == new


@pytest.mark.parametrize(
    ("name", "blocks", "block_tokens", "scope"),
    [
        ("mooncake", [(7, 9), (7, 9, 8), (7, 5)], 512, ""),
        ("bailian", [(1, 2, 3), (1, 2, 4, 5)], 16, ""),
        ("servegen-offline", [(0, 1), (0, 2, 3)], 16, ""),
        ("dynamo", [(501, 502), (501,)], 4, ""),
        ("dynamo-agentic", [(1,), (1, 2)], 4, "p"),
        ("weka", [(1, 2, 3), (1, 2, 3), (9,), (1, 2, 3, 4, 5)], 64, "w"),
        ("table", [("1", "2", "3"), ("1", "2", "4")], 16, ""),
        # 40 shared tokens hold two whole blocks of 16.
        ("blis", [("sys/0", "sys/1"), ("sys/0", "sys/1"), ()], 16, ""),
    ],
)
def test_blocks_have_their_size_and_their_scope(read, name, blocks, block_tokens, scope):
    requests = read(name)
    assert [request.blocks for request in requests] == blocks
    assert {request.block_tokens for request in requests} == {block_tokens}
    assert {request.scope for request in requests} == {scope}


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        # The second turn begins with the first prompt (20 tokens: a whole block); b's prompt is a's first 16 tokens.
        ("sharegpt", [(0, 1, 1), (0, 2, 1)]),
        ("otel", [(0, 1, 0)]),
        ("vllm-custom", [(0, 1, 0)]),
    ],
)
def test_texts_that_begin_alike_begin_with_equal_blocks(read, name, shared):
    requests = read(name)
    for first, second, whole_blocks in shared:
        pairs = zip(requests[first].blocks, requests[second].blocks, strict=False)
        alike = next((at for at, (one, other) in enumerate(pairs) if one != other), 1)
        assert alike == whole_blocks


def test_people_priorities_classes_deadlines_and_cancellations_are_kept(read):
    first, second, third = read("blis")
    assert (first.tenant, first.tags) == ("t1", {"slo_class": "standard", "status": "ok"})
    assert (first.deadline_ps, second.session) == (None, "s1")
    assert third.deadline_ps == third.cancel_at_ps == 9 * PS_PER_S
    assert [request.priority for request in read("mooncake")] == [0, 0, 2]
    assert [request.tenant for request in read("splitwise")] == ["7", "8"]
    assert [request.priority for request in read("table")] == [-1, 0]
    assert read("copilot")[1].cancel_at_ps - read("copilot")[1].arrival_ps == 3_100 * MS
    assert [request.cancel_at_ps for request in read("aiperf-records")] == [None, None, 9 * PS_PER_S]
    assert [request.duration_ps for request in read("guidellm")] == [1_500 * MS, 500 * MS, PS_PER_S]
    assert read("burstgpt")[0].tags == {"model": "GPT-4", "type": "Conversation log"}


@pytest.mark.parametrize(
    ("name", "dropped"),
    [
        ("burstgpt", {"a failed call": 1}),
        ("weka", {"a failed call": 1}),
        ("serving-benchmark", {"a failed call": 1}),
        ("aiperf-records", {"a failed call": 1, "a warm-up request": 1}),
        ("guidellm", {"a failed call": 1}),
        ("dynamo", {"an event that ends no request": 1}),
        ("dynamo-agentic", {"the header": 1}),
        ("otel", {"a span that is no call to a model": 1}),
    ],
)
def test_what_is_no_request_is_counted_by_reason(tmp_path, name, dropped):
    report = FORMS[name].read(tmp_path).report
    assert report.dropped == dropped
    assert report.rows_read == report.rows_kept + sum(dropped.values())


@pytest.mark.parametrize(
    ("name", "unit", "identity", "scope", "block_tokens"),
    [
        ("azure", "wall clock", "absent", "none", 0),
        ("burstgpt", "seconds", "absent", "none", 0),
        ("mooncake", "milliseconds", "real", "global", 512),
        ("bailian", "seconds", "real", "global", 16),
        ("weka", "seconds", "real", "session", 64),
        ("llmservingsim", "nanoseconds", "real", "global", 16),
        ("blis", "microseconds", "real", "global", 16),
        ("dynamo-agentic", "milliseconds", "real", "session", 4),
        ("copilot", "wall clock", "real", "none", 0),
        ("lengths", "none", "absent", "none", 0),
    ],
)
def test_the_report_says_units_identity_scope_and_block_size(tmp_path, name, unit, identity, scope, block_tokens):
    report = FORMS[name].read(tmp_path).report
    assert report.time_unit == unit
    assert (report.prefix_identity, report.hash_scope, report.block_tokens) == (identity, scope, block_tokens)


def test_columns_that_nobody_reads_are_named(tmp_path):
    assert FORMS["table"].read(tmp_path).report.ignored_columns == ("colour",)


def test_a_trace_of_texts_must_be_told_how_to_count(tmp_path):
    path = FORMS["sharegpt"].write(tmp_path)
    with pytest.raises(InputError, match=r"holds text, not token counts; say how many characters a token has"):
        list(Recording(path))


def test_requests_keeps_the_first_so_many(tmp_path):
    assert len(list(FORMS["weka"].read(tmp_path, requests=2))) == 2


def test_a_recording_can_be_read_again_and_says_the_same(tmp_path):
    recording = FORMS["weka"].read(tmp_path)
    assert list(recording) == list(recording)
    assert recording.report == FORMS["weka"].read(tmp_path).report

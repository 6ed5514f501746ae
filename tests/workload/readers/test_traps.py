"""What goes wrong with traces, one by one: units, columns that move, ids of several kinds, wrong references."""

import json

import pytest

from kvsim.errors import InputError
from kvsim.metrics.requests import entering
from kvsim.request import PS_PER_S
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.readers.request import After
from kvsim.workload.replayed.traffic import ReplayTraffic
from kvsim.workload.statistics.inspect import inspect
from kvsim.workload.stream import Workload
from kvsim.workload.streams import Streams
from kvsim.workload.trace import TraceTraffic
from kvsim.workload.trace.contents import prompt_contents
from kvsim.workload.trace.prefixes import read_prefixes
from kvsim.workload.trace.recording import Recording
from tests.workload.readers.forms import FORMS, lines
from tests.workload.readers.messages import message

MOONCAKE = {"timestamp": 0, "input_length": 1000, "output_length": 5, "hash_ids": [7, 9]}
CHAT = {"chat_id": 1, "parent_chat_id": -1, "timestamp": 1, "input_length": 16, "output_length": 2, "hash_ids": [1]}


# 1 and 2: units are tested with the forms; columns that move, and calls that failed


SIX = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n100,GPT-4,50,20,70,API log\n"


def test_burstgpt_is_read_by_name_whether_it_has_6_columns_or_8(write):
    (six,) = Recording(write(SIX))
    assert (six.prompt_tokens, six.output_tokens, six.arrival_ps) == (50, 20, 100 * PS_PER_S)
    assert (six.session, six.duration_ps) == ("", None)
    first, _ = FORMS["burstgpt"].read(write("").parent)
    assert (first.session, first.duration_ps) == ("s1", 5 * PS_PER_S)


def test_failed_calls_are_dropped_and_counted_or_kept_and_marked(tmp_path):
    form = FORMS["burstgpt"]
    assert form.read(tmp_path).report.dropped == {"a failed call": 1}
    kept = list(Recording(form.write(tmp_path), options=ReadOptions(failed="keep")))
    assert [request.failed for request in kept] == [False, True, False]
    assert [request.prompt_tokens for request in kept] == [50, 0, 90]


def test_failed_calls_that_are_kept_never_run(tmp_path):
    traffic = TraceTraffic(FORMS["burstgpt"].write(tmp_path), options=ReadOptions(failed="keep"))
    assert [row[1:] for row in traffic.rows(Streams(0))] == [(50, 20), (90, 30)]


# 3: as many ids as whole blocks, or one more


@pytest.mark.parametrize("ids", [[7], [7, 9]])
def test_ids_may_count_the_partly_filled_last_block_or_not(write, ids):
    (request,) = Recording(write(lines(MOONCAKE | {"hash_ids": ids})))
    assert request.blocks == tuple(ids)


def test_ids_that_do_not_fit_the_prompt_say_which_blocks_would(write):
    text = message(write(lines(MOONCAKE | {"hash_ids": [1, 2, 3, 4]})))
    assert text.startswith(
        "row 1 (line 1 of the file), column hash_ids: [1, 2, 3, 4]: 4 ids for 1000 tokens, not 1 or 2"
    )
    assert "blocks of 250 tokens would do" in text


def test_a_chat_turn_that_is_no_exact_extension_of_its_parent_is_read_as_it_stands(write):
    path = write(lines(CHAT, CHAT | {"chat_id": 2, "parent_chat_id": 1, "input_length": 33, "hash_ids": [1, 8, 9]}))
    first, second = Recording(path)
    assert second.after == (After("1", 0, "start"),)
    assert (first.session, second.session) == ("1", "1")


# 4: ids that mean something within a session alone


def weka(folder, *names, **changes):
    for name in names:
        document = json.loads(FORMS["weka"].text) | {"id": name} | changes
        (folder / f"{name}.json").write_text(json.dumps(document))
    return folder


def test_equal_ids_of_two_sessions_are_two_blocks(tmp_path):
    found = read_prefixes(weka(tmp_path, "a", "b"))
    one = read_prefixes(weka(tmp_path / ".." / tmp_path.name, "a"))
    assert one.distinct_blocks == found.distinct_blocks == 12
    assert inspect(Recording(tmp_path)).sharing.distinct_blocks == 12


def test_sharing_between_sessions_is_made_up_on_demand_and_said_to_be(tmp_path):
    weka(tmp_path, "a", "b")
    shared = Recording(tmp_path, options=ReadOptions(shared_system=True))
    # Tools and system prompt are 128 tokens: two blocks of 64 of the first request, in both sessions.
    assert inspect(shared).sharing.distinct_blocks == 10
    assert shared.report.prefix_identity == "synthesised"
    assert Recording(tmp_path).report.prefix_identity == "real"


def test_sessions_of_other_tools_share_nothing_even_on_demand(tmp_path):
    weka(tmp_path, "a")
    weka(tmp_path, "b", tool_tokens=90)
    shared = Recording(tmp_path, options=ReadOptions(shared_system=True))
    assert inspect(shared).sharing.distinct_blocks == 12


# 5: the size of a block is a convention


def test_the_size_of_a_block_is_what_is_told_else_the_files_else_the_formats(write):
    (plain,) = Recording(write(lines(MOONCAKE)))
    (said,) = Recording(write(lines(MOONCAKE | {"block_size": 500})))
    (told,) = Recording(write(lines(MOONCAKE)), options=ReadOptions(block_tokens=600))
    assert (plain.block_tokens, said.block_tokens, told.block_tokens) == (512, 500, 600)


def test_a_table_of_ids_must_say_how_large_blocks_are(tmp_path):
    text = message(FORMS["table"].write(tmp_path))
    assert text == "the table has ids of blocks; say how many tokens a block has (--block-tokens)"


def test_blocks_of_a_trace_are_shared_in_pages_of_any_size(write):
    """A finer page is a part of a block, a coarser one several: prompts are the same tokens as far as ids agree."""
    first, second = prompt_contents([(1500, (7, 9, 8)), (1400, (7, 9, 4))], 512)
    assert first.common(second) == 1024
    assert first.part(496, 512) == second.part(496, 512)  # a page of 16
    assert first.part(0, 1024) == second.part(0, 1024)  # one of 1,024
    assert first.part(1008, 1040) != second.part(1008, 1040)


# 6: rows that tell what they add


def test_rows_of_a_session_that_tell_what_they_add_are_summed_answers_included(write):
    row = {"session_id": "s", "timestamp": 0, "input_length": 16, "output_length": 4, "hash_ids": [1]}
    path = write(lines(row, row | {"timestamp": 10, "delay": 5, "input_length": 8}))
    whole = [request.prompt_tokens for request in Recording(path)]
    delta = list(Recording(path, options=ReadOptions(prompts="delta")))
    assert whole == [16, 8]
    assert [request.prompt_tokens for request in delta] == [16, 16 + 4 + 8]
    assert [request.new_prompt_tokens for request in delta] == [16, 8]
    # An open replay has its time, a closed one its wait.
    assert (delta[1].arrival_ps, delta[1].after) == (10 * PS_PER_S // 1000, (After("1", 5 * PS_PER_S // 1000),))


# 7: ids name no outputs, and the next turn's tell what an answer was


def answering(write, **options):
    """A call whose last block is partly filled, and the turn behind it, which begins with the first of its blocks."""
    row = {"session_id": "s", "timestamp": 0, "block_size": 16}
    path = write(lines(
        row | {"input_length": 24, "output_length": 20, "hash_ids": [1, 2]},
        row | {"delay": 5, "timestamp": 9, "input_length": 60, "output_length": 3, "hash_ids": [1, 12, 13, 14]},
    ))  # fmt: skip
    traffic = ReplayTraffic(path, identities=True, loop="open", **options)
    return traffic, [entering(request, 1 << 20).sequence.content for request in Workload(traffic)]


def test_an_answer_is_like_no_other_tokens_unless_the_next_prompt_is_said_to_repeat_it(write):
    _, (first, second) = answering(write)
    assert first.common(second) == 16
    traffic, (first, second) = answering(write, answers="repeated")
    # 24 of the prompt and 20 of the answer, then something else.
    assert first.common(second) == 44
    assert traffic.told_answers == 1


def test_an_answer_is_not_told_where_the_next_prompt_is_too_short_or_goes_another_way(write):
    row = {"session_id": "s", "timestamp": 0, "block_size": 16}
    for later in ({"input_length": 40, "hash_ids": [1, 2, 3]}, {"input_length": 60, "hash_ids": [8, 9, 10, 11]}):
        path = write(lines(
            row | {"input_length": 32, "output_length": 20, "hash_ids": [1, 2]},
            row | {"delay": 5, "timestamp": 9, "output_length": 3} | later,
        ))  # fmt: skip
        traffic = ReplayTraffic(path, identities=True, loop="open", answers="repeated")
        first, _ = [entering(request, 1 << 20).sequence.content for request in Workload(traffic)]
        assert traffic.told_answers == 0
        assert first.runs[-1].stream < 0


# 8: caps leave spikes: `tests/workload/fit/test_fit.py`, the grid is nearer than any family


# 9: ties, copies, times out of order


def test_times_out_of_order_are_read_as_they_stand_and_a_replay_must_sort_them(write):
    path = write(lines(CHAT | {"timestamp": 5}, CHAT | {"chat_id": 2, "timestamp": 3}))
    recording = Recording(path)
    assert [request.arrival_ps for request in recording] == [5 * PS_PER_S, 3 * PS_PER_S]
    assert recording.report.span_ps == 2 * PS_PER_S
    with pytest.raises(InputError, match="set `sort: true`"):
        list(TraceTraffic(path).rows(Streams(0)))


def test_sessions_that_begin_alike_are_counted_as_copies(tmp_path):
    weka(tmp_path, "a", "b")
    weka(tmp_path, "c", requests=[{"t": 0, "type": "n", "in": 64, "out": 1, "hash_ids": [1]}])
    assert Recording(tmp_path).report.notes == {"sessions that begin as an earlier one does, 5 requests long": 1}


def test_times_that_tie_have_a_cv_with_and_one_without_the_ties(write):
    rows = [MOONCAKE | {"timestamp": time} for time in (0, 0, 3000, 3000, 6000, 6000)]
    arrivals = inspect(Recording(write(lines(*rows)))).arrivals
    assert arrivals.tied_share == 0.6
    assert arrivals.cv_untied == 0
    # Gaps 0 3 0 3 0: mean 1.2, variance 2.16.
    assert arrivals.cv == pytest.approx(2.16**0.5 / 1.2)


# What refers to what


def test_an_id_that_comes_twice_is_named_with_its_row(write):
    text = message(write(lines(CHAT, CHAT)))
    assert text.startswith("row 2 (line 2 of the file), column chat_id: '1': an earlier row has this id; ")


@pytest.mark.parametrize("parent", [7, 2])
def test_a_parent_that_is_not_there_or_is_the_row_itself_is_named_with_its_row(write, parent):
    text = message(write(lines(CHAT, CHAT | {"chat_id": 2, "parent_chat_id": parent})))
    assert text.startswith(f"row 2 (line 2 of the file), column parent_chat_id: '{parent}': no earlier row has this id")
    assert "each waits for the other" in text


def test_two_calls_that_wait_for_each_other_are_refused_at_the_first(write):
    text = message(write(lines(CHAT | {"parent_chat_id": 2}, CHAT | {"chat_id": 2, "parent_chat_id": 1})))
    assert text.startswith("row 1 (line 1 of the file), column parent_chat_id: '2'")


def test_rows_behind_one_that_was_dropped_are_dropped_too_and_counted(write):
    wrong = CHAT | {"chat_id": 2, "parent_chat_id": 9}
    path = write(lines(CHAT, wrong, CHAT | {"chat_id": 3, "parent_chat_id": 2}))
    recording = Recording(path, on_bad_row="drop")
    assert [request.id for request in recording] == ["1"]
    assert list(recording.report.dropped.values()) == [2]


@pytest.mark.parametrize(
    ("children", "said"),
    [
        (["root"], "column spawns: 'root': is started twice, stands before what starts it, or starts itself"),
        (["kid", "kid"], "column spawns: 'kid': is started twice"),
        (
            ["gone"],
            "row 1 (line 1 of the file), column turns: session 'gone', which root/0 starts, is not in the trace",
        ),
        ("kid", "column spawns: 'kid': no list of sessions"),
    ],
)
def test_sessions_that_start_each_other_wrongly_are_named(write, children, said):
    root = {"session_id": "root", "turns": [{"text": "plan", "output_length": 1, "spawns": children}]}
    kid = {"session_id": "kid", "turns": [{"text": "part", "output_length": 1}]}
    assert said in message(write(lines(root, kid)), options=FORMS["aiperf-turns"].options)


@pytest.mark.parametrize("wrong", [[1], {}, None, "later"])
def test_a_dependency_of_no_known_kind_is_named(write, wrong):
    rows = FORMS["dynamo-agentic"].text.replace('"dispatch"', json.dumps(wrong))
    assert "row 3 (line 3 of the file), column dependencies: " in message(write(rows))


def test_a_file_of_a_folder_is_named_on_one_line_whatever_its_name(tmp_path):
    (tmp_path / "a.json").write_text(FORMS["weka"].text)
    (tmp_path / "b\nc.json").write_text("{}")
    with pytest.raises(InputError) as caught:
        list(Recording(tmp_path))
    assert str(caught.value).startswith(f"{tmp_path}/b\\nc.json: ")
    assert "\n" not in str(caught.value)


def test_a_fork_begins_with_its_parents_history_and_a_spawn_afresh(write):
    root = {"text": "x" * 40, "output_length": 10}
    tree = [
        {"session_id": "root", "turns": [root | {"forks": ["f"], "spawns": ["s"]}]},
        {"session_id": "f", "turns": [{"text": "y" * 8, "output_length": 1}]},
        {"session_id": "s", "turns": [{"text": "y" * 8, "output_length": 1}]},
    ]
    parent, fork, spawn = Recording(write(lines(*tree)), options=FORMS["aiperf-turns"].options)
    assert [request.prompt_tokens for request in (parent, fork, spawn)] == [10, 10 + 10 + 2, 2]
    assert [request.after[0].relation for request in (fork, spawn)] == ["fork", "spawn"]


# 10: dict literals in strings, clients without one of their files: `clients/test_servegen.py`

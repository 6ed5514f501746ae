"""Written forms are read back as what they were, and what a form cannot say is counted."""

import json

import pytest

from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.workload.convert.writers import Losses, mooncake_lines, vidur_lines
from kvsim.workload.readers.request import After, TraceRequest
from kvsim.workload.statistics.inspect import inspect
from kvsim.workload.trace.recording import Recording
from tests.workload.readers.forms import FORMS

FORMATS = ["azure", "burstgpt", "mooncake", "bailian", "weka", "dynamo", "blis", "llmservingsim"]


@pytest.mark.parametrize("name", FORMATS)
def test_what_was_written_as_mooncake_has_the_same_lengths_sharing_and_sessions(tmp_path, name):
    source = FORMS[name].read(tmp_path)
    before = inspect(source)
    path = tmp_path / "written.jsonl"
    losses = Losses()
    lines = list(mooncake_lines(source, losses, source.block_tokens))
    # A session that begins without a time has none in Mooncake's form either; a replay must give it one.
    rows = [json.loads(line) for line in lines]
    path.write_text("".join(json.dumps({"timestamp": 0} | row if "delay" not in row else row) + "\n" for row in rows))
    after = inspect(Recording(path))
    assert losses.written == len(before.prompts)
    assert (list(after.prompts), list(after.outputs)) == (list(before.prompts), list(before.outputs))
    assert after.sharing.ideal_hit_tokens == before.sharing.ideal_hit_tokens
    assert (after.sessions and after.sessions.sessions) == (before.sessions and before.sessions.sessions)


def test_times_count_from_the_first_request_and_keep_six_digits():
    requests = [TraceRequest("a", 5, 1, 7 * PS_PER_S), TraceRequest("b", 6, 2, 7 * PS_PER_S + 1_234_567_891)]
    first, second = (json.loads(line) for line in mooncake_lines(requests, Losses()))
    assert (first["timestamp"], second["timestamp"]) == (0, 1.234568)
    assert list(vidur_lines(requests, Losses()))[1:] == ["0,5,1\n", "0.001235,6,2\n"]


def test_a_vidur_file_is_read_back_and_ids_are_counted_as_left_out(tmp_path):
    losses = Losses()
    path = tmp_path / "written.csv"
    path.write_text("".join(vidur_lines(FORMS["bailian"].read(tmp_path), losses)))
    assert [request.prompt_tokens for request in Recording(path)] == [40, 64]
    assert losses.reasons == {"a call with ids of prefix blocks: they were left out": 2}


def test_lengths_alone_stay_lengths_alone(tmp_path):
    path = tmp_path / "written.csv"
    path.write_text("".join(vidur_lines(FORMS["lengths"].read(tmp_path), Losses())))
    assert Recording(path).reader.format == "lengths"


def test_what_a_form_cannot_say_is_counted(tmp_path):
    losses = Losses()
    requests = [
        TraceRequest("a", 5, 1, 0),
        TraceRequest("b", 5, 1, after=(After("a", 3),), session="s"),
        TraceRequest("c", 0, 0, 4, failed=True),
        TraceRequest("d", 5, 1, 9, after=(After("a", 3, "end", "join"),)),
    ]
    assert len(list(vidur_lines(requests, losses))) == 3
    assert losses.reasons == {"a call with no time of its own: left out": 1, "a failed call: left out": 1}
    losses = Losses()
    assert len(list(mooncake_lines(requests, losses))) == 3
    assert losses.reasons == {
        "a failed call: left out": 1,
        "a call that also waits for other sessions: that wait was left out": 1,
    }


def test_blocks_of_two_sizes_cannot_be_one_mooncake_trace():
    requests = [TraceRequest(str(size), size, 1, 0, blocks=(1,), block_tokens=size) for size in (16, 64)]
    with pytest.raises(InputError, match=r"64: has blocks of 64 tokens where others have 16"):
        list(mooncake_lines(requests, Losses(), 16))


def test_whole_blocks_that_nobody_shares_get_ids_of_their_own():
    requests = [TraceRequest(str(n), 40, 1, 0, blocks=(7,), block_tokens=16) for n in range(2)]
    first, second = (json.loads(line) for line in mooncake_lines([*requests], Losses(), 16))
    assert (first["block_size"], first["hash_ids"], second["hash_ids"]) == (16, [0, 1], [0, 2])

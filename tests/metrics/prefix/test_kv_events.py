"""KV events have vLLM's form, and say as much as a router needs."""

from hashlib import blake2b
from unittest.mock import patch

from kvsim.content import Content, Run, own_stream
from kvsim.metrics.prefix.kv_events import KvEventLog, block_hash

PROMPT = Content([Run(0, 0, 6), Run(own_stream(3), 6, 100)])


def log():
    made = KvEventLog(4)
    made.stored(0, [1], None, PROMPT, 0, 4)
    made.stored(10**12, [2, 3], 1, PROMPT, 4, 4)
    made.removed(2 * 10**12, [3])
    return made


def test_a_log_opens_with_an_empty_cache_and_tells_in_order_what_happens_when():
    batches = list(log())
    assert [batch["ts"] for batch in batches] == [0.0, 1.0, 2.0]
    kinds = [[event["type"] for event in batch["events"]] for batch in batches]
    assert kinds == [["AllBlocksCleared", "BlockStored"], ["BlockStored"], ["BlockRemoved"]]


def test_the_fields_are_those_of_vllm_and_runs_stand_for_the_tokens():
    first, second, third = log()
    head = block_hash(None, PROMPT, 0, 4)
    tail = [block_hash(head, PROMPT, 4, 4)]
    tail.append(block_hash(tail[0], PROMPT, 8, 4))
    assert second["events"] == [
        {
            "type": "BlockStored",
            "block_hashes": tail,
            "parent_block_hash": head,
            "token_ids": [],
            "block_size": 4,
            "lora_id": None,
            "medium": "GPU",
            "lora_name": None,
            "group_idx": 0,
            "runs": [[0, 4, 2], [own_stream(3), 6, 6]],
        }
    ]
    assert first["events"][1]["parent_block_hash"] is None
    assert third["events"] == [
        {"type": "BlockRemoved", "block_hashes": tail[1:], "medium": "GPU", "group_idx": 0},
    ]


def test_a_hash_is_64_bits_that_tell_a_block_with_all_before_it_in_every_run():
    # In words, too: a stream of events must be comparable with one of another version.
    assert block_hash(None, PROMPT, 0, 4) == int.from_bytes(blake2b(b"None:0,0,4", digest_size=8).digest(), "big")
    assert block_hash(5, PROMPT, 0, 4) != block_hash(None, PROMPT, 0, 4)
    assert block_hash(None, PROMPT, 0, 4) != block_hash(None, PROMPT, 0, 5)


def test_blocks_that_follow_each_other_in_one_moment_are_one_event():
    made = KvEventLog(4)
    for place in range(3):
        made.stored(7, [place], place - 1 if place else None, PROMPT, 4 * place, 4)
    made.stored(7, ["other"], None, Content([Run(9, 0, 4)]), 0, 4)
    [batch] = list(made)[1:]
    assert [len(event["block_hashes"]) for event in batch["events"]] == [3, 1]


def test_each_copy_is_stored_and_removed_by_itself_under_one_hash():
    made = log()
    made.stored(3 * 10**12, [1], None, PROMPT, 0, 4)
    made.removed(4 * 10**12, [1])
    made.removed(5 * 10**12, [1])
    *_, stored, removed, again = made
    [name] = stored["events"][0]["block_hashes"]
    assert removed["events"][0]["block_hashes"] == again["events"][0]["block_hashes"] == [name]


def test_a_long_log_lies_in_a_file_and_tells_the_same_however_often_and_by_whom_it_is_read():
    def long_log():
        made = log()
        for number in range(40):
            made.stored((number + 3) * 10**12, [4], 2, PROMPT, 8, 4)
            made.removed((number + 3) * 10**12 + 5, [4])
        return made

    short = long_log()
    with patch("kvsim.metrics.prefix.kv_events._KEPT", 3), patch("kvsim.metrics.prefix.kv_events._READ_BYTES", 100):
        filed = long_log()
        assert len(filed._batches) <= 3
        assert len(filed) == len(short) == 83
        assert list(filed) == list(filed) == list(short)
        assert all(one == other for one, other in zip(filed, filed, strict=True))
        assert b"".join(filed.lines()) == b"".join(short.lines())
        first = iter(filed)
        before = next(first)
        filed.stored(90 * 10**12, [5], None, PROMPT, 0, 4)
        assert [before, *first][-1]["ts"] == 90.0


def test_an_edge_of_pages_is_cut_without_a_word():
    made = KvEventLog(2)
    made.stored(0, ["edge"], None, PROMPT, 0, 6)
    made.cut("edge", "upper", 4)
    made.removed(1, ["edge"])
    made.stored(2, ["leaf"], "upper", Content([Run(8, 0, 2)]), 0, 2)
    _, removed, stored = made
    first, second, third = next(iter(made))["events"][1]["block_hashes"]
    assert removed["events"][0]["block_hashes"] == [third]
    assert stored["events"][0]["parent_block_hash"] == second
    assert first not in removed["events"][0]["block_hashes"]

"""A case of SGLang that cannot be replayed is refused with what is wrong, where, and what would be right."""

import pytest

from kvsim.engine.replay import replay
from kvsim.errors import InputError

REQUEST = {"id": "a", "arrival_step": 0, "prompt": [{"s": 1, "n": 10}], "output_len": 3}


def stream(*requests, **config):
    return {"config": {"mode": "stream", "max_total_num_tokens": 64, **config}, "requests": list(requests)}


def ops(*operations, **config):
    return {"config": {"mode": "ops", "pool_tokens": 64, **config}, "ops": list(operations)}


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (stream(mode="batch"), "config.mode is 'batch'; a case of SGLang has one of stream, ops"),
        (stream(mode=["ops"]), "config.mode is ['ops']; a case of SGLang has one of stream, ops"),
        (
            stream({**REQUEST, "out_stream": "b"}),
            "request 0 of the case: out_stream is 'b'; it must be a whole number, 0",
        ),
        (stream({**REQUEST, "priority": {}}), "request 0 of the case: priority is {}; it must be a whole number"),
        (
            ops({"op": "insert", "key": [], "priority": 0.5}),
            "operation 0 of the case: priority is 0.5; it must be a whole",
        ),
        (stream(page_size=0), "config.page_size is 0; it must be a whole number, 1 or more"),
        (stream(page_size=10), "config.max_total_num_tokens is 64; it must be whole pages of 10"),
        (stream(schedule_policy="best"), "config.schedule_policy is 'best'; it must be one of fcfs, lof"),
        (stream(overlap=1), "config.overlap is 1; it must be true or false"),
        (stream(num_blocks=4), "config has settings that a case of SGLang does not know: num_blocks"),
        ({"config": {"mode": "ops", "pool_tokens": 8}, "requests": []}, "with mode ops it needs a list `ops`"),
        (ops(hicache={"host_tokens": 4}), "config.hicache.policy is None; it must be one of write_through"),
        (stream({**REQUEST, "id": 7}), "request 0 of the case: id is 7; it must be a text"),
        (stream(REQUEST, REQUEST), "request 1 of the case: id is 'a', which another has already"),
        (stream({**REQUEST, "output_len": 0}), "request 0 of the case: output_len is 0; it must be a whole number, 1"),
        (stream({**REQUEST, "prompt": []}), "request 0 of the case: prompt has no tokens"),
        (stream({**REQUEST, "prompt": [{"s": 1}]}), "request 0 of the case: prompt: the segment {'s': 1}; a key is"),
        (ops({"op": "grow"}), "operation 0 of the case: op is 'grow'; it must be one of match, insert"),
        (ops({"op": "unlock", "id": "x"}), "operation 0 of the case: id is 'x', which is not locked"),
        (ops({"op": "load", "key": []}), "operation 0 of the case: op is 'load'; it needs config.hicache"),
        (ops({"op": "insert", "key": [{"s": 1, "n": 65}]}), "the key needs 65 slots and only 64 can be had"),
    ],
)
def test_a_case_that_cannot_be_replayed_is_refused(case, words):
    with pytest.raises(InputError) as error:
        list(replay(case))
    assert words in str(error.value)


def test_tokens_given_by_id_are_those_of_the_streams():
    insert = {"op": "insert", "key": [{"ids": [(3 << 20) + number for number in range(6)]}]}
    *_, match, _ = replay(ops(insert, {"op": "match", "key": [{"s": 3, "n": 4}, {"s": 3, "o": 4, "n": 9}]}))
    assert match["matched"] == 6


def test_an_output_is_clipped_to_the_context_and_to_what_an_empty_pool_leaves():
    *_, summary = replay(stream({**REQUEST, "output_len": 1000}, context_len=40))
    assert summary["requests"]["a"]["output"] == 40 - 1 - 10 - 1
    *_, summary = replay(stream({**REQUEST, "output_len": 1000}, page_size=16))
    assert summary["requests"]["a"]["output"] == 64 - 16 - 16 - 1


def test_a_prompt_larger_than_the_pool_waits_to_the_end():
    *steps, summary = replay(stream({**REQUEST, "prompt": [{"s": 1, "n": 100}]}, max_steps=5))
    assert [step["mode"] for step in steps] == ["idle"] * 5
    assert summary["requests"]["a"]["done"] is None

"""Replay of recorded cases: its own small ones by hand, what it refuses, and how a difference is told."""

import json
import math
from copy import deepcopy
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.engine.replay import compare_records, replay
from kvsim.errors import InputError
from tests.effort import examples

DATA = Path(__file__).parents[2] / "oracles" / "data" / "vllm"
CASE = json.loads((DATA / "vllm_nocache_d1.json").read_text(encoding="utf-8"))
RECORDED = [json.loads(line) for line in (DATA / "vllm_nocache_d1.out.jsonl").read_text().splitlines()]


def case_of(*requests, **config):
    """Requests as (id, arrival step, prompt tokens, output tokens), on 4 usable blocks of 4 unless told otherwise."""
    settings = {"num_blocks": 5, "block_size": 4, "enable_prefix_caching": False, "max_num_seqs": 4}
    return {
        "config": settings | config,
        "requests": [
            {"id": name, "arrival_step": step, "prompt": [{"s": 1, "n": prompt}], "output_len": output}
            for name, step, prompt, output in requests
        ],
    }


def test_one_request_step_by_step():
    """5 prompt and 4 output tokens on blocks of 4: 2 blocks up to 8 written tokens, which is all it ever writes."""
    *steps, last = replay(case_of(("a", 0, 5, 4)))
    assert [step["sched"] for step in steps] == [[["a", 5]], [["a", 1]], [["a", 1]], [["a", 1]]]
    assert [step["used_after_schedule"] for step in steps] == [2, 2, 2, 2]
    assert [step["free_after_step"] for step in steps] == [2, 2, 2, 4]
    assert [step["usage"] for step in steps] == [0.5, 0.5, 0.5, 0]
    assert [step["finished"] for step in steps] == [[], [], [], ["a"]]
    assert [step["hits"] for step in steps] == [[["a", 0]], [], [], []]
    assert last["summary"] == {
        "steps": 4,
        "sched_tokens": 8,
        "preemptions": 0,
        "evicted": 0,
        "stored": 0,
        "hit_tokens": 0,
        "peak_used": 2,
    }
    assert last["requests"]["a"] == {
        "arrival": 0,
        "prompt": 5,
        "first_sched": 0,
        "first_tok": 0,
        "done": 3,
        "hits": [0],
        "preempt": 0,
        "computed": 8,
        "output": 4,
    }


def test_a_preemption_is_told_with_the_tokens_lost_and_counts_a_second_admission():
    """Two prompts of 8 fill 4 blocks of 4: at step 1 both need a third; "b" loses its 8, and waits for "a" to end.

    "a" needs 8 + 2 - 1 = 9 slots: 3 blocks, and ends at step 1. "b" comes back at step 2 with 9 tokens.
    """
    *steps, last = replay(case_of(("a", 0, 8, 2), ("b", 0, 8, 3)))
    assert [step["preempted"] for step in steps] == [[], [["b", 8]], [], []]
    assert [step["sched"] for step in steps] == [[["a", 8], ["b", 8]], [["a", 1]], [["b", 9]], [["b", 1]]]
    assert steps[1]["running"] == ["a"]
    assert steps[1]["waiting"] == ["b"]
    b = last["requests"]["b"]
    assert (b["hits"], b["preempt"], b["computed"], b["output"], b["done"]) == ([0, 0], 1, 8 + 9 + 1, 3, 3)


def test_the_counter_jumps_over_idle_steps():
    steps = [line["step"] for line in replay(case_of(("a", 2, 1, 1), ("b", 9, 1, 2))) if "step" in line]
    assert steps == [2, 9, 10]


def test_an_output_beyond_the_models_limit_is_cut():
    *_, last = replay(case_of(("a", 0, 6, 50), max_model_len=8))
    assert last["requests"]["a"]["output"] == 2


def test_by_priority_ids_are_compared_as_texts_where_nothing_else_decides():
    """As the engine does: "r10" comes before "r9"."""
    case = case_of(("r9", 0, 4, 1), ("r10", 0, 4, 1), ("r1", 0, 4, 1), policy="priority", max_num_seqs=1)
    case["requests"][2]["priority"] = 1
    *steps, _ = replay(case)
    assert [step["sched"][0][0] for step in steps] == ["r10", "r9", "r1"]


def test_a_later_prompt_can_quote_an_earlier_output_in_segments_or_in_token_ids():
    """Position j of stream 1000000 is token 1000000 * 2^20 + j, whoever names it."""
    quoted = [{"s": 1_000_000, "n": 4}], [{"ids": [(1_000_000 << 20) + place for place in range(4)]}]
    case = case_of(("a", 0, 4, 5), ("b", 6, 1, 1), ("c", 6, 1, 1), enable_prefix_caching=True, num_blocks=9)
    for request, answer in zip(case["requests"][1:], quoted, strict=True):
        request["prompt"] = [{"s": 1, "n": 4}, *answer, {"s": 2, "n": 1}]
    *_, last = replay(case)
    assert [last["requests"][name]["hits"] for name in "abc"] == [[0], [8], [8]]


def test_segments_and_plain_ids_make_a_prompt():
    case = case_of(("a", 0, 5, 1))
    case["requests"][0]["prompt"] = [{"s": 1, "n": 3}, {"ids": [7, 8]}]
    assert next(replay(case))["sched"] == [["a", 5]]


def test_a_replay_stops_after_the_most_steps_that_the_case_allows():
    lines = list(replay(case_of(("a", 0, 1, 9), max_steps=3)))
    assert [line.get("step") for line in lines] == [0, 1, 2, None]
    assert lines[-1]["requests"]["a"]["done"] is None


# What is refused.


def refused(case):
    with pytest.raises(InputError) as error:
        list(replay(case))
    return str(error.value)


@pytest.mark.parametrize("case", [[], {}, {"config": {}}, {"requests": []}, {"config": 3, "requests": []}])
def test_what_is_no_case_is_refused(case):
    assert "needs a `config` object and a `requests` list" in refused(case)


@pytest.mark.parametrize("key", ["page_size", "max_total_num_tokens", "mode"])
def test_a_case_of_sglang_is_refused_by_name(key):
    assert "SGLang" in refused(case_of(("a", 0, 1, 1), **{key: 1}))


def test_prefix_caching_is_the_default():
    case = case_of(("a", 0, 8, 1))
    del case["config"]["enable_prefix_caching"]
    assert next(replay(case))["stored"] == 2


@pytest.mark.parametrize(
    ("key", "value", "form"),
    [
        ("policy", "lottery", "fcfs or priority"),
        ("async_scheduling", 1, "true or false"),
        ("groups", [], 'a list of {"kind": "full"}'),
        ("groups", [{"kind": "sliding"}], 'a list of {"kind": "full"}'),
        ("groups", [{"kind": "full", "window": 4}], 'a list of {"kind": "full"}'),
        ("spec", {"k": 0}, 'null or {"k": 3'),
        ("spec", {"k": 2, "tree": True}, 'null or {"k": 3'),
        ("max_num_active_seqs", 0, "or null"),
        ("long_prefill_adaptive", None, "true or false"),
        ("prefill_schedule_interval", 0, "a whole number from 1"),
        ("retention_interval", -1, "or null"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_key_value_and_what_would_be_right(key, value, form):
    message = refused(case_of(**{key: value}))
    assert f"config.{key} is {value!r}; it must be " in message
    assert form in message


def test_a_retention_that_is_no_multiple_of_the_block_is_refused():
    message = refused(case_of(groups=[{"kind": "sliding", "window": 8}], retention_interval=6))
    assert "retention_interval is 6; it must be a multiple of block_size (4)" in message


def test_a_retention_without_a_window_is_refused():
    assert "config.retention_interval is 8; without a sliding group" in refused(case_of(retention_interval=8))


def test_unknown_settings_are_all_named():
    assert "unknown settings: bloc_size, watermrk" in refused(case_of(watermrk=1, bloc_size=2))


@pytest.mark.parametrize("key", ["num_blocks", "block_size"])
@pytest.mark.parametrize("value", [None, 0, -1, "16", 1.5])
def test_a_pool_without_size_is_refused(key, value):
    assert f"config.{key} is {value!r}" in refused(case_of(**{key: value}))


@pytest.mark.parametrize("key", ["id", "arrival_step", "prompt", "output_len"])
def test_a_request_that_lacks_something_is_refused_with_its_place_and_the_key(key):
    case = case_of(("a", 0, 1, 1), ("b", 0, 1, 1))
    del case["requests"][1][key]
    message = refused(case)
    assert "request 1" in message
    assert key in message


@pytest.mark.parametrize(
    ("key", "value"), [("arrival_step", "soon"), ("output_len", None), ("prompt", [{"s": 1}]), ("prompt", 7)]
)
def test_a_request_with_a_value_of_the_wrong_kind_is_refused_with_its_place(key, value):
    case = case_of(("a", 0, 1, 1), ("b", 0, 1, 1))
    case["requests"][1][key] = value
    assert "request 1" in refused(case)


# Differences.


def compared(recorded, case=CASE):
    return compare_records(replay(case), iter(recorded))


def test_equal_records_are_counted():
    assert compared(RECORDED) == (len(RECORDED), None)


def test_who_ran_is_no_difference():
    recorded = deepcopy(RECORDED)
    recorded[-1] |= {"engine": "another", "version": "0.0", "core": "x", "tree": "y"}
    assert compared(recorded)[1] is None


@pytest.mark.parametrize("at", [0, 5, 104])
def test_a_changed_number_is_told_with_step_field_and_both_states(at):
    recorded = deepcopy(RECORDED)
    was = recorded[at]["free_after_schedule"]
    recorded[at]["free_after_schedule"] = was + 1
    count, difference = compared(recorded)
    first, ours, theirs = difference.splitlines()
    assert count == at
    step = RECORDED[at]["step"]
    assert first == f"step {step}, field 'free_after_schedule': ours {was}, recorded {was + 1}"
    assert ours == f"  ours:     {RECORDED[at]}"
    assert theirs == f"  recorded: {recorded[at]}"


def test_a_changed_order_is_a_difference():
    recorded = deepcopy(RECORDED)
    recorded[1]["sched"].reverse()
    assert compared(recorded)[1].startswith("step 1, field 'sched': ours [['r0', 25], ")


@pytest.mark.parametrize("field", ["preempted", "usage", "finished"])
def test_a_missing_field_is_a_difference(field):
    recorded = deepcopy(RECORDED)
    del recorded[3][field]
    assert compared(recorded)[1].startswith(f"step 3, field '{field}': ours ")
    assert "recorded (missing)" in compared(recorded)[1]


def test_a_field_that_only_the_recording_has_is_a_difference():
    recorded = deepcopy(RECORDED)
    recorded[3]["moon"] = "full"
    assert compared(recorded)[1].startswith("step 3, field 'moon': ours (missing), recorded full")


def test_a_changed_total_is_told_as_the_summarys():
    recorded = deepcopy(RECORDED)
    recorded[-1]["summary"]["peak_used"] -= 1
    assert compared(recorded)[1].startswith("the summary, field 'summary': ours ")


def test_a_recording_that_is_too_short_or_too_long_is_a_difference():
    count, difference = compared(RECORDED[:7])
    assert (count, difference.splitlines()[0]) == (
        7,
        "the recording ends after record 7, the other goes on",
    )
    count, difference = compared([*RECORDED, RECORDED[-1]])
    assert count == len(RECORDED)
    assert "the replay ends after record" in difference


# Whatever a case says: records or one message.

WHOLE_NUMBERS = ("num_blocks", "block_size", "max_num_seqs", "max_num_batched_tokens", "max_model_len", "max_steps",
                 "long_prefill_token_threshold")  # fmt: skip


@pytest.mark.parametrize("value", [None, -1, "x", 1.5, math.inf, True, [], 10**30])
@pytest.mark.parametrize("key", WHOLE_NUMBERS)
def test_a_setting_that_is_no_whole_number_in_its_range_is_refused_by_name(key, value):
    assert f"config.{key} is {value!r}; it must be a whole number from" in refused(case_of(**{key: value}))


@pytest.mark.parametrize("value", [None, 0, "x", 2, []])
@pytest.mark.parametrize("key", ["enable_chunked_prefill", "reserve_full_isl", "enable_prefix_caching"])
def test_a_switch_that_is_neither_on_nor_off_is_refused_by_name(key, value):
    assert f"config.{key} is {value!r}; it must be true or false" in refused(case_of(**{key: value}))


@pytest.mark.parametrize("value", [None, -0.1, 1, "x", math.nan, True])
def test_a_watermark_that_is_no_share_is_refused_by_name(value):
    assert f"config.watermark is {value!r}; it must be a share" in refused(case_of(watermark=value))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("id", [1], "id is [1]; it must be a text, another for each request"),
        ("id", None, "id is None"),
        ("id", 1, "id is 1"),
        ("id", "a", "id is 'a', which request 0 has already"),
        ("arrival_step", -1, "arrival_step is -1; it must be a whole number, 0 or more"),
        ("arrival_step", math.inf, "arrival_step is inf"),
        ("output_len", 0, "output_len is 0; it must be a whole number, 1 or more"),
        ("output_len", True, "output_len is True"),
        ("prompt", "", "prompt is ''; a prompt is a list of segments"),
        ("prompt", [], "prompt is []"),
        ("prompt", [[]], "prompt has the segment []"),
        ("prompt", [{"ids": 3}], "prompt has the segment {'ids': 3}"),
        ("prompt", [{"n": -5}, {"n": 7}], "prompt has the segment {'n': -5}"),
        ("prompt", [{"n": 0}], "prompt has no tokens"),
    ],
)
def test_a_request_that_cannot_be_is_refused_with_its_place_and_what_is_wrong(key, value, said):
    case = case_of(("a", 0, 1, 1), ("b", 0, 1, 1))
    case["requests"][1][key] = value
    message = refused(case)
    assert message.startswith("request 1 of the case: ")
    assert said in message


@pytest.mark.parametrize("entry", [None, 3, "a", []])
def test_a_request_that_is_no_object_is_refused_with_its_place(entry):
    case = case_of()
    case["requests"].append(entry)
    assert refused(case).startswith(f"request 0 of the case is {entry!r}; it must be an object")


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 40),
    st.sampled_from([math.inf, math.nan, -0.5, 0.5, 10**30, 2**53, "", "x", "r0", [], {}, [{}], [[]], [{"n": "x"}],
                     [{"n": -1}], [{"ids": "abc"}], [{"ids": []}]]),
)  # fmt: skip
SETTINGS = [
    *WHOLE_NUMBERS,
    "watermark",
    "reserve_full_isl",
    "enable_chunked_prefill",
    "policy",
    "spec",
    "groups",
    "odd",
]


@settings(max_examples=examples(300), deadline=None)
@given(
    config=st.dictionaries(st.sampled_from(SETTINGS), ODD, max_size=2),
    entries=st.dictionaries(
        st.tuples(st.integers(0, 19), st.sampled_from(["id", "arrival_step", "prompt", "output_len", "odd"])),
        ODD,
        max_size=2,
    ),
)
def test_a_recorded_case_with_any_value_changed_gives_records_or_one_message(config, entries):
    case = deepcopy(CASE)
    case["config"] |= config
    for (index, key), value in entries.items():
        case["requests"][index][key] = value
    message = ""
    try:
        for record in islice(replay(case), 200):
            json.dumps(record)
    except InputError as error:
        message = str(error)
    assert len(message.splitlines()) <= 1


def test_a_client_that_gives_up_is_gone_before_the_step_is_scheduled():
    """Request a decodes in step 1 and is given up before step 2; b, which waited for its place, follows at once."""
    case = case_of(("a", 0, 4, 9), ("b", 0, 4, 2), max_num_seqs=1)
    case["requests"][0]["abort_step"] = 2
    *steps, summary = replay(case)
    assert [step["sched"] for step in steps] == [[["a", 4]], [["a", 1]], [["b", 4]], [["b", 1]]]
    assert (summary["requests"]["a"]["done"], summary["requests"]["a"]["output"]) == (None, 2)
    assert steps[-1]["free_after_step"] == steps[-1]["used_after_schedule"] + steps[-1]["free_after_schedule"]


def test_one_that_gives_up_while_it_waits_is_never_scheduled():
    case = case_of(("a", 0, 4, 2), ("b", 0, 4, 2), max_num_seqs=1)
    case["requests"][1]["abort_step"] = 1
    *steps, summary = replay(case)
    assert len(steps) == 2
    assert summary["requests"]["b"]["first_sched"] is None


def test_more_sequences_than_tokens_of_the_budget_can_be_allowed():
    """The engine's own default, 256 sequences, with a budget of 4: no more than 4 can ever run."""
    *steps, _ = replay(case_of(*((name, 0, 2, 3) for name in "abcdef"), max_num_seqs=256, max_num_batched_tokens=4))
    assert max(len(step["running"]) for step in steps) == 4

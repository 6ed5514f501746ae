"""The ids of a trace's blocks as contents: prompts agree as far as their ids do."""

import json
from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from kvsim.content import Run, own_stream
from kvsim.workload.stream import Workload
from kvsim.workload.trace import TraceTraffic
from kvsim.workload.trace.contents import prompt_contents, prompt_layers

SIZE = 4


def contents(*prompts):
    return list(prompt_contents(prompts, SIZE))


def test_blocks_first_seen_together_are_one_run_and_the_last_may_be_partly_filled():
    first, second = contents((11, ("a", "b", "c")), (14, ("a", "b", "d", "e")))
    assert first.runs == [Run(0, 0, 11)]
    assert second.runs == [Run(0, 0, 8), Run(0, 12, 6)]


def test_tokens_behind_the_last_id_are_like_no_other_prompts():
    first, second = contents((6, (1,)), (6, (1,)))
    assert first.runs == [Run(0, 0, 4), Run(own_stream(0), 4, 2)]
    assert first.common(second) == 4


PROMPTS = st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=2, max_size=6)


@given(PROMPTS)
def test_prompts_agree_as_far_as_their_ids(prompts):
    made = contents(*((len(ids) * SIZE + 1, tuple(ids)) for ids in prompts))
    for ids, one in zip(prompts, made, strict=True):
        for others, other in zip(prompts, made, strict=True):
            if one is not other:
                alike = takewhile(lambda pair: pair[0] == pair[1], zip(ids, others, strict=False))
                assert one.common(other) == SIZE * len(list(alike))


def test_contents_stay_with_their_rows_when_rows_are_sorted_and_dropped(tmp_path):
    rows = [(9, 600, [1, 2]), (3, 700, [1, 2, 3]), (5, 1000, [7, 8]), (1, 512, [4])]
    lines = [
        json.dumps({"timestamp": time, "input_length": tokens, "output_length": 1, "hash_ids": ids})
        for time, tokens, ids in rows
    ]
    trace = tmp_path / "trace.jsonl"
    trace.write_text("\n".join(lines))
    traffic = TraceTraffic(trace, sort=True, on_bad_row="drop", identities=True)
    found = list(Workload(traffic))
    assert [request.prompt_tokens for request in found] == [512, 1000, 600]
    assert all(request.content.tokens == request.prompt_tokens for request in found)
    assert traffic.survey().rows_kept == 3
    assert traffic.block_tokens == 512


def test_who_does_not_ask_for_identities_gets_none():
    assert TraceTraffic("mooncake-conversation").contents() is None
    assert TraceTraffic("azure-conv-2023", identities=True).contents() is None


# Layers of sharing.


def layers_of(*prompts):
    made = contents(*prompts)
    layers = prompt_layers([(content, "") for content in made], SIZE)
    return [layers.split(content.runs, content.tokens) for content in made]


def test_what_all_prompts_begin_with_is_the_systems_and_the_rest_is_not_known():
    found = layers_of((12, "abc"), (13, "abde"), (8, "ab"))
    assert found == [(8, 0, 0, 0, 4), (8, 0, 0, 0, 5), (8, 0, 0, 0, 0)]


def test_a_prompt_that_is_over_before_it_differs_shortens_nothing():
    assert layers_of((12, "abc"), (6, "ab"), (12, "abd")) == [(8, 0, 0, 0, 4), (6, 0, 0, 0, 0), (8, 0, 0, 0, 4)]


def test_blocks_that_only_some_prompts_have_are_of_no_known_layer():
    assert layers_of((8, "ab"), (8, "ab"), (8, "cd")) == [(0, 0, 0, 0, 8)] * 3


def layers_in_sessions(*prompts):
    made = contents(*((tokens, ids) for tokens, ids, _ in prompts))
    sessions = [session for _, _, session in prompts]
    layers = prompt_layers(zip(made, sessions, strict=True), SIZE)
    return [layers.split(content.runs, content.tokens) for content in made]


def test_blocks_of_one_session_are_its_own_and_those_of_several_are_a_groups():
    # system, group, session, own, unknown; the system's first block is in every prompt
    assert layers_in_sessions((12, "sga", "x"), (18, "sgaAc", "x"), (14, "sgbd", "y"), (9, "sh", "z")) == [
        (4, 4, 4, 0, 0),
        (4, 4, 10, 0, 0),
        (4, 4, 6, 0, 0),
        (4, 0, 4, 1, 0),
    ]


def test_a_session_may_begin_alike_with_a_request_of_no_session():
    # What only those without a session have could be anybody's.
    assert layers_in_sessions((8, "ab", "x"), (8, "ac", ""), (8, "dc", "")) == [
        (0, 4, 4, 0, 0),
        (0, 4, 0, 0, 4),
        (0, 0, 0, 0, 8),
    ]


def test_a_session_that_comes_back_to_a_block_later_still_owns_it():
    assert layers_in_sessions((8, "ab", "x"), (8, "cd", "y"), (12, "abe", "x"))[2] == (0, 0, 12, 0, 0)


@given(st.lists(st.tuples(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=5, unique=True),
                          st.sampled_from(["", "x", "y"])), min_size=1, max_size=8))  # fmt: skip
def test_behind_the_systems_every_block_is_in_the_layer_of_those_who_have_it(prompts):
    found = layers_in_sessions(*((len(ids) * SIZE, tuple(ids), session) for ids, session in prompts))
    for (ids, _), (system, *layers) in zip(prompts, found, strict=True):
        expected = dict.fromkeys(("group", "session", "own", "unknown"), 0)
        for block in ids[system // SIZE :]:
            users = {session for others, session in prompts if block in others}
            alone = "unknown" if users == {""} else "session"
            expected["group" if len(users) > 1 else alone] += SIZE
        assert layers == list(expected.values())


def test_a_trace_with_sessions_tells_their_layers_in_a_run(tmp_path):
    rows = [
        {"timestamp": 0, "input_length": 1024, "output_length": 1, "hash_ids": [0, 1], "session_id": "a"},
        {"timestamp": 1, "input_length": 1024, "output_length": 1, "hash_ids": [0, 2], "session_id": "b"},
        {"timestamp": 2, "input_length": 1536, "output_length": 1, "hash_ids": [0, 1, 3], "session_id": "a"},
        {"timestamp": 3, "input_length": 512, "output_length": 1, "hash_ids": [9], "session_id": "c"},
    ]
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for sort in (False, True):
        traffic = TraceTraffic(path, identities=True, sort=sort)
        layers, prompts = traffic.layers(), list(traffic.contents())
        assert layers.split(prompts[2].runs, 1536) == (0, 512, 1024, 0, 0)


def test_the_first_prompt_may_be_the_shortest():
    assert layers_of((4, "a"), (8, "ab"), (12, "abc"), (12, "abd"))[-1] == (8, 0, 0, 0, 4)


@given(PROMPTS)
def test_the_systems_blocks_are_those_that_no_prompt_lacks(prompts):
    prompts = [list(dict.fromkeys(ids)) for ids in prompts]
    common = 0
    # A prompt that is over agrees with those that go on.
    while len({ids[common] for ids in prompts if len(ids) > common}) == 1:
        common += 1
    found = layers_of(*((len(ids) * SIZE, tuple(ids)) for ids in prompts))
    assert [system for system, *_ in found] == [min(common, len(ids)) * SIZE for ids in prompts]


def test_a_trace_tells_its_layers_of_the_rows_that_are_used(tmp_path):
    rows = [{"timestamp": n, "input_length": 1024, "output_length": 1, "hash_ids": [0, n]} for n in range(1, 4)]
    rows.append({"timestamp": 9, "input_length": 512, "output_length": 1, "hash_ids": [7]})
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for kept, system in ((3, 512), (4, 0)):
        traffic = TraceTraffic(path, identities=True, requests=kept)
        first = next(traffic.contents())
        assert traffic.layers().split(first.runs, 1024)[0] == system
    assert TraceTraffic(path).layers().heads == {}

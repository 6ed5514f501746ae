"""A run decides as the replay does, which is equal to the recorded engines: the same requests, all there at once.

The replay counts iterations, whether anything is computed in them or not; a run counts time. What they must agree in is
what each request finds cached, how often it loses its memory, and in what order the requests end.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.content import Content
from kvsim.engine.replay import replay
from kvsim.engine.replay.case import FIRST_OUTPUT_STREAM, stream_run
from kvsim.request import Request
from tests.effort import examples
from tests.laws.cases import run_case

STEP = {"base_ps": 10, "token_ps": 0, "context_ps": 0, "copied_ps": 0}
NEVER_MORE = 10_000


@st.composite
def requests(draw):
    """Prompts, some of which begin alike or with another's answer, as the replay reads them."""
    made: list[dict[str, Any]] = []
    for number in range(draw(st.integers(2, 14))):
        prompt = [{"s": 5000 + number, "n": draw(st.integers(1, 60))}]
        kind = draw(st.sampled_from(["own", "shared", "shared", "answer"]))
        if kind == "shared":
            prompt.insert(0, {"s": draw(st.integers(100, 101)), "n": draw(st.integers(1, 40))})
        elif kind == "answer" and number:
            other = draw(st.integers(0, number - 1))
            answer = {"s": FIRST_OUTPUT_STREAM + other, "n": draw(st.integers(1, 6))}
            prompt = [*made[other]["prompt"], answer, *prompt]
        made.append({"id": str(number), "arrival_step": 0, "prompt": prompt, "output_len": draw(st.integers(1, 40))})
    return made


def length(request):
    return sum(segment["n"] for segment in request["prompt"])


@st.composite
def vllm(draw):
    """A case, and the same as a run."""
    entries, size = draw(requests()), draw(st.sampled_from([1, 4, 16]))
    # No two are alike: vLLM tells those of one priority apart by their arrival.
    for entry, priority in zip(entries, draw(st.permutations(range(len(entries)))), strict=True):
        entry["priority"] = priority
    blocks = -(-max(length(entry) + entry["output_len"] for entry in entries) // size) + draw(st.integers(0, 20))
    shared = {
        "max_num_seqs": draw(st.integers(1, 10)),
        "max_num_batched_tokens": draw(st.sampled_from([16, 64, 512])),
        "max_model_len": 1024,
        "long_prefill_token_threshold": draw(st.sampled_from([0, 0, 8])),
        "reserve_full_isl": draw(st.booleans()),
        "policy": draw(st.sampled_from(["fcfs", "priority"])),
        "async_scheduling": draw(st.booleans()),
        "prefill_schedule_interval": draw(st.sampled_from([1, 1, 3])),
    }
    caching = draw(st.booleans())
    config = {"num_blocks": blocks + 1, "block_size": size, "enable_prefix_caching": caching}
    run = {"scheduler": "vllm", "allocator": "prefix", "pool_slots": blocks * size, "block_size": size}
    run |= {"caching": caching, "watermark": 0.0, "chunked_prefill": True}
    return {"config": config | shared, "requests": entries}, run | shared


@st.composite
def sglang(draw):
    """A case, and the same as a run."""
    entries, size = draw(requests()), draw(st.sampled_from([1, 4, 16]))
    longest = max(length(entry) + entry["output_len"] for entry in entries)
    slots = (-(-longest // size) + draw(st.integers(6, 30))) * size + 48
    shared = {
        "max_running_requests": draw(st.integers(1, 10)),
        "schedule_policy": draw(st.sampled_from(["fcfs", "lpm", "dfs-weight", "lof", "shortest-prefill-first"])),
        "enable_mixed_chunk": draw(st.booleans()),
        "overlap": draw(st.booleans()),
    }
    chunk, caching = draw(st.sampled_from([None, 64, 512])), draw(st.sampled_from([True, True, False]))
    eviction = draw(st.sampled_from(["lru", "lfu", "fifo"]))
    config = {"mode": "stream", "page_size": size, "max_total_num_tokens": slots, "context_len": 1024}
    config |= {"chunked_prefill_size": chunk or -1, "disable_radix_cache": not caching, "eviction_policy": eviction}
    run = {"scheduler": "sglang", "allocator": "radix", "pool_slots": slots, "block_size": size, "caching": caching}
    run |= {"chunked_prefill_size": chunk, "eviction": eviction, "max_num_batched_tokens": 16384, "max_model_len": 1024}
    return {"config": config | shared, "requests": entries}, run | shared


def asked(number, entry):
    """A request of a run whose client allows what it gets, so that its end can be seen coming, as in the cases."""
    content = Content([stream_run(segment["s"], 0, segment["n"]) for segment in entry["prompt"]])
    content.append(stream_run(FIRST_OUTPUT_STREAM + number, 0, NEVER_MORE))
    told = {"max_tokens": entry["output_len"], "priority": entry.get("priority", 0)}
    return Request(number, 0, length(entry), entry["output_len"], content=content, **told)


@pytest.mark.parametrize("cases", [vllm(), sglang()], ids=["vllm", "sglang"])
def test_a_run_finds_and_loses_what_the_replay_does(cases):
    @settings(max_examples=examples(150))
    @given(cases, st.booleans())
    def agree(both, stepwise):
        case, run = both
        *_, summary = replay(case)
        told = [asked(number, entry) for number, entry in enumerate(case["requests"])]
        log = run_case(run | {"requests": told, "horizon_ps": None, "step_time": STEP}, stepwise=stepwise)
        ended = sorted(log.recording.requests.ended, key=lambda record: record.id)
        entries = summary["requests"].values()
        assert [record.hit_tokens for record in ended] == [entry["hits"][0] for entry in entries]
        lost = [entry.get("preempt", entry.get("retracted")) for entry in entries]
        assert [record.preemptions for record in ended] == lost
        order = [record.id for record in sorted(ended, key=lambda record: record.end_ps)]
        assert order == sorted(range(len(ended)), key=lambda number: summary["requests"][str(number)]["done"])

    agree()


def test_what_is_in_flight_comes_in_before_anybody_takes_the_place_of_a_request_that_preempted_itself():
    """Four blocks of four: "0" (7 tokens) and "1" (8) fill them. The step that is planned while theirs is in flight
    computes nothing: "0" is sure to end, and "1" finds no block for its next token. It comes back before "2".

    Of its nine tokens it finds eight of its own cached."""
    told = [
        Request(0, 0, 7, 1, max_tokens=1),
        Request(1, 0, 8, 3, max_tokens=3),
        Request(2, 0, 1, 1, max_tokens=1),
    ]
    rules = {"max_num_seqs": 2, "max_num_batched_tokens": 64, "max_model_len": 64, "long_prefill_token_threshold": 0}
    rules |= {"reserve_full_isl": False, "async_scheduling": True}
    entries = [
        {"id": str(one.id), "arrival_step": 0, "prompt": [{"s": one.id, "n": one.prompt_tokens}],
         "output_len": one.output_tokens} for one in told
    ]  # fmt: skip
    *steps, _ = replay({"config": {"num_blocks": 5, "block_size": 4} | rules, "requests": entries})
    assert [step["sched"] for step in steps[:3]] == [[["0", 7], ["1", 8]], [], [["1", 1], ["2", 1]]]
    run = {"scheduler": "vllm", "allocator": "prefix", "pool_slots": 16, "block_size": 4, "watermark": 0.0}
    run |= {"chunked_prefill": True, "requests": told, "horizon_ps": None, "step_time": STEP}
    log = run_case(run | rules, stepwise=False)
    assert {record.id: record.end_ps for record in log.recording.requests.ended} == {0: 10, 1: 30, 2: 20}

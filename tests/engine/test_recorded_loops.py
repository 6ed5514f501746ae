"""Recorded sessions on the engine: leaping is stepping, everything is conserved, and comparisons stay paired."""

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.workload.clients.limits import Patience
from kvsim.workload.replayed.traffic import ReplayTraffic
from kvsim.workload.sessions.laws import ClientLoop, OnFailure
from tests.effort import examples
from tests.engine.test_closed_loop import run_loop
from tests.laws.cases import everything
from tests.laws.strategies import scenarios
from tests.laws.test_conservation import LAWS

EXAMPLES = examples(40)


def agentic_lines(seed):
    """Plays of a few requests that spawn, follow and join each other at random, with blocks that some of them share."""
    chance = Random(seed)
    yield {"schema": "dynamo.agentic_mooncake", "block_size": 4, "hash_id_scope": "global"}
    for play in range(chance.randint(1, 6)):
        made = []
        for number in range(chance.randint(1, 8)):
            parents = chance.sample(made, min(len(made), chance.randint(0, 2)))
            blocks = [*range(chance.randint(1, 4)), *(100 + chance.randrange(3) for _ in range(chance.randint(0, 3)))]
            id = f"{play}.{number}"
            yield {
                "request_id": id,
                "play_id": str(play),
                "session_id": str(chance.randrange(3)),
                "input_length": 4 * len(blocks) - chance.randrange(4),
                "output_length": chance.randint(1, 12),
                "hash_ids": blocks,
                "not_before_ms": chance.choice([0, 0, 1e-7]),
                "dependencies": [
                    {
                        "request_id": parent,
                        "trigger": chance.choice(["dispatch", "completion"]),
                        "relation": chance.choice(["spawn", "sequence", "join"]),
                        "delay_ms": chance.choice([0, 0, 2e-7]),
                    }
                    for parent in parents
                ],
            }
            made.append(id)


@pytest.fixture(scope="module")
def plays(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plays")
    paths = []
    for seed in range(12):
        path = folder / f"{seed}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in agentic_lines(seed)))
        paths.append(path)
    return paths


def loops(paths):
    def loop(path, clients, then, cancel, samples, answers):
        failure = OnFailure(then=then, back_off_s=1e-9, retries=2)
        traffic = ReplayTraffic(
            path, clients=ClientLoop(clients=clients), on_failure=failure, identities=True, answers=answers
        )
        return {"traffic": traffic, "cancel": cancel, "samples": samples}

    return st.builds(
        loop,
        st.sampled_from(paths),
        st.integers(1, 3),
        st.sampled_from(["end", "go-on", "retry"]),
        st.sampled_from([None, Patience(after_s=2e-8, share=0.5)]),
        st.sampled_from([1, 1, 2]),
        st.sampled_from(["unlike", "repeated"]),
    )


def test_leaping_is_stepping_and_everything_is_conserved(plays):
    @settings(max_examples=EXAMPLES)
    @given(scenarios(), loops(plays), st.sampled_from(["auto", "last_finish"]))
    def agree(case, loop, window):
        (leaping, _), (stepping, _) = (
            run_loop(case, loop, stepwise=stepwise, window=window) for stepwise in (False, True)
        )
        assert everything(leaping) == everything(stepping)
        plain, judged = run_loop(case, loop)
        for law in LAWS:
            law(judged, plain)

    agree()


def test_every_call_comes_once_unless_its_session_failed(plays):
    @settings(max_examples=EXAMPLES)
    @given(scenarios(allocators=("paged",)), loops(plays))
    def count(case, loop):
        case = case | {"horizon_ps": None}
        log, _ = run_loop(case | {"allocator": "prefix"}, loop | {"cancel": None})
        ended = log.recording.requests.ended
        calls = loop["traffic"].survey().rows_kept
        if all(record.end == "finished" for record in ended):
            assert len(ended) == calls
        else:
            assert len({record.id // loop["traffic"].attempts for record in ended}) <= calls

    count()


def test_the_same_calls_have_the_same_ids_whatever_serves_them(plays):
    def lengths(**changes):
        case = {"pool_slots": 4096, "block_size": 4, "watermark": 0.0, "max_num_seqs": 4, "max_num_batched_tokens": 64,
                "max_model_len": 1000, "long_prefill_token_threshold": 0, "chunked_prefill": True, "horizon_ps": None,
                "reserve_full_isl": True, "step_time": {"base_ps": 100, "token_ps": 10, "context_ps": 1,
                                                        "copied_ps": 0}}  # fmt: skip
        traffic = ReplayTraffic(plays[3], clients=ClientLoop(clients=2), identities=True)
        log, _ = run_loop(case | changes, {"traffic": traffic})
        return {record.id: (record.prompt_tokens, record.output_tokens) for record in log.recording.requests.ended}

    assert lengths(allocator="prefix") == lengths(allocator="paged", max_num_seqs=64) == lengths(allocator="radix")

"""Recorded sessions in a closed loop: a turn waits for its answer and pauses as recorded, or as its times tell."""

import json

import pytest

from kvsim.content import LAYERS, own_stream
from kvsim.errors import InputError
from kvsim.workload.arrivals import Constant as Evenly
from kvsim.workload.clients.limits import Patience
from kvsim.workload.clients.tags import Tags
from kvsim.workload.lengths import Constant
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.replayed.traffic import ReplayTraffic
from kvsim.workload.replayed.waits import ThinkBounds
from kvsim.workload.reshape import Reshape
from kvsim.workload.sessions.laws import ClientLoop, OnFailure
from kvsim.workload.stream import Workload
from tests.workload.replayed.engines import served, times


@pytest.fixture
def lines(tmp_path):
    def write(*rows, name="trace.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def mooncake(session, timestamp=None, delay=None, prompt=100, output=10, **more):
    row = {"session_id": session, "timestamp": timestamp, "delay": delay, "input_length": prompt,
           "output_length": output, **more}  # fmt: skip
    return {key: value for key, value in row.items() if value is not None}


@pytest.fixture
def talks(lines):
    """Two sessions of Mooncake's form: the pauses of the first are recorded, of the second only times are."""
    return lines(
        mooncake("a", 0),
        mooncake("b", 1000),
        mooncake("a", delay=2000),
        mooncake("b", 6000),
        mooncake("a", 9000, delay=500),
    )


def test_a_turn_comes_its_recorded_delay_after_the_answer(talks):
    fast, slow = (times(served(Workload(ReplayTraffic(talks)), takes_s=takes)) for takes in (1, 30))
    assert [fast[number] for number in (0, 2, 4)] == [0, 3, 4.5]
    assert [slow[number] for number in (0, 2, 4)] == [0, 32, 62.5]


def test_without_a_delay_or_a_duration_a_turn_keeps_its_distance_unless_the_answer_is_late(talks):
    fast, slow = (times(served(Workload(ReplayTraffic(talks)), takes_s=takes)) for takes in (1, 30))
    assert [fast[number] for number in (1, 3)] == [1, 6]
    assert [slow[number] for number in (1, 3)] == [1, 31]


def test_where_the_trace_tells_how_long_calls_took_the_rest_is_the_pause(tmp_path):
    path = tmp_path / "burst.csv"
    path.write_text(
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "10,s,4,m,50,5,55,c\n100,t,1,m,50,5,55,c\n20,s,3,m,60,5,65,c\n"
    )
    assert times(served(Workload(ReplayTraffic(path)), takes_s=1)) == {0: 0, 1: 90, 2: 7}


def test_a_recorded_wait_from_start_to_start_waits_for_the_answer_too(tmp_path):
    rows = [{"chat_id": 1, "parent_chat_id": -1, "timestamp": 5}, {"chat_id": 2, "parent_chat_id": 1, "timestamp": 15}]
    path = tmp_path / "bailian.jsonl"
    more = {"input_length": 32, "output_length": 4, "type": "text", "turn": 1, "hash_ids": [1, 2]}
    path.write_text("".join(json.dumps(row | more) + "\n" for row in rows))
    assert times(served(Workload(ReplayTraffic(path)), takes_s=2)) == {0: 0, 1: 10}
    assert times(served(Workload(ReplayTraffic(path)), takes_s=12)) == {0: 0, 1: 12}


def test_pauses_are_cut_or_drawn_on_demand(talks):
    cut = ThinkBounds(least_ps=10**12, most_ps=10**12)
    assert times(served(Workload(ReplayTraffic(talks, bounds=cut)), takes_s=1)) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 4}
    drawn = ReplayTraffic(talks, think_ms=Constant(value=3000))
    assert times(served(Workload(drawn), takes_s=1)) == {0: 0, 1: 1, 2: 4, 3: 5, 4: 8}


def test_an_open_loop_takes_the_recorded_times_whatever_the_answers(talks, lines):
    with pytest.raises(InputError, match=r"request 3 of those kept has no time of its own.*loop: closed"):
        list(Workload(ReplayTraffic(talks, loop="open")))
    told = lines(mooncake("a", 0), mooncake("b", 500), mooncake("a", 2000, delay=100), name="told.jsonl")
    workload = Workload(ReplayTraffic(told, loop="open"))
    assert not workload.closed
    assert [(r.arrival_ps // 10**9, r.session, r.turn) for r in workload] == [(0, 0, 0), (500, 1, 0), (2000, 0, 1)]
    stretched = Workload(ReplayTraffic(told, loop="open", rate=1.0))
    assert [request.arrival_ps // 10**9 for request in stretched] == [0, 1000, 4000]


def test_the_rate_stretches_the_starts_of_sessions_and_leaves_pauses_alone(talks):
    found = times(served(Workload(ReplayTraffic(talks, rate=0.1)), takes_s=1))
    assert [found[number] for number in (0, 1)] == [0, 10]
    assert [found[number] for number in (2, 3)] == [3, 15]


def test_sessions_begin_by_a_process_or_one_after_the_other_at_each_client(lines):
    path = lines(*(mooncake(f"s{k}", 0) for k in range(4)), *(mooncake(f"s{k}", delay=1000) for k in range(4)))
    by_process = times(served(Workload(ReplayTraffic(path, arrivals=Evenly(rate=0.5))), takes_s=1))
    assert [by_process[number] for number in range(8)] == [2, 4, 6, 8, 4, 6, 8, 10]
    loop = ReplayTraffic(path, clients=ClientLoop(clients=2, ramp_s=1), rest_ms=Constant(value=5000))
    by_clients = times(served(Workload(loop), takes_s=1))
    assert [by_clients[number] for number in range(8)] == [0, 0.5, 8, 8.5, 2, 2.5, 10, 10.5]


def test_a_trace_without_times_says_what_would_be_right(lines):
    row = {"num_turns": 1, "input_prompt_length": 9, "assistant_response_length": [3], "tool_call_output_length": [4],
           "tool_call_latency": [0.5], "final_assistant_response_length": 2}  # fmt: skip
    path = lines(row, row)
    with pytest.raises(InputError, match=r"not every session has a time.*workload\.clients"):
        list(Workload(ReplayTraffic(path)))
    found = served(Workload(ReplayTraffic(path, clients=ClientLoop(clients=1))), takes_s=1)
    assert [request.prompt_tokens for request in found] == [9, 16, 9, 16]
    assert sorted(times(found).values()) == [0, 1.5, 2.5, 4]


AGENTS = [
    {"schema": "dynamo.agentic_mooncake", "block_size": 4, "hash_id_scope": "local"},
    *(
        {"request_id": id, "play_id": "p", "session_id": session, "input_length": 8, "output_length": 2,
         "hash_ids": [1, 2], "dependencies": after, "not_before_ms": 0}
        for id, session, after in (
            ("main", "m", []),
            ("one", "x", [{"request_id": "main", "trigger": "dispatch", "relation": "spawn", "delay_ms": 100}]),
            ("two", "y", [{"request_id": "main", "trigger": "completion", "relation": "spawn", "delay_ms": 200}]),
            ("more", "x", [{"request_id": "one", "trigger": "completion", "relation": "sequence", "delay_ms": 0}]),
            ("join", "m", [{"request_id": "main", "trigger": "completion", "relation": "sequence", "delay_ms": 0},
                           {"request_id": "more", "trigger": "completion", "relation": "join", "delay_ms": 50},
                           {"request_id": "two", "trigger": "completion", "relation": "join", "delay_ms": 0}]),
        )
    ),
]  # fmt: skip


def test_agents_are_spawned_at_the_sending_or_at_the_answer_and_joined_when_all_are_done(lines):
    traffic = ReplayTraffic(lines(*AGENTS), clients=ClientLoop(clients=1))
    assert times(served(Workload(traffic), takes_s=1)) == {0: 0, 1: 0.1, 2: 1.2, 3: 1.1, 4: 2.2}


def test_a_failed_agent_ends_its_session_and_its_caller_goes_on_after_the_back_off(lines):
    traffic = ReplayTraffic(
        lines(*AGENTS), clients=ClientLoop(clients=1), on_failure=OnFailure(then="end", back_off_s=7)
    )
    found = served(Workload(traffic), takes_s=1, ends=lambda r: "aborted" if r.id == 1 else "finished")
    assert times(found) == {0: 0, 1: 0.1, 2: 1.2, 4: 8.1}


def test_a_failed_turn_ends_its_session_with_all_that_it_would_have_started(lines):
    path = lines(mooncake("a", 0), mooncake("a", delay=0), mooncake("a", delay=0), mooncake("b", 50_000))
    traffic = ReplayTraffic(path, on_failure=OnFailure(then="end"))
    found = served(Workload(traffic), takes_s=1, ends=lambda r: "rejected" if r.id == 1 else "finished")
    assert times(found) == {0: 0, 1: 1, 3: 50}


def test_a_failed_turn_goes_on_after_the_back_off(talks):
    traffic = ReplayTraffic(talks, on_failure=OnFailure(then="go-on", back_off_s=4))
    found = times(served(Workload(traffic), takes_s=1, ends=lambda r: "cancelled" if r.id == 0 else "finished"))
    assert [found[number] for number in (2, 4)] == [7, 8.5]


def test_a_failed_turn_is_tried_again_with_the_same_prompt_ever_later_and_then_given_up(talks):
    traffic = ReplayTraffic(talks, on_failure=OnFailure(then="retry", back_off_s=1, retries=2), identities=True)
    found = served(Workload(traffic), takes_s=1, ends=lambda r: "rejected" if r.session == 0 else "finished")
    first = [request for request in found if request.session == 0]
    assert [(request.id, request.arrival_ps // 10**12) for request in first] == [(0, 0), (1, 2), (2, 5)]
    assert len({request.turn for request in first}) == 1
    assert [request.id for request in found if request.session == 1] == [3, 9]


def test_what_is_a_calls_own_is_named_after_its_first_attempt_in_a_sample_too(lines):
    path = lines(*(mooncake(f"s{k}", k, prompt=20) for k in range(6)), mooncake("s5", delay=0, prompt=7))
    traffic = ReplayTraffic(
        path, options=ReadOptions(prompts="delta"), on_failure=OnFailure(then="retry", retries=1), identities=True,
        reshape=Reshape(share=0.6, repeat=2),
    )  # fmt: skip
    for request in served(Workload(traffic, seed=2), ends=lambda r: "rejected" if not r.id % 2 else "finished"):
        own = request.content.runs[-1].stream
        assert own == own_stream(request.id // 2 * 2)


def test_a_client_whose_session_fails_begins_its_next(lines):
    path = lines(mooncake("a", 0), mooncake("b", 0), mooncake("a", delay=0))
    loop = ReplayTraffic(path, clients=ClientLoop(clients=1), on_failure=OnFailure(then="end", back_off_s=2))
    assert times(served(Workload(loop), takes_s=1, ends=lambda r: "aborted")) == {0: 0, 1: 3}


def test_what_is_recorded_with_a_call_comes_along_and_a_mix_replaces_it(tmp_path):
    path = tmp_path / "blis.csv"
    path.write_text(
        "request_id,tenant_id,slo_class,session_id,input_tokens,output_tokens,arrival_time_us,deadline_us,status\n"
        "1,acme,gold,s,40,4,1000000,3500000,timeout\n2,acme,gold,s,50,4,5000000,0,ok\n"
    )
    first, second = served(Workload(ReplayTraffic(path), priority=3, tenant="others"))
    assert (first.tenant, first.slo_class, first.priority, first.patience_ps) == ("acme", "gold", 3, 2_500_000_000_000)
    assert (second.patience_ps, second.session, second.turn) == (None, first.session, 1)
    mixed = served(Workload(ReplayTraffic(path), mix=[Tags(tenant="new", priority=5)], cancel=Patience(after_s=9)))
    assert {(r.tenant, r.priority, r.slo_class, r.patience_ps) for r in mixed} == {("new", 5, "", 9 * 10**12)}


def test_further_samples_are_as_long_as_the_recorded_output(talks):
    assert {request.more_outputs for request in served(Workload(ReplayTraffic(talks), samples=3))} == {(10, 10)}


def test_prompts_hold_the_blocks_of_the_trace(lines):
    path = lines(
        mooncake("a", 0, prompt=20, hash_ids=[7, 8, 9], block_size=8),
        mooncake("a", delay=0, prompt=30, hash_ids=[7, 8, 10, 11]),
    )
    first, second = served(Workload(ReplayTraffic(path, identities=True)))
    assert first.content.common(second.content) == 16
    assert first.content.tokens == 20


def test_where_a_turn_tells_what_it_adds_it_begins_with_its_history(lines):
    path = lines(mooncake("a", 0, prompt=20, output=5), mooncake("a", delay=0, prompt=7, output=5))
    traffic = ReplayTraffic(path, options=ReadOptions(prompts="delta"), identities=True)
    first, second = served(Workload(traffic))
    assert (first.prompt_tokens, second.prompt_tokens) == (20, 32)
    # The prompt and its answer, which the engine writes behind it, and then its own.
    assert [tuple(run) for run in second.content.runs] == [(own_stream(0), 0, 25), (own_stream(1), 25, 7)]
    split = dict(zip(LAYERS, Workload(traffic).layers().split(second.content.runs, 32), strict=True))
    assert split["session"] == 32


def test_without_identities_no_prompt_has_a_content(talks):
    assert {request.content for request in served(Workload(ReplayTraffic(talks)))} == {None}


def many(lines, sessions=300):
    return lines(
        *(
            mooncake(f"s{k}", 1000 * k + turn if not turn else None, delay=turn * 10 or None, prompt=50 + turn)
            for turn in range(3)
            for k in range(sessions)
        )
    )


def test_a_sample_keeps_whole_sessions_at_their_times(lines):
    traffic = ReplayTraffic(many(lines), reshape=Reshape(share=0.3))
    found = served(Workload(traffic, seed=5))
    kept = {request.session for request in found}
    assert len(kept) == pytest.approx(90, abs=25)
    assert len(found) == 3 * len(kept)
    starts = sorted(request.arrival_ps // 10**12 for request in found if not request.turn)
    assert starts[-1] - starts[0] > 250
    assert served(Workload(traffic, seed=6)) != found


def test_a_window_takes_sessions_that_begin_in_it_whole_and_repetitions_follow(lines):
    shape = Reshape(from_s=100, until_s=110, repeat=2)
    found = served(Workload(ReplayTraffic(many(lines), reshape=shape)), takes_s=0.1)
    assert len(found) == 2 * 10 * 3
    starts = [request.arrival_ps // 10**12 for request in found if not request.turn]
    assert starts == [*range(20)]
    assert len({request.id for request in found}) == len(found)


def test_the_rate_of_sessions_is_multiplied_by_warping_their_starts(talks):
    found = times(served(Workload(ReplayTraffic(talks, reshape=Reshape(rate_times=2))), takes_s=1))
    assert found == {0: 0, 1: 0.5, 2: 3, 3: 5.5, 4: 4.5}


def test_a_window_that_no_session_begins_in_says_so(lines):
    with pytest.raises(InputError, match=r"reshape: no session is left"):
        list(Workload(ReplayTraffic(many(lines), reshape=Reshape(from_s=900))))


def test_the_same_seed_gives_the_same_requests_whatever_the_engine(lines):
    def told(takes_s):
        loop = ReplayTraffic(
            many(lines), clients=ClientLoop(clients=7), think_ms=Constant(value=20), reshape=Reshape(share=0.5),
        )  # fmt: skip
        mix = [Tags(tenant="a"), Tags(tenant="b")]
        workload = Workload(loop, seed=9, mix=mix, cancel=Patience(after_s=1e6, share=0.5))
        return {
            (r.id, r.session, r.turn, r.prompt_tokens, r.output_tokens, r.tenant, r.patience_ps)
            for r in served(workload, takes_s=takes_s)
        }

    assert told(0.5) == told(lambda request: 0.1 + request.id % 7)


def test_longer_prompts_of_blocks_are_refused_and_others_are_scaled(lines):
    path = lines(mooncake("a", 0, prompt=20, hash_ids=[7, 8, 9], block_size=8))
    shape = Reshape(prompt_times=1.5, output_times=2)
    with pytest.raises(InputError, match=r"reshape\.prompt_times"):
        list(Workload(ReplayTraffic(path, identities=True, reshape=shape)))
    (request,) = served(Workload(ReplayTraffic(path, reshape=shape)))
    assert (request.prompt_tokens, request.output_tokens) == (30, 20)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loop": "ajar"}, "loop: must be closed or open"),
        ({"clients": ClientLoop(clients=1), "rate": 2.0}, "clients: a loop of clients is closed"),
        ({"rate": -1.0}, "rate: must be a finite number above 0"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(talks, arguments, message):
    with pytest.raises(ValueError, match=message):
        ReplayTraffic(talks, **arguments)

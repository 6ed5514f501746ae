"""What a scenario says of a trace: its sessions, what its file cannot say, and which of it comes."""

import json

import pytest

from kvsim.errors import InputError
from kvsim.scenario import Scenario
from kvsim.scenario.build import build
from kvsim.study.single import run
from kvsim.workload.replayed.traffic import ReplayTraffic
from kvsim.workload.trace import TraceTraffic

BASE = {"model": "llama-3.1-8b", "gpu": "H100", "pool": {"tokens": 40_000}, "engine": {"max_model_len": 8192}}


@pytest.fixture
def talks(tmp_path):
    path = tmp_path / "talks.jsonl"
    rows = [
        {"session_id": "a", "timestamp": 0, "input_length": 1024, "output_length": 20, "hash_ids": [1, 2]},
        {"session_id": "b", "timestamp": 4000, "input_length": 512, "output_length": 20, "hash_ids": [9]},
        {"session_id": "a", "delay": 3000, "input_length": 1536, "output_length": 20, "hash_ids": [1, 2, 3]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def scenario(trace, sessions=None, **changes):
    workload = {"trace": trace, **({} if sessions is None else {"sessions": sessions}), **changes}
    return Scenario.from_dict(BASE | {"workload": workload})


def of(trace, sessions=None, **changes):
    return build(scenario(trace, sessions, **changes), 0).traffic


def test_sessions_beside_a_trace_are_the_recorded_ones_and_closed(talks):
    traffic = of(talks, {})
    assert isinstance(traffic, ReplayTraffic)
    assert traffic.closed
    assert not of(talks, {"loop": "open"}).closed
    assert isinstance(of(talks), TraceTraffic)


def test_a_run_waits_for_the_answer_and_finds_the_turn_before_it():
    def ended(**engine):
        text = scenario("lmcache-web-agents", {"think": "1s"}, requests=12).to_dict()
        return run(Scenario.from_dict(text | {"engine": {"profile": "vllm@0.33", "max_model_len": 32768} | engine}))

    quick, slow = ended(), ended(max_num_batched_tokens=256)
    for result in (quick, slow):
        rows = result.tables["requests"]
        by_turn = dict(zip(zip(rows["session"], rows["turn"], strict=True), rows["id"], strict=True))
        for (session, turn), number in by_turn.items():
            if turn:
                before = by_turn[session, turn - 1]
                assert rows["arrival_s"][number] >= rows["end_s"][before]
    assert slow.tables["requests"]["arrival_s"][-1] > quick.tables["requests"]["arrival_s"][-1]
    assert quick.metrics["hit_rate"] > 0.3


def test_answers_that_are_said_to_be_repeated_are_found_again():
    def found(answers):
        workload = {"trace": "lmcache-web-agents", "sessions": {"loop": "closed"}, "requests": 80}
        given = BASE | {"pool": {"tokens": 400_000}, "workload": workload | {"read": {"answers": answers}},
                        "engine": {"profile": "vllm@0.33", "max_model_len": 32_768}}  # fmt: skip
        result = run(Scenario.from_dict(given))
        return result.metrics["hit_tokens"], result.notes

    plain, _ = found("unlike")
    more, notes = found("repeated")
    assert more > plain
    assert any("calls are taken to be what the next prompts of their sessions have" in note for note in notes)


def test_a_stepwise_run_is_the_same_to_the_bit(talks):
    one, other = (run(scenario(talks, {}), stepwise=stepwise, check=True) for stepwise in (False, True))
    assert one.metrics == other.metrics
    assert dict(one.tables["requests"]) == dict(other.tables["requests"])


def test_sessions_begin_by_arrivals_or_at_clients(talks):
    by_process = of(talks, {}, arrivals={"process": "constant"}, rate="2/s")
    assert by_process.describe()["arrivals"] == {"process": "constant", "rate": 2.0}
    by_clients = of(talks, clients={"count": 2, "ramp": "1s", "think": "4s"})
    assert by_clients.describe()["clients"] == {"clients": 2, "ramp_s": 1.0}


def test_what_the_run_says_of_its_traffic(talks):
    result = run(scenario(talks, {"loop": "closed"}, rate="1/s", reshape={"share": 0.99}))
    assert "in sessions as recorded, closed loop, time stretched to 1 sessions/s" in result.provenance["workload"]
    assert "reshaped to 0.99 of the sessions (fewer, at their times)" in result.provenance["workload"]
    alone = run(scenario("azure-conv-2023", {}, requests=5))
    assert any("records no sessions" in note for note in alone.notes)


def test_a_run_that_does_not_follow_the_sessions_of_its_trace_says_so(tmp_path):
    path = tmp_path / "chats.csv"
    path.write_text("arrival_s,prompt_tokens,output_tokens,session\n0,30,3,a\n1,40,4,b\n2,50,4,a\n")
    said = "The trace records sessions, and this run sends every call at its recorded time."
    assert any(note.startswith(said) for note in run(scenario(str(path))).notes)
    for followed in (run(scenario(str(path), {"loop": "open"})), run(scenario("azure-conv-2023", requests=3))):
        assert not any(note.startswith(said) for note in followed.notes)


def test_a_run_that_leaves_tenants_out_says_so_and_how_they_come_along(tmp_path):
    path = tmp_path / "calls.csv"
    path.write_text("arrival_s,prompt_tokens,output_tokens,tenant\n0,30,3,a\n1,40,4,b\n")
    alone, followed = run(scenario(str(path))), run(scenario(str(path), {"loop": "open"}))
    said = "The trace tells tenants or priorities, and this run leaves them out."
    assert [any(note.startswith(said) for note in one.notes) for one in (alone, followed)] == [True, False]
    assert [list(one.tables["requests"]["tenant"]) for one in (alone, followed)] == [[None, None], ["a", "b"]]


def test_a_sample_by_session_needs_no_loop(talks):
    traffic = of(talks, reshape={"by": "session", "output_times": 2}, on_bad_row="drop", read={"prompts": "whole"})
    assert isinstance(traffic, ReplayTraffic)
    assert not traffic.closed


def test_a_scenario_written_out_reads_back(talks):
    given = scenario(talks, {"think": {"distribution": "recorded", "max": "10s"}, "on_failure": "retry"})
    assert Scenario.from_dict(given.to_dict()).settings == given.settings


def test_what_the_file_cannot_say_is_said_beside_it(tmp_path):
    table = tmp_path / "calls.csv"
    table.write_text("when,tokens_in,tokens_out,who\n5,30,3,x\n1000,40,4,x\n")
    read = {"columns": {"time": "when", "prompt": "tokens_in", "output": "tokens_out", "session": "who"},
            "time_unit": "ms"}  # fmt: skip
    rows = run(scenario(str(table), {}, read=read)).tables["requests"]
    assert list(rows["prompt_tokens"]) == [30, 40]
    assert list(rows["turn"]) == [0, 1]
    plain = run(scenario(str(table), read=read)).tables["requests"]
    assert list(plain["arrival_s"]) == [0, 0.995]
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"prompt": "one two three"}\n')
    words = scenario(str(texts), clients={"count": 1}, read={"tokenizer": "builtins:sorted", "output_tokens": 7})
    rows = run(words).tables["requests"]
    assert (list(rows["prompt_tokens"]), list(rows["output_tokens"])) == ([13], [7])


def test_a_folder_of_sessions_is_a_trace(tmp_path):
    session = {"id": "s", "block_size": 64, "hash_id_scope": "local", "requests": [
        {"t": 0, "type": "n", "in": 70, "out": 3, "hash_ids": [1, 2]},
        {"t": 9, "type": "n", "in": 130, "out": 3, "hash_ids": [1, 2, 3], "think_time": 4},
    ]}  # fmt: skip
    (tmp_path / "one.json").write_text(json.dumps(session))
    result = run(scenario(str(tmp_path), clients={"count": 1}))
    assert result.metrics["finished"] == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sessions": {"turns": 4}}, "workload.sessions.turns: a trace brings its own"),
        ({"sessions": {"history": {"keep": "window", "turns": 2}}}, "workload.sessions.history: a trace brings its"),
        ({"arrivals": {"process": "poisson"}, "rate": "1/s"}, "workload.arrivals: a trace brings its own"),
        ({"rate": "1/s", "reshape": {"rate_times": 2}}, "workload.reshape.rate_times: 2 is given beside rate"),
        ({"read": {"answers": "repeated"}}, "workload.read.answers: repeated is about sessions"),
        ({"sessions": {}, "sort": True}, "workload.sort: true means nothing to sessions"),
        ({"sessions": {}, "reshape": {"by": "request"}}, "workload.reshape.by: request would tear sessions apart"),
        ({"clients": {"count": 1, "think": {"distribution": "recorded"}}}, "workload.clients.think.distribution"),
        ({"clients": {"count": 1}, "rate": "1/s"}, "workload.rate: means nothing to a loop of clients"),
        ({"read": {"columns": {"tokens": "x"}}}, "workload.read.columns"),
        ({"read": {"tokenizer": "nowhere"}}, "workload.read.tokenizer"),
    ],
)
def test_what_does_not_go_with_a_trace_is_told_with_its_key(talks, changes, message):
    with pytest.raises(InputError) as error:
        scenario(talks, **changes)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"read": {"tokenizer": "no.such:thing"}}, "tokenizer no.such:thing: cannot be loaded"),
        ({"read": {"tokenizer": "math:ceil", "chars_per_token": 3.0}}, "tokenizer: give either"),
        ({"sessions": {"loop": "open"}}, "request 3 of those kept has no time of its own"),
    ],
)
def test_what_shows_when_the_trace_is_read_is_told_too(talks, changes, message):
    with pytest.raises(InputError, match=message):
        run(scenario(talks, **changes))


def test_drawn_sessions_have_no_recorded_pauses():
    workload = {"rate": "1/s", "requests": 5, "prompt_tokens": 100, "output_tokens": 10}
    with pytest.raises(InputError, match=r"recorded is no law of its own; give workload\.trace"):
        Scenario.from_dict(BASE | {"workload": workload | {"sessions": {"think": {"distribution": "recorded"}}}})
    with pytest.raises(InputError, match=r"workload\.reshape\.by: session is for a trace"):
        Scenario.from_dict(BASE | {"workload": workload | {"reshape": {"by": "session"}}})

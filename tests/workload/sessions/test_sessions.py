"""Sessions: what a turn repeats of those before it, when it comes, and that nothing of it depends on the engine."""

from collections import defaultdict
from heapq import heappop, heappush
from itertools import islice, pairwise
from random import Random

import pytest

from kvsim.content import ENDLESS, Content, Run, own_stream
from kvsim.metrics.requests import entering
from kvsim.request import PS_PER_S
from kvsim.workload.arrivals import Constant as Evenly
from kvsim.workload.arrivals import Poisson
from kvsim.workload.clients.limits import Patience
from kvsim.workload.clients.tags import Tags
from kvsim.workload.layers import Shared, layer_map
from kvsim.workload.lengths import Constant, Lognormal, Uniform
from kvsim.workload.sessions.history import Compact, Truncate, Whole, Window
from kvsim.workload.sessions.laws import Agents, ClientLoop, OnFailure, SessionLaws
from kvsim.workload.sessions.loop import SessionTraffic
from kvsim.workload.stream import Workload

FIVE_TURNS = {"turns": Constant(value=5), "think_ms": Constant(value=2000)}


def laws(**changes):
    return SessionLaws(
        **{
            "prompt_tokens": Uniform(min=80, max=120),
            "output_tokens": Uniform(min=10, max=30),
            "new_tokens": Uniform(min=5, max=15),
        }
        | changes
    )


def workload(changes=(), *, seed=3, closed=False, clients=None, requests=60, **options):
    begin = {"clients": clients} if clients else {"arrivals": Poisson(rate=0.5)}
    traffic = SessionTraffic(laws(**dict(changes)), closed=closed, requests=requests, **begin)
    return Workload(traffic, seed=seed, **options)


def served(workload, *, seed=0, ends=lambda request: "finished", tokens=lambda request: request.output_tokens):
    """All requests of a closed loop, served by an engine that takes whatever time it likes."""
    delays = Random(seed)
    coming = [(request.arrival_ps, request.id, request) for request in workload]
    running, done = [], []
    while coming or running:
        if coming and (not running or coming[0][0] <= running[0][0]):
            _, _, request = heappop(coming)
            done.append(request)
            heappush(running, (request.arrival_ps + delays.randrange(PS_PER_S), request.id, request))
            continue
        end_ps, _, request = heappop(running)
        for following in workload.after(request.id, end_ps, ends(request), tokens(request)):
            assert following.arrival_ps >= end_ps
            heappush(coming, (following.arrival_ps, following.id, following))
    return done


def by_session(requests):
    found = defaultdict(list)
    for request in requests:
        found[request.session].append(request)
    return found


def identity(request):
    """What must be the same whatever serves it."""
    return (request.id, request.session, request.turn, request.output_tokens, request.prompt_tokens,
            request.max_tokens, request.patience_ps, request.more_outputs, request.tenant)  # fmt: skip


def written(request):
    """The content of the sequence that the engine makes of a request, prompt and output, by the engine's own rule."""
    return entering(request, 1 << 30).sequence.content


def test_a_turn_begins_with_the_whole_turn_before_and_its_answer():
    for turns in by_session(workload(FIVE_TURNS)).values():
        assert [request.turn for request in turns] == list(range(len(turns)))
        for before, after in pairwise(turns):
            known = before.prompt_tokens + before.output_tokens
            assert written(before).common(written(after)) == known
            assert 5 <= after.prompt_tokens - known <= 15


def test_the_answer_in_the_next_prompt_is_the_stream_that_the_sequence_writes():
    first, second = by_session(workload(FIVE_TURNS))[0][:2]
    expected = Run(own_stream(first.id), first.prompt_tokens, ENDLESS)
    assert written(first).part(first.prompt_tokens, first.prompt_tokens + 5)[0].stream == expected.stream
    whole = written(first).part(0, first.prompt_tokens + first.output_tokens)
    assert second.content.part(0, first.prompt_tokens + first.output_tokens) == whole


def test_different_sessions_share_nothing_but_the_layers():
    layers = [Shared(name="system", tokens=40)]
    sessions = by_session(workload(FIVE_TURNS, layers=layers))
    one, other = sessions[0][-1], sessions[1][-1]
    assert one.content.common(other.content) == 40


def test_a_session_keeps_its_texts_and_every_turn_brings_its_own():
    layers = [
        Shared(name="system", tokens=20),
        Shared(name="tenant", tokens=10, texts=5),
        Shared(name="documents", tokens=7, texts=30, count=2, each="turn"),
    ]
    run = workload(FIVE_TURNS, layers=layers)
    told = layer_map(layers)
    for turns in by_session(run).values():
        assert len({request.content.runs[1].stream for request in turns}) == 1
        for before, after in pairwise(turns):
            known = before.prompt_tokens + before.output_tokens
            assert before.content.common(after.content) == before.prompt_tokens
            fresh = Content(after.content.part(known, after.prompt_tokens)).runs
            assert [told.of(run.stream) for run in fresh] == ["documents", "documents", "session"]


def test_what_was_said_before_is_the_sessions_layer():
    told = workload(FIVE_TURNS, layers=[Shared(name="system", tokens=20), Shared(name="tenant", tokens=10, texts=5)])
    last = by_session(told)[0][-1]
    assert told.layers().split(last.content.runs, last.prompt_tokens) == (20, 10, last.prompt_tokens - 30, 0, 0)


def test_the_window_drops_old_turns_and_with_them_the_common_beginning():
    turns = by_session(workload(FIVE_TURNS | {"history": Window(turns=2)}, layers=[Shared(name="s", tokens=16)]))[0]
    assert turns[1].content.common(turns[2].content) == turns[1].prompt_tokens
    assert turns[2].content.common(turns[3].content) == 16
    assert len({run.stream for run in turns[4].content.runs}) == 4  # the layer, two turns, its own


def test_truncation_keeps_whole_turns_up_to_its_limit():
    rule = Truncate(tokens=70)
    for turns in by_session(workload({"turns": Constant(value=9), "history": rule})).values():
        assert all(request.prompt_tokens <= 70 + 15 for request in turns[1:])
        assert any(request.prompt_tokens > 50 for request in turns[2:])


def test_compaction_puts_a_summary_of_its_own_in_place_of_the_history():
    changes = {"turns": Constant(value=12), "history": Compact(tokens=160, summary_tokens=33)}
    for turns in by_session(workload(changes)).values():
        resets = 0
        for before, after in pairwise(turns):
            known = before.prompt_tokens + before.output_tokens
            if known > 160:
                resets += 1
                assert 33 + 5 <= after.prompt_tokens <= 33 + 15
                assert before.content.common(after.content) == 0
            else:
                assert written(before).common(written(after)) == known
        assert resets >= len(turns) // 8


def test_in_an_open_loop_turns_come_at_their_time():
    for turns in by_session(workload(FIVE_TURNS)).values():
        assert {after.arrival_ps - before.arrival_ps for before, after in pairwise(turns)} <= {2 * PS_PER_S}


def test_in_a_closed_loop_a_turn_comes_its_pause_after_the_answer():
    run = workload(FIVE_TURNS, closed=True)
    first = next(iter(run))
    [second] = run.after(first.id, 17 * PS_PER_S, "finished", first.output_tokens)
    assert (second.session, second.turn, second.arrival_ps) == (first.session, 1, 19 * PS_PER_S)


def test_requests_come_in_order_of_time_and_have_ids_of_their_own():
    for run in (workload(FIVE_TURNS), workload({"turns": Uniform(min=1, max=9)})):
        requests = list(run)
        assert [request.arrival_ps for request in requests] == sorted(request.arrival_ps for request in requests)
        assert sorted(request.id for request in requests) == list(range(60))


AGENTS = Agents(share=0.5, count=Uniform(min=1, max=3), turns=Uniform(min=1, max=3))
KINDS = {
    "sessions": {"changes": {"turns": Uniform(min=1, max=6), "think_ms": Lognormal(median=900, sigma=1)}},
    "agents": {"changes": FIVE_TURNS | {"agents": AGENTS}},
    "clients": {"changes": FIVE_TURNS, "clients": ClientLoop(clients=4, ramp_s=1)},
    "one turn": {"changes": {"think_ms": Constant(value=10)}, "clients": ClientLoop(clients=5)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_request_is_the_same_whatever_the_engine_does(kind):
    """Same seed, same stream, in closed loops: ids, lengths, limits and contents; only times differ."""
    runs = [
        served(
            workload(**KINDS[kind], closed=True, samples=2, cancel=Patience(after_s=9, share=0.3),
                     mix=[Tags(tenant="a"), Tags(tenant="b", weight=2)]),
            seed=engine,
        )
        for engine in (1, 2)
    ]  # fmt: skip
    assert [request.arrival_ps for request in runs[0]] != [request.arrival_ps for request in runs[1]]
    assert sorted(map(identity, runs[0])) == sorted(map(identity, runs[1]))
    for one, two in zip(*(sorted(run, key=lambda request: request.id) for run in runs), strict=True):
        assert one.content == two.content
    assert len(runs[0]) == 60


def test_open_and_closed_loops_have_the_same_sessions():
    opened, closed = list(workload(FIVE_TURNS)), served(workload(FIVE_TURNS, closed=True))
    assert sorted(map(identity, opened)) == sorted(map(identity, closed))


def test_a_further_session_leaves_those_before_it_as_they_are():
    few, many = (sorted(map(identity, workload(FIVE_TURNS, requests=count))) for count in (40, 200))
    assert few == many[:40]


def test_a_longer_session_leaves_the_turns_of_the_others_as_they_are():
    some, more = (
        {(r.session, r.turn): r.output_tokens for r in workload({"turns": Uniform(min=1, max=most)}, requests=200)}
        for most in (4, 8)
    )
    common = some.keys() & more.keys()
    assert len(common) > 40
    assert all(some[key] == more[key] for key in common)


def test_every_client_waits_for_its_answer_before_it_sends_again():
    run = workload({"think_ms": Constant(value=500)}, clients=ClientLoop(clients=3, ramp_s=3), requests=30)
    assert [request.arrival_ps for request in run] == [0, PS_PER_S, 2 * PS_PER_S]
    requests = served(run)
    assert len(requests) == 30
    own = defaultdict(list)
    for request in requests:
        own[request.id % 3].append(request)
    assert [len(one) for one in own.values()] == [10, 10, 10]
    for one in own.values():
        assert all(b.arrival_ps - a.arrival_ps >= PS_PER_S // 2 for a, b in pairwise(one))


def test_what_failed_ends_the_session_unless_told_otherwise():
    fail = {"ends": lambda request: "aborted" if request.turn == 1 else "finished"}
    turns = by_session(served(workload(FIVE_TURNS, closed=True), **fail))
    assert {len(one) for one in turns.values()} == {2}


def test_a_client_that_is_refused_waits_before_its_next_session():
    run = workload({"on_failure": OnFailure(back_off_s=2)}, clients=ClientLoop(clients=1), requests=None)
    first = next(iter(run))
    [second] = run.after(first.id, 7, "rejected", 0)
    assert (second.session, second.turn, second.arrival_ps) == (1, 0, 7 + 2 * PS_PER_S)


def test_texts_in_turn_go_round_from_session_to_session():
    layers = [Shared(name="group", tokens=9, texts=4, pick="in-turn")]
    sessions = by_session(workload(FIVE_TURNS, layers=layers))
    assert [one[0].content.runs[0].stream for _, one in sorted(sessions.items())] == [0, 1, 2, 3] * 3


def test_a_failed_turn_is_tried_again_later_and_later_and_then_given_up():
    rule = OnFailure(then="retry", back_off_s=2, retries=3)
    run = workload(FIVE_TURNS | {"on_failure": rule}, closed=True, requests=5)
    request, end_ps, arrivals = next(iter(run)), 0, []
    ids = {request.id}
    while following := run.after(request.id, end_ps, "cancelled", 0):
        [request] = following
        arrivals.append(request.arrival_ps - end_ps)
        ids.add(request.id)
        assert (request.turn, request.content.tokens) == (0, request.prompt_tokens)
    assert arrivals == [2 * PS_PER_S, 4 * PS_PER_S, 8 * PS_PER_S]
    assert len(ids) == 4


def test_a_retry_that_succeeds_goes_on_with_the_session():
    rule = OnFailure(then="retry", back_off_s=1)
    failed = set()

    def ends(request):
        if (request.session, request.turn) in failed:
            return "finished"
        failed.add((request.session, request.turn))
        return "rejected"

    requests = served(workload(FIVE_TURNS | {"on_failure": rule}, closed=True, requests=20), ends=ends)
    assert len(requests) == 40
    last = max(by_session(requests)[0], key=lambda request: request.arrival_ps)
    assert last.turn == 4
    assert len({run.stream for run in last.content.runs}) == 5  # of each turn the attempt that succeeded


def test_a_session_that_goes_on_repeats_what_was_generated_and_nothing_where_nothing_was():
    changes = FIVE_TURNS | {"on_failure": OnFailure(then="go-on", back_off_s=3)}
    for tokens, streams in ((0, 1), (4, 2)):
        run = workload(changes, closed=True, requests=5)
        first = next(iter(run))
        [second] = run.after(first.id, 0, "cancelled", tokens)
        assert second.arrival_ps == 5 * PS_PER_S
        assert len(second.content.runs) == streams
        assert written(first).common(written(second)) == (first.prompt_tokens + 4 if tokens else 0)


@pytest.mark.parametrize("relation", ["fork", "spawn"])
def test_agents_inherit_or_begin_anew_and_their_answers_come_back(relation):
    agents = Agents(share=1, count=Constant(value=2), turns=Constant(value=2), relation=relation)
    run = workload(
        {"turns": Constant(value=2), "agents": agents}, closed=True, requests=6, layers=[Shared(name="s", tokens=9)]
    )
    requests = {request.id: request for request in served(run)}
    caller, back, first, first_more, second, second_more = (requests[number] for number in range(6))
    inherited = caller.prompt_tokens + caller.output_tokens
    for agent in (first, second):
        assert written(caller).common(agent.content) == (inherited if relation == "fork" else 9)
    assert first.content.common(second.content) == (inherited if relation == "fork" else 9)
    assert written(first).common(first_more.content) == first.prompt_tokens + first.output_tokens
    assert written(caller).common(back.content) == inherited
    answers = back.content.part(inherited, inherited + first_more.output_tokens + second_more.output_tokens)
    assert answers == (
        Run(own_stream(first_more.id), first_more.prompt_tokens, first_more.output_tokens),
        Run(own_stream(second_more.id), second_more.prompt_tokens, second_more.output_tokens),
    )
    assert back.arrival_ps >= max(first_more.arrival_ps, second_more.arrival_ps)


def test_agents_that_do_not_join_leave_the_conversation_as_it_was():
    agents = Agents(share=1, count=Constant(value=2), join=False)
    requests = sorted(served(workload({"turns": Constant(value=2), "agents": agents}, closed=True, requests=4)),
                      key=lambda request: request.id)  # fmt: skip
    assert len(requests[1].content.runs) == 2


def test_an_open_loop_has_agents_too():
    requests = list(workload(FIVE_TURNS | {"agents": AGENTS}, requests=100))
    assert sorted(request.id for request in requests) == list(range(100))
    # More than five of a session: agents. They share its number.
    assert max(len(one) for one in by_session(requests).values()) > 5


def test_a_limit_of_the_client_cuts_what_the_history_repeats():
    first, second = by_session(workload(FIVE_TURNS, max_tokens=7))[0][:2]
    assert written(first).common(second.content) == first.prompt_tokens + 7


def test_kinds_of_client_are_sessions_kinds():
    mix = [Tags(tenant="free", priority=5, slo_class="batch"), Tags(tenant="paid", weight=3, slo_class="chat")]
    sessions = by_session(workload(FIVE_TURNS, requests=400, mix=mix))
    kinds = [{(r.tenant, r.priority, r.slo_class) for r in one} for one in sessions.values()]
    assert all(len(kind) == 1 for kind in kinds)
    assert {next(iter(kind)) for kind in kinds} == {("free", 5, "batch"), ("paid", 0, "chat")}
    assert sum(kind == {("paid", 0, "chat")} for kind in kinds) == pytest.approx(60, abs=15)


def test_sessions_without_a_count_do_not_end():
    assert len(list(islice(workload(FIVE_TURNS, requests=None), 5_000))) == 5_000


def test_sessions_begin_by_their_arrivals():
    traffic = SessionTraffic(laws(turns=Constant(value=2)), arrivals=Evenly(rate=0.1), requests=6)
    times = [request.arrival_ps // PS_PER_S for request in Workload(traffic) if request.turn == 0]
    assert times == [10, 20, 30]


@pytest.mark.parametrize("history", [Whole(), Window(turns=3), Truncate(tokens=9), Compact(tokens=9, summary_tokens=2)])
def test_the_report_is_plain_values(history):
    import json

    told = workload({"history": history, "agents": AGENTS}, mix=[Tags()]).describe()
    assert json.loads(json.dumps(told, allow_nan=False))["history"]["keep"] == history.keep


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Window(turns=0), "turns"),
        (lambda: Truncate(tokens=0), "tokens"),
        (lambda: Compact(tokens=5, summary_tokens=0), "summary_tokens"),
        (lambda: Agents(share=2), "share"),
        (lambda: Agents(share=1, relation="copy"), "relation"),
        (lambda: OnFailure(then="stop"), "then"),
        (lambda: OnFailure(back_off_s=0), "back_off_s"),
        (lambda: OnFailure(retries=0), "retries"),
        (lambda: ClientLoop(clients=0), "clients"),
        (lambda: ClientLoop(clients=1, ramp_s=-1), "ramp_s"),
        (lambda: SessionTraffic(laws()), "arrivals"),
        (lambda: SessionTraffic(laws(), arrivals=Poisson(rate=1), requests=0), "requests"),
        (lambda: Tags(weight=0), "weight"),
        (lambda: Tags(priority=1 << 63), "priority"),
    ],
)
def test_what_cannot_be_is_refused_by_name(make, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        make()

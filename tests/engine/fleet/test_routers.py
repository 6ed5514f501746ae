"""Routers: whom they choose, and that chance has no memory."""

from collections import Counter
from dataclasses import dataclass

import pytest

from kvsim.content import Content, Run
from kvsim.engine.fleet import ROUTERS
from kvsim.engine.fleet.routers import (
    LeastKv,
    LeastRequests,
    PowerOfTwo,
    PrefixAware,
    Random,
    RoundRobin,
    SessionAffinity,
)
from kvsim.engine.fleet.routers.draws import bucket, draw
from kvsim.request import Request


@dataclass
class Seat:
    number: int
    requests: int = 0
    held_slots: int = 0


def request(number=0, *, session=None, content=None):
    return Request(number, 0, 100, 10, session=session, content=content)


def seats(*loads, held=None):
    held = held or [0] * len(loads)
    return [Seat(number, load, slots) for number, (load, slots) in enumerate(zip(loads, held, strict=True))]


def test_round_robin_goes_in_turn():
    router, members = RoundRobin(), seats(0, 0, 0)
    assert [router.choose(request(number), members).number for number in range(6)] == [0, 1, 2, 0, 1, 2]
    # Turns of sessions come in another order than they are numbered in.
    assert [router.choose(request(number), members).number for number in (9, 30, 12)] == [0, 1, 2]


def test_round_robin_goes_on_behind_the_last_one_where_there_are_more_or_fewer():
    router = RoundRobin()
    counts = [3, 3, 4, 4, 4, 2, 2]
    assert [router.choose(request(), seats(*[0] * count)).number for count in counts] == [0, 1, 2, 3, 0, 1, 0]


def test_random_is_even_and_the_same_again_in_any_order():
    members = seats(*[0] * 5)
    chosen = [Random(seed=3).choose(request(number), members).number for number in range(5000)]
    again = [Random(seed=3).choose(request(number), members).number for number in reversed(range(5000))]
    assert chosen == again[::-1]
    assert chosen != [Random(seed=4).choose(request(number), members).number for number in range(5000)]
    # 5 sigma of a binomial count with p = 1/5.
    assert all(abs(count - 1000) < 5 * (5000 * 0.2 * 0.8) ** 0.5 for count in Counter(chosen).values())


def test_all_turns_of_a_session_go_to_one_replica():
    router, members = SessionAffinity(seed=1), seats(*[0] * 7)
    where = {s: {router.choose(request(n, session=s), members).number for n in range(20)} for s in range(50)}
    assert all(len(places) == 1 for places in where.values())
    assert len({place for places in where.values() for place in places}) == 7


def test_one_replica_more_moves_only_the_sessions_that_go_to_it():
    few, more = seats(*[0] * 9), seats(*[0] * 10)
    router = SessionAffinity()
    before = [router.choose(request(session=s), few).number for s in range(3000)]
    after = [router.choose(request(session=s), more).number for s in range(3000)]
    moved = [new for old, new in zip(before, after, strict=True) if new != old]
    assert set(moved) == {9}
    assert abs(len(moved) - 300) < 5 * (3000 * 0.1 * 0.9) ** 0.5


@pytest.mark.parametrize("buckets", [1, 2, 3, 10, 1000])
def test_buckets_are_all_filled_evenly(buckets):
    counts = Counter(bucket(draw(0, "test", key), buckets) for key in range(20 * buckets + 1000))
    assert set(counts) == set(range(buckets))


def test_the_fewest_requests_get_it_and_equals_take_turns():
    router = LeastRequests()
    assert router.choose(request(), seats(3, 1, 2)).number == 1
    assert [router.choose(request(), seats(0, 0, 0)).number for _ in range(4)] == [2, 0, 1, 2]


def test_the_least_held_gets_it_whatever_waits():
    assert LeastKv().choose(request(), seats(9, 0, 5, held=[10, 30, 20])).number == 0


def test_of_two_choices_the_emptier_is_taken():
    members = seats(*range(10))
    chosen = Counter(PowerOfTwo().choose(request(number), members).number for number in range(9000))
    # Of two that differ among ten, the lower is k with probability (9 - k) / 45.
    for number in range(10):
        share = (9 - number) / 45
        assert abs(chosen[number] - 9000 * share) <= 5 * (9000 * share * (1 - share)) ** 0.5


def test_two_choices_of_one_replica_are_that_one():
    assert PowerOfTwo().choose(request(), seats(4)).number == 0


class Told:
    def __init__(self, *found):
        self._found = list(found)

    def found(self, content, tokens):
        return self._found


PROMPT = Content([Run(1, 0, 100)])


def test_who_has_most_of_the_prompt_gets_it():
    router = PrefixAware(Told(32, 64, 48))
    assert router.choose(request(content=PROMPT), seats(0, 50, 0)).number == 1


def test_of_equal_finds_the_fewest_requests_decide():
    router = PrefixAware(Told(64, 64, 0))
    assert router.choose(request(content=PROMPT), seats(5, 4, 0)).number == 1


def test_a_short_find_is_none():
    router = PrefixAware(Told(16, 0, 0), min_match=0.3)
    assert router.choose(request(content=PROMPT), seats(5, 1, 2)).number == 1
    assert PrefixAware(Told(16, 0, 0), min_match=0.1).choose(request(content=PROMPT), seats(5, 1, 2)).number == 0


@pytest.mark.parametrize(("loads", "chosen"), [((75, 10), 1), ((74, 10), 0), ((264, 199), 0), ((151, 80), 1)])
def test_a_fleet_out_of_balance_goes_by_its_load(loads, chosen):
    # More than 64 requests more, and more than 1.5 times as many.
    assert PrefixAware(Told(96, 0)).choose(request(content=PROMPT), seats(*loads)).number == chosen


def test_a_prompt_that_nobody_has_told_of_goes_by_load():
    assert PrefixAware(Told(96, 0)).choose(request(), seats(2, 1)).number == 1


def test_only_routers_without_state_say_so():
    assert {name for name, kind in ROUTERS.items() if kind.stateless} == {"round-robin", "random", "session-affinity"}
    assert {name for name, kind in ROUTERS.items() if kind.follows_caches} == {"prefix-aware"}

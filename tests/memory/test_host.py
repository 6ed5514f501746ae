"""Host memory, told by hand and against a plain dictionary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.errors import CheckError
from kvsim.memory.host import HostPool


def test_a_request_that_does_not_fit_is_refused_and_nothing_changes():
    host = HostPool(10)
    assert host.take(1, 6)
    assert not host.take(2, 5)
    assert host.used == 6
    assert host.take(2, 4)
    assert host.used == 10


def test_what_leaves_makes_room():
    host = HostPool(10)
    host.take(1, 6)
    host.give(1)
    assert host.used == 0
    assert host.take(2, 10)


def test_leaving_twice_is_a_double_free():
    host = HostPool(10)
    host.take(1, 6)
    host.give(1)
    with pytest.raises(CheckError, match="request 1 leaves host memory in which it holds nothing"):
        host.give(1)


def test_a_pool_without_slots_takes_nobody_and_one_of_fewer_is_refused():
    assert not HostPool(0).take(1, 1)
    with pytest.raises(ValueError, match="slots is -1"):
        HostPool(-1)


@given(slots=st.integers(0, 30), calls=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 20))))
def test_host_memory_is_a_dictionary_of_who_holds_how_much(slots, calls):
    host, held = HostPool(slots), {}
    for number, wanted in calls:
        if number in held:
            host.give(number)
            del held[number]
        elif host.take(number, wanted):
            held[number] = wanted
        else:
            assert sum(held.values()) + wanted > slots
        assert host.used == sum(held.values()) <= slots

"""The changes of a map: packed and unpacked they are the same; thinned out they are exact at the instants named."""

import base64
import random
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.reporting.page.map.changes import FREE, changes_of, sampled
from kvsim.reporting.page.map.maps import MOST_INSTANTS, maps_of
from kvsim.reporting.page.map.packing import packed, varints
from kvsim.step import CLASSES
from tests.fake_results import POOL_TOKENS, fake_result

SLOTS = 64


def table(rows):
    names = ("time_s", "start", "length", "request", "sample", "class")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def random_table(count, seed, slots=SLOTS, requests=9):
    """Changes as a recorder could write them, and more wildly."""
    draw, time_s, rows = random.Random(seed), 0.0, []
    for _ in range(count):
        time_s += draw.choice((0.0, 0.0, 0.000_002, 0.021, 1.5))
        start = draw.randrange(slots)
        length = draw.randint(1, min(12, slots - start))
        if draw.random() < 0.2:
            rows.append((time_s, start, length, None, None, "free"))
        else:
            kind = draw.choice([name for name in CLASSES if name != "free"])
            rows.append((time_s, start, length, draw.randrange(requests), draw.randrange(2), kind))
    return table(rows)


def unpacked(text):
    """A reader of its own: (microseconds, start, length, owner, class) of every change."""
    data = iter(zlib.decompress(base64.b64decode(text)))

    def number():
        value = shift = 0
        for byte in data:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
        raise AssertionError("ended in the middle of a number")

    def signed():
        value = number()
        return -(value + 1) // 2 if value % 2 else value // 2

    times, count = number(), number()
    moments = np.cumsum([number() for _ in range(times)]).tolist()
    counts = [number() for _ in range(times)]
    owners = np.cumsum([signed() for _ in range(count)]).tolist()
    kinds = [number() for _ in range(count)]
    offsets = [signed() for _ in range(count)]
    lengths = [number() for _ in range(count)]
    assert next(data, None) is None
    time = [moment for moment, many in zip(moments, counts, strict=True) for _ in range(many)]
    ends, starts = {}, []
    for owner, kind, offset, length in zip(owners, kinds, offsets, lengths, strict=True):
        starts.append(ends.get((owner, kind), 0) + offset)
        ends[owner, kind] = starts[-1] + length
    return list(zip(time, starts, lengths, owners, kinds, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_packed_is_unpacked_the_same(seed):
    rows = random_table(300, seed)
    changes = changes_of(rows)
    found = unpacked(packed(changes))
    assert len(found) == 300
    for place, (time_us, start, length, owner, kind) in enumerate(found):
        assert time_us == pytest.approx(rows["time_s"][place] * 1e6, abs=0.51)
        assert (start, length) == (rows["start"][place], rows["length"][place])
        assert CLASSES[kind] == rows["class"][place]
        of = (None, None) if owner == 0 else changes.owners[owner - 1]
        assert of == (rows["request"][place], rows["sample"][place])


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=20))
def test_a_varint_has_seven_bits_a_byte_and_the_eighth_says_that_more_follow(numbers):
    expected = bytearray()
    for number in numbers:
        while number >= 128:
            expected.append(number % 128 + 128)
            number //= 128
        expected.append(number)
    assert varints(np.array(numbers, dtype=np.int64)) == bytes(expected)


def pools(changes, instants_us):
    """The pool at each of the instants: owner and class of every slot."""
    pool, at, found = [(0, FREE)] * SLOTS, 0, []
    for instant in instants_us:
        while at < len(changes) and changes.time_us[at] <= instant:
            start, length = int(changes.start[at]), int(changes.length[at])
            pool[start : start + length] = [(int(changes.owner[at]), int(changes.kind[at]))] * length
            at += 1
        found.append(list(pool))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_thinned_out_the_map_is_exact_at_every_instant_also_by_steps(seed):
    whole = changes_of(random_table(500, seed))
    end_us = int(whole.time_us[-1]) + 1000
    finer = sampled(whole, SLOTS, end_us, 64)
    coarser = sampled(finer, SLOTS, end_us, 16)
    at_once = sampled(whole, SLOTS, end_us, 16)
    instants = [round(place / 64 * end_us) for place in range(65)]
    free = [[(0, FREE) if kind == FREE else (owner, kind) for owner, kind in pool] for pool in pools(whole, instants)]
    assert pools(finer, instants) == free
    assert pools(coarser, instants[::4]) == free[::4]
    assert [column.tolist() for column in (coarser.time_us, coarser.start, coarser.length)] == [
        column.tolist() for column in (at_once.time_us, at_once.start, at_once.length)
    ]
    assert len(coarser) <= len(finer) <= len(whole) + 65 * SLOTS
    assert set(finer.time_us.tolist()) <= set(instants)


def test_a_map_names_its_requests_and_has_all_changes_where_there_is_room():
    result = fake_result()
    result.tables["addresses"] = table(
        [(0.0, 0, 32, 4, 0, "reserved"), (20.0, 0, 8, 4, 0, "used"), (60.0, 0, 32, None, None, "free")]
    )
    [made] = maps_of([fake_result("without"), result], 10_000)
    assert (made.recorded, made.changes, made.instants) == (3, 3, 0)
    assert (made.pool_tokens, made.block_tokens) == (POOL_TOKENS, 16)
    assert made.kinds == ["used", "reserved", "free"]
    assert made.owners == [(4, 0)]
    assert made.requests == [(4, 404, 100, 0.4)]


def test_maps_share_the_room_and_what_one_does_not_need_the_others_have():
    small, large = fake_result("small"), fake_result("large")
    small.tables["addresses"] = random_table(50, 1)
    large.tables["addresses"] = random_table(8_000, 2)
    large.metrics["simulated_s"] = large.tables["addresses"]["time_s"][-1]
    room = 16_000
    first, second = maps_of([large, small], room)
    assert second.instants == 0
    assert 0 < first.instants < MOST_INSTANTS
    assert room / 3 < len(first.text) + len(second.text) <= room
    [alone] = maps_of([large], 100)
    assert alone.text == ""


def test_without_addresses_and_where_nothing_ever_lay_there_is_no_map():
    empty = fake_result("empty")
    empty.tables["addresses"] = table([])
    assert maps_of([fake_result(), empty], 10_000) == []

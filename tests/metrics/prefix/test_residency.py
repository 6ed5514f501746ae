"""The record of what was cached: uses, evictions and regrets of contents, told by hand."""

import pytest

from kvsim.errors import CheckError
from kvsim.metrics.prefix import Residency

SIZE = 16


def filled():
    record = Residency()
    record.stored(0, ["a", "b"], SIZE)
    record.stored(10, ["c"], SIZE)
    record.stored(20, ["d", "e"], SIZE)
    return record


def found(record, now_ps, *pieces, beyond=()):
    record.admitted(now_ps, 7, [(piece, SIZE) for piece in pieces], [(piece, SIZE) for piece in beyond])


def test_the_distance_counts_other_contents_touched_in_between_once():
    record = filled()
    found(record, 30, "a")
    found(record, 40, "c")
    # Between the two uses of a: c, d, e. Between those of c: d, e and a, but b only before.
    assert record.reuse_distance.sum_ps == 3 * SIZE * SIZE + 3 * SIZE * SIZE
    assert record.reuse_distance.count == 2 * SIZE
    assert record.reuse_gap.sum_ps == SIZE * 30 + SIZE * 30


def test_what_is_stored_and_found_in_one_step_has_nothing_in_between():
    record = filled()
    found(record, 20, "d")
    assert (record.reuse_distance.max_ps, record.reuse_gap.max_ps) == (0, 0)


def test_a_content_is_gone_with_its_last_copy():
    record = filled()
    record.stored(30, ["a"], SIZE)
    record.removed(50, ["a"], SIZE)
    assert record.idle.count == 0
    record.removed(60, ["a", "c"], SIZE)
    assert record.idle.count == record.lifetime.count == 2 * SIZE
    assert record.idle.sum_ps == SIZE * (60 - 30) + SIZE * (60 - 10)
    assert record.lifetime.sum_ps == SIZE * 60 + SIZE * 50


def test_a_new_life_begins_with_the_next_store():
    record = filled()
    record.removed(40, ["c"], SIZE)
    record.stored(50, ["c"], SIZE)
    record.removed(55, ["c"], SIZE)
    assert record.lifetime.max_ps == 30
    assert record.lifetime.sum_ps == SIZE * (30 + 5)


def test_regret_is_what_was_cached_once_up_to_the_first_that_never_was():
    record = filled()
    record.removed(40, ["b", "c"], SIZE)
    found(record, 50, "a", beyond=("b", "new", "c"))
    assert record.regret == {7: SIZE}


def test_nothing_is_regretted_by_the_first_of_its_kind():
    record = filled()
    found(record, 50, "a", "b", beyond=("new", "newer"))
    assert record.regret == {}


def test_the_parts_of_an_edge_keep_its_times():
    record = Residency()
    record.stored(0, ["edge"], 10)
    record.cut("edge", "upper")
    record.admitted(30, 7, [("upper", 4)], ())
    record.removed(50, ["edge"], 6, for_good=True)
    assert record.idle.sum_ps == 6 * 50
    record.removed(60, ["upper"], 4, for_good=True)
    assert record.idle.sum_ps == 6 * 50 + 4 * 30
    assert record.lifetime.sum_ps == 6 * 50 + 4 * 60


def test_a_cache_that_changes_before_it_has_changed_last_is_a_mistake():
    record = filled()
    with pytest.raises(CheckError, match="changes at 19 ps, after it has changed at 20 ps"):
        record.stored(19, ["f"], SIZE)

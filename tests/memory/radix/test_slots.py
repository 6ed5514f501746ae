"""Which slots are handed out, and that what the tree keeps lies where it was written.

The order is that of SGLang 0.5.23's pools of indices (`TokenToKVPoolAllocator`, `PagedTokenToKVPoolAllocator`), worked
out by hand from their code: `alloc` takes the front of `free_pages`; `free` concatenates behind it for single slots,
before it for pages; between `free_group_begin` and `free_group_end` nothing is freed.
"""

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.content import Content, Run
from kvsim.errors import CheckError
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.row import Row, audit_rows, checkpoint, unlock
from kvsim.memory.radix.slots import SlotBook
from kvsim.memory.radix.slots.free import FreeSlots
from kvsim.memory.radix.tree import RadixTree
from tests.effort import examples
from tests.memory.radix.naive_tree import content_of


def slots(*numbers):
    return array("q", numbers)


def test_a_new_pool_hands_out_slots_in_order():
    free = FreeSlots(6, 1)
    assert [list(free.take(2)), list(free.take(3)), len(free)] == [[0, 1], [2, 3, 4], 1]


def test_single_slots_that_come_free_are_handed_out_after_all_others():
    free = FreeSlots(6, 1)
    free.take(4)
    free.give(slots(3, 1))
    free.give(slots(0))
    assert list(free.take(5)) == [4, 5, 3, 1, 0]


def test_pages_that_come_free_are_handed_out_before_all_others_those_of_one_row_in_its_order():
    free = FreeSlots(12, 2)
    free.take(8)
    free.give(slots(6, 7, 2, 3))
    free.give(slots(0, 1))
    assert list(free.take(10)) == [0, 1, 6, 7, 2, 3, 8, 9, 10, 11]


def test_what_the_results_of_a_batch_free_comes_free_together():
    free = FreeSlots(8, 2)
    free.take(6)
    free.hold()
    free.give(slots(4, 5))
    free.give(slots(0, 1))
    assert len(free) == 6
    free.let_go()
    assert list(free.take(6)) == [4, 5, 0, 1, 6, 7]


class Engine:
    """Rows over a tree, as their allocators drive it, and a memory of what was written into which slot."""

    def __init__(self, pool_slots, page_size):
        self.pool = SlotPool(pool_slots, page_size=page_size)
        self.tree = RadixTree(self.pool)
        self.book = self.pool.book = SlotBook(pool_slots, page_size)
        self.memory = {}
        self.rows = []

    def admit(self, content):
        """The row of a request behind what the tree has of it, written; None where there is no room."""
        match = self.tree.match(content, content.tokens - 1)
        self.tree.lock(match.node)
        row = Row(content, content.tokens, 0, content.tokens, match.tokens, 0, match.node)
        need = self.pool.ceil(content.tokens) - match.tokens
        self.tree.make_room(need)
        if need > self.pool.free:
            unlock(self.tree, row)
            return
        self.pool.take(need)
        self.book.take(row, need)
        own = self.book.rows[row]
        for at in range(match.tokens, content.tokens):
            self.memory[own[at - match.tokens]] = content.part(at, at + 1)
        self.rows.append(row)

    def keep(self, row):
        checkpoint(self.tree, row, row.tokens)

    def finish(self, row):
        self.rows.remove(row)
        self.keep(row)
        self.pool.give(self.pool.ceil(row.tokens) - row.protected)
        self.book.give_back(row)
        unlock(self.tree, row)

    def holds(self):
        """Every edge lies in the slots into which its content was written, and every slot is in one place."""
        audit_rows(self.tree, self.rows, sum(self.pool.ceil(row.tokens) for row in self.rows))
        for edge, where in self.book.edges.items():
            for at, slot in enumerate(where):
                assert self.memory[slot] == edge.content.part(at, at + 1)
        everywhere = [slot for part in (*self.book.edges.values(), *self.book.rows.values()) for slot in part]
        everywhere += self.book.free.take(len(self.book.free))
        assert sorted(everywhere) == list(range(self.pool.slots))
        # As they were: what is given back to an empty queue comes out of it in the same order.
        self.book.free.give(slots(*everywhere[len(everywhere) - self.pool.free :]))


KEYS = st.lists(st.builds(Run, st.integers(0, 1), st.integers(0, 2), st.integers(1, 7)), min_size=1, max_size=3)


@settings(max_examples=examples(150))
@given(
    st.sampled_from([1, 2, 4]),
    st.lists(st.tuples(st.sampled_from(["admit", "admit", "keep", "finish"]), KEYS, st.integers(0, 9)), max_size=30),
)
def test_what_the_tree_keeps_lies_where_it_was_written_through_cuts_duplicates_and_evictions(page_size, story):
    engine = Engine(48, page_size)
    for verb, key, which in story:
        if verb == "admit":
            engine.admit(content_of(key))
        elif engine.rows:
            getattr(engine, verb)(engine.rows[which % len(engine.rows)])
        engine.holds()


def content(*runs):
    return Content([Run(*run) for run in runs])


def test_a_cut_edge_stays_in_place_and_whoever_computed_the_same_gives_its_own_slots_back():
    engine = Engine(12, 1)
    for key in (content((0, 0, 4)), content((0, 0, 2), (1, 0, 2))):
        engine.admit(key)
    first, second = engine.rows
    engine.keep(first)
    assert [list(where) for where in engine.book.edges.values()] == [[0, 1, 2, 3]]
    engine.keep(second)
    assert sorted(map(list, engine.book.edges.values())) == [[0, 1], [2, 3], [6, 7]]
    assert list(engine.book.freed) == [4, 5]
    assert [len(engine.book.rows[row]) for row in (first, second)] == [0, 0]


def test_an_emptied_tree_gives_back_every_slot():
    engine = Engine(8, 2)
    engine.admit(content((0, 0, 6)))
    engine.finish(engine.rows[0])
    assert engine.tree.reset()
    assert (engine.book.edges, engine.book.rows, len(engine.book.free)) == ({}, {}, 8)


def test_slots_that_are_nowhere_are_noticed():
    engine = Engine(8, 1)
    engine.admit(content((0, 0, 3)))
    engine.book.rows[engine.rows[0]].pop()
    with pytest.raises(CheckError, match=r"2 slots of rows, 0 of the tree and 5 free ones are known of a pool of 8"):
        engine.holds()

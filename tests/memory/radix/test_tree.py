"""The radix tree holds what a dictionary of prefixes holds, whatever is done to it."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from kvsim.content import Content, Run
from kvsim.errors import CheckError
from kvsim.memory.radix.eviction import POLICIES
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.tree import RadixTree
from tests.memory.radix.audit import audit
from tests.memory.radix.naive_tree import NaivePrefixes, content_of

runs = st.lists(st.builds(Run, st.integers(0, 1), st.integers(0, 2), st.integers(1, 7)), min_size=1, max_size=3)

SLOTS = 120


class TreeAndDictionary(RuleBasedStateMachine):
    """Match lengths, lock counts, sums, eviction order and shape agree after every step; no slot is lost."""

    held = Bundle("held")

    @initialize(page_size=st.sampled_from([1, 2, 3]))
    def begin(self, page_size):
        self.pool = SlotPool(SLOTS, page_size=page_size)
        self.tree = RadixTree(self.pool)
        self.naive = NaivePrefixes(page_size)

    @rule(key=runs, short=st.integers(0, 3))
    def match(self, key, short):
        content = content_of(key)
        limit = max(0, content.tokens - short)
        pages = self.naive.pages(key)[: limit // self.pool.page_size]
        match = self.tree.match(content, limit)
        assert match.tokens == self.naive.match(pages) * self.pool.page_size
        assert match.tokens == sum(node.tokens for node in match.node.path())

    @rule(key=runs)
    def insert(self, key):
        content, pages = content_of(key), self.naive.pages(key)
        slots = len(pages) * self.pool.page_size
        self.evict(max(0, slots - self.pool.free))
        if slots <= self.pool.free:
            self.pool.take(slots)
            insertion = self.tree.insert(content)
            assert insertion.found == self.naive.insert(pages) * self.pool.page_size
            assert sum(node.tokens for node in insertion.node.path()) == slots

    @rule(key=runs, target=held)
    def lock(self, key):
        pages = self.naive.pages(key)
        node = self.tree.match(content_of(key)).node
        prefix = pages[: self.naive.match(pages)]
        self.tree.lock(node)
        self.naive.hold(prefix, 1)
        return node, prefix

    @rule(one=consumes(held))
    def unlock(self, one):
        node, prefix = one
        self.tree.unlock(node)
        self.naive.hold(prefix, -1)

    @rule(tokens=st.integers(0, SLOTS))
    def evict(self, tokens):
        expected = 0
        while expected < tokens and (pages := self.naive.evict_one()):
            expected += pages * self.pool.page_size
        assert self.tree.evict(tokens) == expected

    @invariant()
    def the_sums_agree(self):
        assert self.tree.evictable_tokens == self.naive.evictable
        assert self.tree.protected_tokens == self.naive.protected
        assert self.pool.free + self.tree.tokens == SLOTS
        audit(self.tree)

    @invariant()
    def the_shape_agrees(self):
        shape = {}
        for node in self.tree.nodes():
            whole = [run for above in reversed(node.path()) for run in above.content.runs]
            shape[self.naive.pages(whole)] = node.locks
        assert shape == {end: self.naive.locks[end] for end in self.naive.ends}


TestTreeAndDictionary = TreeAndDictionary.TestCase
TestTreeAndDictionary.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)


def key(*runs):
    return Content(Run(*run) for run in runs)


def tree_with(pool_slots, *keys, eviction="lru", page_size=1):
    tree = RadixTree(SlotPool(pool_slots, page_size=page_size), eviction=eviction)
    for content, priority in keys:
        tree.pool.take(tree.pool.floor(content.tokens))
        tree.insert(content, priority=priority)
    return tree


A, B, C = key((1, 0, 10)), key((2, 0, 10)), key((3, 0, 10))


def left(tree):
    return {content.runs[0].stream for content in (A, B, C) if tree.match(content).tokens}


@pytest.mark.parametrize(
    ("eviction", "first_gone"),
    [
        ("lru", 2),  # A and C were touched after it
        ("mru", 3),  # touched last
        ("lfu", 1),  # brought once, C once too but later; B twice
        ("fifo", 1),
        ("filo", 3),
        ("priority", 2),  # A and C have more
        ("slru", 1),  # of A and C, brought once, A was touched earlier
        ("tlru", 2),
    ],
)
def test_each_policy_has_its_own_idea_of_what_goes_first(eviction, first_gone):
    tree = tree_with(100, (A, 1), (B, 0), (B, 0), (A, 1), (C, 2), eviction=eviction)
    hits = {node.content.runs[0].stream: node for node in tree.nodes()}
    hits[1].hits = 1  # as if one request had brought A in two chunks
    assert tree.evict(1) == 10
    assert left(tree) == {1, 2, 3} - {first_gone}


def test_every_policy_is_tried_above():
    assert set(POLICIES) == {"lru", "mru", "lfu", "fifo", "filo", "priority", "slru", "tlru"}
    with pytest.raises(ValueError, match="no eviction policy 'fancy'; there are lru, "):
        RadixTree(SlotPool(1), eviction="fancy")


def test_a_duplicate_goes_back_to_the_pool_from_what_the_inserter_owns_on():
    tree = tree_with(100, (A, 0))
    tree.pool.take(6)  # 4 of 10 tokens are the tree's: it was admitted with them
    tree.insert(A, owned=4)
    assert tree.pool.free == 90


def test_a_chunk_counts_one_hit_on_each_node_however_often_it_is_inserted():
    tree = tree_with(100, (A, 0))
    tree.insert(A, owned=10, counted=10)
    assert [node.hits for node in tree.nodes()] == [1]


def test_a_split_refreshes_the_part_that_nobody_asked_for():
    tree = tree_with(100, (A, 0), (B, 0))
    tree.match(A, 4)
    tree.evict(1)
    assert tree.match(A).tokens == 10


def test_a_locked_path_stays_and_what_hangs_below_it_goes():
    tree = tree_with(100, (A, 0))
    tree.lock(tree.match(A, 4).node)
    assert tree.evict(100) == 6
    assert (tree.evictable_tokens, tree.protected_tokens, tree.pool.free) == (0, 4, 96)


def test_unlocking_once_too_often_is_an_error():
    tree = tree_with(100, (A, 0))
    with pytest.raises(CheckError, match="unlocked more often"):
        tree.unlock(tree.match(A).node)


def test_pages_that_differ_in_their_last_token_share_nothing():
    tree = tree_with(32, (key((1, 0, 16)), 0), page_size=8)
    assert tree.match(key((1, 0, 15), (2, 0, 1))).tokens == 8
    assert tree.match(key((1, 0, 7), (2, 0, 9))).tokens == 0
    assert tree.match(key((1, 0, 16)), limit=15).tokens == 8


def test_a_long_prompt_is_one_node_of_one_run():
    tree = tree_with(10**6, (key((1, 0, 10**6)), 0))
    [node] = tree.nodes()
    assert node.content.runs == [Run(1, 0, 10**6)]


def test_a_pool_hands_out_whole_pages_and_no_more_than_it_has():
    pool = SlotPool(32, page_size=8)
    pool.take(24)
    for slots in (16, 4, -8):
        with pytest.raises(CheckError):
            pool.take(slots)
    for slots in (32, 4, -8):
        with pytest.raises(CheckError):
            pool.give(slots)
    assert pool.free == 8
    with pytest.raises(ValueError, match="not a whole number of pages"):
        SlotPool(30, page_size=8)

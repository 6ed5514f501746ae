"""The host tier: what is written, what stays there alone, what comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.content import Content, Run
from kvsim.memory.radix.eviction import POLICIES
from kvsim.memory.radix.host import WRITE_POLICIES, TieredRadixTree
from kvsim.memory.radix.pool import SlotPool
from tests.memory.radix.audit import audit, audit_host
from tests.memory.radix.naive_tree import content_of

runs = st.lists(st.builds(Run, st.integers(0, 1), st.integers(0, 2), st.integers(1, 7)), min_size=1, max_size=3)
does = st.one_of(
    st.tuples(st.just("insert"), runs),
    st.tuples(st.just("match"), runs),
    st.tuples(st.just("load"), runs),
    st.tuples(st.just("lock"), runs),
    st.tuples(st.just("unlock"), st.integers(0, 9)),
    st.tuples(st.just("evict"), st.integers(0, 60)),
)


def tiered(write_policy, host_slots=40, *, slots=60, page_size=1, load_back_tokens=1, eviction="lru"):
    return TieredRadixTree(
        SlotPool(slots, page_size=page_size),
        SlotPool(host_slots, page_size=page_size),
        write_policy=write_policy,
        load_back_tokens=load_back_tokens,
        eviction=eviction,
    )


@given(
    st.sampled_from(sorted(WRITE_POLICIES)),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([4, 12, 40]),
    st.sampled_from(sorted(POLICIES)),
    st.lists(does, max_size=40),
)
def test_no_slot_is_lost_on_either_tier_whatever_is_done(write_policy, page_size, host_slots, eviction, done):
    tree = tiered(write_policy, host_slots, page_size=page_size, eviction=eviction)
    held = []
    for what, value in done:
        if what == "insert":
            content = content_of(value)
            slots = tree.pool.floor(content.tokens)
            tree.make_room(slots)
            if slots <= tree.pool.free:
                tree.pool.take(slots)
                tree.insert(content)
        elif what == "evict":
            tree.evict(value)
        elif what == "unlock":
            if held:
                tree.unlock(held.pop(value % len(held)))
        else:
            match = tree.match(content_of(value))
            if what == "load":
                loaded = tree.load_back(match)
                assert loaded in (0, match.host_tokens)
            elif what == "lock":
                tree.lock(match.node)
                held.append(match.node)
        assert tree.pool.free + tree.tokens == tree.pool.slots
        audit(tree)
        audit_host(tree)


A, B = Content([Run(1, 0, 20)]), Content([Run(2, 0, 20)])


def insert(tree, content):
    tree.pool.take(content.tokens)
    tree.insert(content)


def test_write_through_copies_what_is_inserted_and_eviction_then_leaves_it_on_the_host():
    tree = tiered("write_through")
    insert(tree, A)
    assert (tree.written_tokens, tree.host.free) == (20, 20)
    assert tree.evict(1) == 20
    match = tree.match(A)
    assert (match.tokens, match.host_tokens) == (0, 20)


def test_selective_write_through_waits_for_the_second_request():
    tree = tiered("write_through_selective")
    insert(tree, A)
    assert tree.written_tokens == 0
    insert(tree, A)
    assert tree.written_tokens == 20


def test_write_back_copies_on_eviction_and_drops_what_the_host_cannot_take():
    tree = tiered("write_back", host_slots=20)
    insert(tree, A)
    insert(tree, Content([Run(2, 0, 30)]))
    assert tree.written_tokens == 0
    assert tree.evict(60) == 50
    assert (tree.written_tokens, tree.match(A).host_tokens) == (20, 0)  # gave way, in vain: 30 do not fit at all


def test_write_back_gives_up_copies_of_what_is_on_the_device_before_sole_copies():
    tree = tiered("write_back", host_slots=40)
    for content in (A, B):
        insert(tree, content)
        tree.evict(20)
    tree.load_back(tree.match(A))  # on both now, and touched after B
    insert(tree, Content([Run(3, 0, 20)]))
    tree.match(A)
    tree.evict(1)
    assert tree.match(B).host_tokens == 20


def test_a_load_is_all_or_nothing_and_not_for_a_few_tokens():
    tree = tiered("write_through", slots=30, load_back_tokens=10)
    insert(tree, A)
    tree.evict(20)
    assert tree.load_back(tree.match(A, 9)) == 0
    insert(tree, B)
    tree.lock(tree.match(B).node)
    assert tree.load_back(tree.match(A)) == 0  # 10 slots left
    tree.unlock(tree.match(B).node)
    assert tree.load_back(tree.match(A)) == 20
    assert tree.match(A).tokens == 20


def test_an_unknown_write_policy_is_refused():
    with pytest.raises(ValueError, match="no write policy 'never'; there are write_through"):
        tiered("never")

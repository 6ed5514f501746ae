"""Block tables over one pool: gates, hits, windows, what is stored when."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.content import Content, Run
from kvsim.memory.prefix import BlockPool, FullGroup, Holdings, SlidingGroup, Want

ENDLESS = 10_000


def holdings(blocks=20, *groups, caching=True, max_len=ENDLESS):
    return Holdings(BlockPool(blocks), groups or [FullGroup()], block_size=4, max_model_len=max_len, caching=caching)


def window(tokens, retention=None):
    return SlidingGroup(
        window=tokens, block_size=4, retention_tokens=retention, max_in_flight_tokens=16, max_model_len=ENDLESS
    )


def opened(held, prompt=12, stream=1):
    return held.open(Content([Run(stream, 0, ENDLESS)]), prompt)


def computed(held, tokens, stream=1):
    """A new sequence with all of a prompt scheduled at once."""
    holding = opened(held, tokens, stream)
    hit = held.hit(holding, tokens)
    assert held.acquire(holding, Want(hit.tokens, tokens - hit.tokens, tokens), hit)
    return holding, hit


def test_a_full_block_can_be_hit_as_soon_as_its_last_token_is_scheduled():
    held = holdings()
    computed(held, 11)
    assert held.pool.stored == 2
    _, hit = computed(held, 11)
    assert hit.tokens == 8
    assert held.pool.references == 3 + 3


def test_the_last_token_is_computed_again_and_with_it_its_block():
    held = holdings()
    computed(held, 12)
    assert held.hit(opened(held), 12).tokens == 8
    assert held.hit(opened(held), 13).tokens == 12


def test_two_that_compute_the_same_block_keep_both_copies():
    held = holdings()
    one, two = opened(held), opened(held)
    hits = [held.hit(one, 8), held.hit(two, 8)]
    for holding, hit in zip((one, two), hits, strict=True):
        assert held.acquire(holding, Want(0, 8, 8), hit)
    assert one.tables != two.tables
    assert (held.pool.stored, held.pool.contents) == (4, 2)


def test_released_blocks_are_freed_tail_first_and_hit_again():
    held = holdings(5)
    holding, _ = computed(held, 10)
    [table] = holding.tables
    held.release(holding)
    assert held.pool.queue() == [table[2], 4, 5, table[1], table[0]]
    assert held.hit(holding, 10).tokens == 8


def test_generated_tokens_can_be_hit_too():
    held = holdings()
    holding, _ = computed(held, 6)
    assert held.acquire(holding, Want(6, 1, 7))
    assert held.acquire(holding, Want(7, 1, 8))
    assert held.hit(opened(held), 10).tokens == 8


def test_drafts_get_slots_and_are_not_stored_before_they_are_known():
    held = holdings()
    holding, _ = computed(held, 6)
    assert held.acquire(holding, Want(6, 4, 7, lookahead_tokens=3))
    assert len(holding.tables[0]) == 4
    assert held.pool.stored == 1
    held.store(holding, 9)
    assert held.pool.stored == 2


@pytest.mark.parametrize(("gate", "room"), [(16, True), (17, False), (0, True)])
def test_the_gate_asks_for_the_whole_sequence_and_takes_the_chunk(gate, room):
    """Four free blocks of 4, a first chunk of 4 tokens."""
    held = holdings(4)
    holding = opened(held, 17)
    assert held.acquire(holding, Want(0, 4, 17, gate_tokens=gate), held.hit(holding, 17)) is room
    assert held.pool.free_blocks == (3 if room else 4)


def test_a_hit_on_a_free_block_counts_as_need_one_on_a_used_block_does_not():
    held = holdings(4)
    holding, _ = computed(held, 9)
    again = opened(held)
    hit = held.hit(again, 13)
    want = Want(hit.tokens, 5, 13, gate_tokens=13)
    assert (hit.tokens, held.lacking(again, want, hit)) == (8, 2)
    held.release(holding)
    assert held.lacking(again, want, hit) == 2 + 2


def test_spare_blocks_must_stay_free():
    held = holdings(4)
    holding = opened(held)
    hit = held.hit(holding, 12)
    assert not held.acquire(holding, Want(0, 12, 12, spare_blocks=2), hit)
    assert held.acquire(holding, Want(0, 12, 12, spare_blocks=1), hit)


def test_what_leaves_the_window_is_freed_at_the_next_acquire():
    """A window of 6: the token after 11 computed ones sees from 6 on, so that block 0 has gone."""
    held = holdings(20, window(6))
    holding, _ = computed(held, 11)
    assert holding.tables == [[1, 2, 3]]
    assert held.acquire(holding, Want(11, 1, 12))
    assert holding.tables == [[0, 2, 3]]
    assert held.hit(opened(held), 20).tokens == 12


def test_what_is_in_flight_still_reads_its_window():
    held = holdings(20, window(6))
    holding, _ = computed(held, 11)
    assert held.acquire(holding, Want(11, 1, 12, in_flight_tokens=4))
    assert holding.tables == [[1, 2, 3]]


def test_a_window_is_hit_with_null_blocks_before_it():
    held = holdings(20, window(6))
    holding, _ = computed(held, 17)
    held.release(holding)
    again, hit = computed(held, 17)
    assert (hit.tokens, again.tables[0][:2]) == (16, [0, 0])
    assert held.pool.references == 3


def test_a_shared_prefix_that_the_window_forgot_is_kept_from_its_second_sight_on():
    """Retention 0 keeps the tail of the prompt only; the second request finds the junction, the third hits there."""
    held = holdings(60, FullGroup(), window(6, retention=0))

    def ask(stream, tokens=30):
        holding = held.open(Content([Run(1, 0, 16), Run(stream, 0, ENDLESS)]), tokens)
        hit = held.hit(holding, tokens)
        assert held.acquire(holding, Want(hit.tokens, tokens - hit.tokens, tokens), hit)
        return hit

    assert [(hit.tokens, hit.junction_tokens) for hit in map(ask, (2, 3, 4))] == [(0, 0), (0, 16), (16, 0)]


def test_where_one_window_hits_less_the_other_is_asked_again():
    """Full attention has six blocks. The windows, of two blocks and of three, have a boundary each, and one in common.

    At 24 tokens the short window has its two blocks, the long one none; at 16 the long one has its three, the short one
    none; at 8 both have all from the start on.
    """
    held = holdings(60, FullGroup(), window(6), window(10))
    holding = opened(held, 25)
    places = {}
    for number, cached in enumerate([(0, 1, 2, 3, 4, 5), (0, 1, 4, 5), (0, 1, 2, 3)]):
        for place, block in zip(cached, held.pool.take(len(cached)), strict=True):
            held.pool.store(block, (number, holding.chain[place]))
            places[number, place] = block
    hit = held.hit(holding, 25)
    assert (hit.tokens, hit.junction_tokens) == (8, 24)
    assert hit.tables == tuple([places[number, 0], places[number, 1]] for number in range(3))


def test_without_caching_nothing_is_stored_or_hit():
    held = holdings(caching=False)
    holding, _ = computed(held, 12)
    held.release(holding)
    assert held.hit(opened(held), 12).tokens == 0
    assert (held.pool.stored, held.pool.cached_blocks) == (0, 0)


GROUPS = st.lists(
    st.one_of(
        st.just(FullGroup()),
        st.builds(window, st.integers(1, 14), st.sampled_from([None, 0, 4, 8])),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=80, deadline=None)
@given(GROUPS, st.integers(4, 30), st.data())
def test_blocks_are_conserved_and_every_hit_is_what_it_says(groups, blocks, data):
    """Any life of several sequences: references match the tables, and a hit block holds what the sequence needs."""
    held = holdings(blocks, *groups)
    live = []
    for _ in range(data.draw(st.integers(1, 25))):
        if live and data.draw(st.booleans()):
            entry = data.draw(st.sampled_from(live))
            holding, written = entry
            if data.draw(st.booleans()):
                held.release(holding)
                live.remove(entry)
            else:
                tokens = data.draw(st.integers(1, 6))
                if held.acquire(holding, Want(written, tokens, written + tokens)):
                    entry[1] += tokens
        else:
            tokens = data.draw(st.integers(1, 24))
            runs = [Run(1, 0, data.draw(st.integers(1, 16))), Run(data.draw(st.integers(2, 3)), 0, ENDLESS)]
            holding = held.open(Content(runs), tokens)
            hit = held.hit(holding, tokens)
            assert hit.tokens < tokens
            assert hit.tokens % 4 == 0
            for number, (group, table) in enumerate(zip(groups, hit.tables, strict=True)):
                assert len(table) == hit.tokens // 4
                for place in range(group.behind(hit.tokens), len(table)):
                    assert held.pool._keys[table[place]] == (number, holding.chain[place])
            if held.acquire(holding, Want(hit.tokens, tokens - hit.tokens, tokens), hit):
                live.append([holding, tokens])
        held.pool.audit(table for holding, _ in live for table in holding.tables)
        for holding, written in live:
            for group, table in zip(groups, holding.tables, strict=True):
                assert len(table) == -(-written // 4)
                assert all(table[group.behind(written) :])
    for holding, _ in live:
        held.release(holding)
    assert held.pool.free_blocks == blocks

"""The index of a fleet's caches knows at every moment exactly what a lookup in each of them would find."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.content import Content, Run, own_stream
from kvsim.engine.fleet.caches import FleetCaches


def content(*parts):
    return Content([Run(stream, 0, tokens) for stream, tokens in parts])


def store(follower, prompt, blocks, size, names):
    """Store the first `blocks` blocks of `prompt`, under names of this replica's own."""
    told = []
    for index in range(blocks):
        key = tuple(prompt.part(0, (index + 1) * size))
        if key not in names:
            names[key] = key
            told.append((names[key], index))
    for name, index in told:
        before = names[tuple(prompt.part(0, index * size))] if index else None
        follower.stored(0, [name], before, prompt, index * size, size)


OWN = own_stream(7)
PROMPTS = [content((1, 32), (number, 64)) for number in (2, OWN)] + [content((4, 96))]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 6), st.booleans()), max_size=25))
@settings(deadline=None, max_examples=200)
def test_what_is_found_is_what_was_stored_and_not_removed(actions):
    caches, size = FleetCaches(3, block_tokens=16), 16
    followers = [caches.follower(number) for number in range(3)]
    held = [{} for _ in followers]
    for replica, which, blocks, store_it in actions:
        prompt = PROMPTS[which]
        if store_it:
            store(followers[replica], prompt, blocks, size, held[replica])
        else:
            # As engines do: what is behind a block goes before it.
            for index in range(5, blocks - 1, -1):
                key = tuple(prompt.part(0, (index + 1) * size))
                if key in held[replica] and not any(k != key and k[: len(key)] == key for k in held[replica]):
                    followers[replica].removed(0, [held[replica].pop(key)])
    for prompt in PROMPTS:
        for tokens in (0, 15, 16, 50, 96):
            expected = []
            for names in held:
                found = 0
                while found < tokens // size and tuple(prompt.part(0, (found + 1) * size)) in names:
                    found += 1
                expected.append(found * size)
            assert caches.found(prompt, tokens) == expected


def test_a_copy_that_goes_leaves_the_other():
    caches = FleetCaches(1, block_tokens=16)
    follower, prompt = caches.follower(0), content((1, 16))
    follower.stored(0, ["a"], None, prompt, 0, 16)
    follower.stored(0, ["a"], None, prompt, 0, 16)
    follower.removed(0, ["a"])
    assert caches.found(prompt, 16) == [16]
    follower.removed(0, ["a"])
    assert caches.found(prompt, 16) == [0]
    assert not caches.holders


def test_what_nobody_comes_with_any_more_is_kept_by_no_name_and_is_still_counted_out():
    caches = FleetCaches(1, block_tokens=16)
    follower, prompt = caches.follower(0), content((1, 16), (OWN, 16))
    follower.stored(0, ["shared", "own"], None, prompt, 0, 16)
    assert caches.found(prompt, 32) == [32]
    caches.forget([OWN])
    assert caches.found(content((1, 16)), 16) == [16]
    follower.removed(0, ["own", "shared"])
    assert not caches.holders
    assert not caches.identities._own


@pytest.mark.parametrize("at", [16, 32, 48])
def test_an_edge_that_is_cut_is_still_found_and_goes_in_two_parts(at):
    caches = FleetCaches(2, block_tokens=16)
    follower, prompt = caches.follower(1), content((1, 64))
    follower.stored(0, ["edge"], None, prompt, 0, 64)
    follower.cut("edge", "upper", at)
    assert caches.found(prompt, 64) == [0, 64]
    follower.removed(0, ["edge"])
    assert caches.found(prompt, 64) == [0, at]
    follower.removed(0, ["upper"])
    assert caches.found(prompt, 64) == [0, 0]


def test_an_emptied_cache_is_forgotten_with_all_its_copies_and_the_others_stay():
    caches, prompt = FleetCaches(2, block_tokens=16), content((1, 64))
    for follower in (caches.follower(0), caches.follower(1)):
        follower.stored(0, ["a", "b"], None, prompt, 0, 16)
        follower.stored(0, ["a"], None, prompt, 0, 16)
    follower.cleared(5)
    assert caches.found(prompt, 64) == [32, 0]
    follower.stored(6, ["a"], None, prompt, 0, 16)
    assert caches.found(prompt, 64) == [32, 16]

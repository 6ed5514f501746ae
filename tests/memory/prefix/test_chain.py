"""Numbers for blocks: equal exactly where all tokens up to the end of the block are."""

from hypothesis import given
from hypothesis import strategies as st

from kvsim.content import Content, Run
from kvsim.memory.prefix.chain import Chain, Identities

contents = st.lists(st.builds(Run, st.integers(-3, 1), st.integers(0, 4), st.integers(1, 5)), min_size=1, max_size=5)


def tokens(runs):
    return [(run.stream, run.offset + place) for run in runs for place in range(run.tokens)]


@given(st.lists(contents, min_size=2, max_size=6), st.integers(1, 4))
def test_numbers_agree_exactly_as_far_as_whole_blocks_of_tokens_do(some, size):
    identities = Identities()
    numbered = {}
    for runs in some:
        chain, all_tokens = Chain(Content(runs), block_size=size, identities=identities), tokens(runs)
        for block in reversed(range(len(all_tokens) // size)):
            prefix = tuple(all_tokens[: (block + 1) * size])
            assert numbered.setdefault(prefix, chain[block]) == chain[block]
    assert len(set(numbered.values())) == len(numbered)


def test_a_long_prompt_in_one_run_is_a_number_a_block():
    identities = Identities()
    chain = Chain(Content([Run(1, 0, 100_000)]), block_size=16, identities=identities)
    assert chain[100_000 // 16 - 1] == 6250
    again = Chain(Content([Run(1, 0, 99_999), Run(1, 99_999, 1)]), block_size=16, identities=identities)
    assert again[6249] == 6250

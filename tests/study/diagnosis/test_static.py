"""The three pressures for given numbers: three observables, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.study.diagnosis import static_pressures

EXAMPLE = {
    "tokens": 4096,
    "block_tokens": 128,
    "kv_heads": 32,
    "head_dim": 128,
    "latent": 64,
    "reusable_prefix": 1024,
}


def test_the_example_has_32_full_blocks_saves_0_9922_and_reuses_1024_tokens():
    found = static_pressures(**EXAMPLE)
    assert (found.blocks, found.wasted_slots) == (32, 0)
    assert round(found.saved_share, 4) == 0.9922
    assert found.kv_elements == 2 * 32 * 128
    assert found.reusable_tokens == 1024


@given(*[st.integers(1, 10_000)] * 5, st.data())
def test_blocks_hold_the_tokens_and_the_share_saved_is_what_the_latent_leaves(tokens, block, heads, dim, latent, data):
    prefix = data.draw(st.integers(0, tokens))
    found = static_pressures(
        tokens=tokens, block_tokens=block, kv_heads=heads, head_dim=dim, latent=latent, reusable_prefix=prefix
    )
    assert found.blocks * block - found.wasted_slots == tokens
    assert 0 <= found.wasted_slots < block
    assert found.saved_share * 2 * heads * dim == pytest.approx(2 * heads * dim - latent)
    assert 0 <= found.reusable_share <= 1


@pytest.mark.parametrize("name", ["tokens", "block_tokens", "kv_heads", "head_dim", "latent"])
@pytest.mark.parametrize("value", [0, -1])
def test_sizes_from_zero_down_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name}: {value} is impossible"):
        static_pressures(**{**EXAMPLE, name: value})


@pytest.mark.parametrize("prefix", [-1, 4097])
def test_a_prefix_outside_the_sequence_is_refused(prefix):
    with pytest.raises(ValueError, match=r"^reusable_prefix: .* must be from 0 to the 4096 tokens"):
        static_pressures(**{**EXAMPLE, "reusable_prefix": prefix})


@pytest.mark.parametrize("prefix", [0, 4096])
def test_no_prefix_and_the_whole_sequence_are_prefixes(prefix):
    assert static_pressures(**{**EXAMPLE, "reusable_prefix": prefix}).reusable_tokens == prefix

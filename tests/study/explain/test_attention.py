"""Attention with a cache is attention: at every step it gives what computing all tokens again gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvsim.study.explain.attention import Layer, caches_of, forward
from kvsim.study.explain.example import walk


@st.composite
def models(draw):
    """Layers of any size that fit together, and the embeddings of some tokens."""
    kv_heads, sharing, head_dim = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    hidden, heads = draw(st.integers(1, 6)), kv_heads * sharing
    random = np.random.default_rng(draw(st.integers(0, 2**32)))

    def weights(*shape):
        return random.normal(size=shape)

    layers = [
        Layer(
            weights(hidden, heads * head_dim),
            weights(hidden, kv_heads * head_dim),
            weights(hidden, kv_heads * head_dim),
            weights(heads * head_dim, hidden),
            heads=heads,
            kv_heads=kv_heads,
        )
        for _ in range(draw(st.integers(1, 4)))
    ]
    return layers, weights(draw(st.integers(2, 9)), hidden)


@given(models(), st.data())
def test_cached_attention_equals_full_recomputation_at_every_step(model, data):
    layers, tokens = model
    prompt = data.draw(st.integers(1, len(tokens)))
    caches = caches_of(layers)
    first = 0
    for end in range(prompt, len(tokens) + 1):
        cached = forward(layers, tokens[first:end], caches)
        again = forward(layers, tokens[:end], caches_of(layers))
        for one, other in zip(cached, again, strict=True):
            np.testing.assert_allclose(one.outputs, other.outputs[first:], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(one.weights, other.weights[:, first:], rtol=1e-9, atol=1e-12)
        first = end


@given(models())
def test_it_is_what_loops_over_tokens_and_heads_compute(model):
    layers, tokens = model
    for found, layer in zip(forward(layers, tokens, caches_of(layers)), layers, strict=True):
        np.testing.assert_allclose(found.outputs, by_hand(layer, tokens), rtol=1e-9, atol=1e-12)
        tokens = found.outputs


def by_hand(layer, inputs):
    width, sharing = layer.w_q.shape[1] // layer.heads, layer.heads // layer.kv_heads
    outputs = []
    for at, x in enumerate(inputs):
        mixed = []
        for head in range(layer.heads):
            own, shared = slice(head * width, (head + 1) * width), head // sharing
            theirs = slice(shared * width, (shared + 1) * width)
            query = x @ layer.w_q[:, own]
            scores = [query @ (y @ layer.w_k[:, theirs]) / width**0.5 for y in inputs[: at + 1]]
            shares = np.exp(scores - max(scores))
            shares /= shares.sum()
            mixed.append(sum(share * (y @ layer.w_v[:, theirs]) for share, y in zip(shares, inputs, strict=False)))
        outputs.append(np.concatenate(mixed) @ layer.w_o)
    return np.array(outputs)


@given(models())
def test_each_layer_has_a_cache_of_its_own_and_it_grows_by_one_a_step(model):
    layers, tokens = model
    caches = caches_of(layers)
    for count, token in enumerate(tokens, 1):
        forward(layers, token[None], caches)
        assert [cache.tokens for cache in caches] == [count] * len(layers)
    for one, other in zip(caches, caches[1:], strict=False):
        assert one.keys is not other.keys


@given(models())
def test_a_step_of_one_token_masks_nothing_and_weights_add_up_to_one(model):
    layers, tokens = model
    caches = caches_of(layers)
    for token in tokens:
        for found in forward(layers, token[None], caches):
            assert np.isfinite(found.scores).all()
            np.testing.assert_allclose(found.weights.sum(axis=-1), 1)


def rounded(matrix, digits):
    return np.round(matrix, digits).tolist()


def test_the_example_has_the_printed_scores_weights_and_outputs():
    found = walk().prefill.attended
    infinite = -np.inf
    assert found.scores[0].tolist() == [[1, infinite, infinite], [0.5, 1, infinite], [0.5, 0.5, 1.5]]
    assert rounded(found.weights[0], 3) == [[1, 0, 0], [0.378, 0.622, 0], [0.212, 0.212, 0.576]]
    assert rounded(found.outputs, 3) == [[1, 0, 1, 0], [0.378, 0.622, 1, 0], [0.788, 0.788, 0.424, 0.576]]


def test_the_example_decodes_as_printed():
    [step] = walk().decodes
    assert step.tokens == ("very",)
    assert rounded(step.attended.weights[0], 4) == [[0.2430, 0.2318, 0.2656, 0.2595]]
    assert rounded(step.attended.outputs, 4) == [[0.7214, 0.6859, 0.6171, 0.2656]]
    assert step.off_recomputed < 1e-12


def test_greedy_takes_the_likeliest_of_the_given_candidates_and_the_end_is_given_too():
    found = walk()
    assert found.example.candidates == {"are": 0.05, "great": 0.08, "models": 0.12, "very": 0.63}
    assert (found.next_token, found.example.last) == ("very", "much")
    assert found.example.tokens == ("I", "love", "AI", "very")


def test_behind_a_prefix_hit_the_rest_of_the_prompt_comes_out_the_same():
    found = walk()
    assert found.hit_prefill.tokens == ("AI",)
    assert found.hit_prefill.cached == 2
    np.testing.assert_allclose(found.hit_prefill.attended.outputs, found.prefill.attended.outputs[2:], rtol=1e-12)

"""The tensors a request's KV is kept in where a framework concatenates them, and how each is rounded up."""

import pytest

from kvsim.capacity.tensors import kv_tensors
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import model


@pytest.mark.parametrize(
    ("name", "ranks", "tensors", "rounding"),
    [
        # 32 layers, K and V; 8 heads x 128 x 2 B = 2,048 B a token: 512 B are less than a token.
        ("llama-3.1-8b", 1, 64, 1),
        # One KV head on a rank: 256 B a token, two tokens to 512 B.
        ("llama-3.1-8b", 8, 64, 2),
        # 40 layers, 40 heads x 128 x 2 B.
        ("opt-13b", 1, 80, 1),
        # One latent a layer, 61 layers, 576 x 2 B = 1,152 B.
        ("deepseek-v3", 1, 61, 1),
    ],
)
def test_k_and_v_of_each_layer_are_a_tensor_and_a_latent_is_one(name, ranks, tensors, rounding):
    assert kv_tensors(Footprint(model(name), tensor_parallel=ranks)) == (tensors, rounding)

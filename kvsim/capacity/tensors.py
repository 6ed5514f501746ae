"""The tensors that a framework's cache keeps a request's KV in, and how a caching allocator rounds them up.

A cache like `DynamicCache` of transformers holds K and V of each layer in a tensor of its own and concatenates each
token to it (`torch.cat`, cache_utils.py); a latent (MLA) is one tensor a layer.
"""

from kvsim.catalog.footprint import Footprint

ROUNDING_BYTES = 512
"""PyTorch rounds every allocation up to a multiple of this (`kMinBlockSize`, c10/cuda/CUDACachingAllocator.cpp)."""


def kv_tensors(footprint: Footprint) -> tuple[int, int]:
    """(tensors of one request on a rank, tokens to a multiple of which the allocator rounds each of them up).

    Where layers differ the tokens are those of the mean tensor; rounding by less than a token counts as none.
    """
    model = footprint.model
    a_layer = 1 if model.kv_lora_rank is not None else 2
    tensors = max(1, a_layer * (model.kv_caching_full_layers + model.kv_caching_window_layers))
    return tensors, max(1, ROUNDING_BYTES * tensors // footprint.kv_bytes_per_token)

"""Pages of physical memory under contiguous virtual addresses: how many tokens a page holds, and what a row takes.

vAttention's layout: every layer keeps K and V in a tensor each, so that a page holds the K (or the V) of one layer
only. Its tokens per page = page bytes // (KV heads per rank x head dimension x bytes of the number format), and pages
are mapped in rows, one for each of the 2 x layers tensors (`tokens_per_page` and `PAGES_TO_KVBLOCKS` in its sources).
"""

from dataclasses import dataclass

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.weights import dtype_bits
from kvsim.units import format_size

SMALLEST_PAGE_BYTES = 64 * 2**10
"""The smallest page that an NVIDIA GPU maps (vAttention section 6: its driver change; CUDA itself maps 2 MiB)."""
LARGEST_PAGE_BYTES = 2 * 2**20
"""The granularity of CUDA's virtual memory management."""


@dataclass(frozen=True, slots=True)
class PageRow:
    """One page in every K and V tensor of a rank: `pages` pages of `page_bytes`, room for `tokens` tokens.

    Where a token's K does not divide the page, the rest of each page lies outside the pool.
    """

    tokens: int
    pages: int
    page_bytes: int

    @property
    def bytes(self) -> int:
        """Memory that the row takes."""
        return self.pages * self.page_bytes

    def __str__(self) -> str:
        return f"page rows of {self.tokens:,} tokens, {self.pages} pages of {format_size(self.page_bytes)} each"


def is_page(page_bytes: int) -> bool:
    """A multiple of 64 KiB, at most 2 MiB."""
    return not page_bytes % SMALLEST_PAGE_BYTES and SMALLEST_PAGE_BYTES <= page_bytes <= LARGEST_PAGE_BYTES


def page_row(footprint: Footprint, page_bytes: int) -> PageRow:
    """The page row of a model on a rank, for pages of `page_bytes`: a multiple of 64 KiB, at most 2 MiB.

    A latent (MLA) is one tensor per layer. Raises ValueError where the page is of no such size or holds no token, or
    where the tensors of the model differ in bytes per token, so that no two would cross a page at the same token.
    """
    if not is_page(page_bytes):
        raise ValueError(f"page_bytes is {page_bytes}; a page is a multiple of 64 KiB (65,536 B), at most 2 MiB")
    token_bytes, tensors = _tensors(footprint)
    tokens = page_bytes // token_bytes
    if not tokens:
        raise ValueError(
            f"page is {format_size(page_bytes)}; it holds no token of {footprint.model.name}, whose K (or V) takes "
            f"{token_bytes:,} B in one layer on a rank; give a larger page, up to 2MiB"
        )
    return PageRow(tokens, tensors, page_bytes)


def _tensors(footprint: Footprint) -> tuple[int, int]:
    """(bytes of one token in a tensor, tensors) of the KV of a model on a rank."""
    model, ranks = footprint.model, footprint.tensor_parallel
    tensors: dict[int, int] = {}
    if model.kv_lora_rank is not None:
        tensors[model.kv_lora_rank + (model.qk_rope_head_dim or 0)] = model.kv_caching_full_layers
    for heads, dimensions, layers in (
        (model.full_kv_heads, (model.full_head_dim, model.full_v_head_dim), model.kv_caching_full_layers),
        (model.window_kv_heads, (model.window_head_dim, model.window_v_head_dim), model.kv_caching_window_layers),
    ):
        for dimension in dimensions:
            if heads and dimension and layers:
                elements = max(1, heads // ranks) * dimension
                tensors[elements] = tensors.get(elements, 0) + layers
    if model.index_head_dim:
        tensors[model.index_head_dim] = tensors.get(model.index_head_dim, 0) + model.kv_caching_full_layers
    sizes = {elements * dtype_bits(footprint.kv_dtype): count for elements, count in tensors.items()}
    if len(sizes) != 1:
        listed = ", ".join(f"{count} of {bits / 8:,g} B" for bits, count in sorted(sizes.items())) or "none"
        raise ValueError(
            f"{model.name} keeps KV tensors of different bytes per token on a rank ({listed}); mapped page rows need "
            f"layers that are alike, K as long as V; use `paged`, or a model whose layers are"
        )
    [(bits, count)] = sizes.items()
    if bits % 8:
        raise ValueError(f"one token's K takes {bits} bits in one layer of {model.name}; it must be whole bytes")
    return bits // 8, count

"""Layer groups and their blocks: what a block id costs on a rank, and how many of them one request takes.

vLLM's hybrid allocator deals layers of different kinds into groups of equal size; a block id is one page in each layer
of one group, so that every group draws on the same pool. Printed tokens are blocks // groups x block size.
"""

from dataclasses import dataclass
from math import ceil

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.layout.pages import Page, forced_block, layer_pages
from kvsim.capacity.weights.loaded import Stage
from kvsim.catalog.footprint import Footprint

HYBRID_SINCE = (0, 10)
"""vLLM keeps layers of different kinds in groups from here on; before, every layer holds every token."""
PADDING_SHARE = 1.25
"""Where the largest kind has less than this times the layers of the smallest, groups are padded to the largest
(`_get_kv_cache_groups_uniform_page_size` in vllm/v1/core/kv_cache_utils.py)."""
STATE_ALIGNED_SINCE = (0, 21)
"""A request holds two pages of state in each state group (prefix caching's aligned mode), before it one."""


@dataclass(frozen=True, slots=True)
class Group:
    """Layers of one kind that share block ids: `full`, `window`, `chunked` or `state`.

    `window` is what such a layer looks back, `state_blocks` what a request takes of a state group whatever its length.
    """

    kind: str
    layers: int
    window: int = 0
    state_blocks: int = 0

    def blocks(self, tokens: int, block: int, step_tokens: int) -> int:
        """Blocks that a request of `tokens` takes: a window is charged for itself and a whole step beyond it."""
        if self.kind == "state":
            return self.state_blocks
        if self.kind == "full":
            return ceil(tokens / block)
        if self.kind == "chunked":
            return ceil(min(self.window + step_tokens, tokens) / block)
        return ceil(min(self.window - 1 + step_tokens, tokens) / block) + 1


@dataclass(frozen=True, slots=True)
class Layout:
    """Block ids of one stage: `block_bytes` each on a rank, room for `block` tokens in the layers of one group.

    `forced` says why the block is larger than the settings say, where it is.
    """

    groups: tuple[Group, ...]
    block: int
    block_bytes: int
    forced: str = ""

    def request_blocks(self, tokens: int, step_tokens: int) -> int:
        """Block ids that a request of `tokens` takes over all groups."""
        return sum(group.blocks(tokens, self.block, step_tokens) for group in self.groups)

    def tokens(self, blocks: float) -> float:
        """Tokens that so many block ids hold in every group."""
        return int(blocks) // len(self.groups) * self.block

    def longest(self, blocks: int, step_tokens: int, limit: int) -> int:
        """The longest request that so many block ids hold, at most `limit` tokens; 0 for none."""
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            if self.request_blocks(middle, step_tokens) <= blocks:
                low = middle
            else:
                high = middle - 1
        return low


def layout(deployment: Deployment, stage: Stage) -> Layout:
    """The blocks of one stage, as the engine of `deployment` lays them out."""
    pages = [page for page in layer_pages(deployment, stage) if page.layers]
    block, forced = forced_block(deployment, pages)
    attention = [page for page in pages if page.kind != "state"]
    states = [page for page in pages if page.kind == "state"]
    if not attention:
        # A stage of state layers alone: one page each, whatever the length.
        return Layout(
            (Group("state", states[0].layers, state_blocks=1),), block, states[0].layers * states[0].state_bytes
        )
    one_pool = (
        deployment.hybrid_groups and deployment.engine.engine == "vllm" and deployment.engine.number >= HYBRID_SINCE
    )
    alike = len({page.token_bytes for page in attention}) == 1
    draft = _draft_bytes(deployment)
    if len(pages) == 1 or not one_pool or (len(attention) > 1 and not alike):
        # Layers whose pages differ are padded to the largest where they share block ids.
        widest = max(page.token_bytes for page in attention) if one_pool else 0
        token_bytes = sum(page.layers * max(widest, page.token_bytes) for page in attention) + draft
        layers = sum(page.layers for page in attention)
        alone = len(pages) == 1 and one_pool
        groups = (_group(deployment, pages[0], layers) if alone else Group("full", layers),)
        return Layout(groups, block, block * token_bytes, forced)
    token_bytes = attention[0].token_bytes
    counts = [page.layers for page in pages]
    size = min(counts) if max(counts) >= PADDING_SHARE * min(counts) else max(counts)
    found: list[Group] = []
    for page in pages:
        found += [_group(deployment, page, size)] * ceil(page.layers / size)
    page_bytes = block * token_bytes
    return Layout(tuple(found), block, size * page_bytes + block * draft, forced)


def _group(deployment: Deployment, page: Page, size: int) -> Group:
    if page.kind == "state":
        held = 2 if deployment.engine.number >= STATE_ALIGNED_SINCE else 1
        return Group("state", size, state_blocks=held + deployment.draft_tokens)
    if page.kind == "full":
        return Group("full", size)
    chunked = "chunked" in deployment.model.attention
    return Group("chunked" if chunked else "window", size, deployment.model.window_tokens or 0)


def _draft_bytes(deployment: Deployment) -> int:
    """KV of the draft model, a token on a rank: its layers lie beside the target's under the same block ids."""
    if deployment.draft is None:
        return 0
    return Footprint(deployment.draft, deployment.draft_ranks, deployment.cache_dtype).kv_bytes_per_token

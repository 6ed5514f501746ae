"""What presses on the pool, and which kind of cure helps: representation, organisation or reuse."""

from dataclasses import dataclass

from kvsim.capacity.plan import Plan

ORGANISATION_SHARE = 0.1
"""From this share of a request's slots lost to tails and reservations on, organisation is what to mend first."""
REUSE_SHARE = 0.3
"""From this share of a request's tokens repeated in others on, reuse gains more than any smaller number format."""

CURES = {
    "representation": "bytes per token: an 8-bit KV cache, fewer KV heads, latent or windowed attention",
    "organisation": "tail waste and reservation: smaller blocks, smaller steps for a window to be charged for, a pool "
    "of its own for states",
    "reuse": "repeated prefixes: prefix caching, shared system prompts routed to the same replica",
}


@dataclass(frozen=True, slots=True)
class Pressure:
    """The kind, its cure, and the three figures it is told by.

    `bytes_per_token` of the mean request on a rank; `lost_share` of its slots that hold nothing it needs (the tail of
    its last block, windows charged for a whole step, states); `repeated_share` of its tokens that others repeat.
    """

    kind: str
    cure: str
    bytes_per_token: float
    lost_share: float
    repeated_share: float
    hit_granularity_tokens: int


def pressure(made: Plan, *, request_tokens: int, shared_tokens: int = 0) -> Pressure:
    """The pressure under requests of `request_tokens` tokens, of which `shared_tokens` are a common prefix.

    The tail of a request is half a block on average, whatever `request_tokens` is modulo the block.
    """
    shape, step = made.layout, made.deployment.step_tokens
    blocks = shape.request_blocks(request_tokens, step)
    needed = 0.0
    for group in shape.groups:
        held = min(request_tokens, group.window) if group.window else request_tokens
        needed += 0 if group.kind == "state" else held / shape.block
    tails = len([group for group in shape.groups if group.kind != "state"]) / 2
    lost = min(1.0, max(tails, blocks - needed) / max(blocks, needed + tails))
    repeated = shared_tokens / request_tokens
    if repeated >= REUSE_SHARE:
        kind = "reuse"
    else:
        kind = "organisation" if lost >= ORGANISATION_SHARE else "representation"
    per_token = blocks * shape.block_bytes / request_tokens
    return Pressure(kind, CURES[kind], per_token, round(lost, 4), round(repeated, 4), shape.block)

"""The three pressures for given numbers, without a run: three different observables, none an end-to-end gain."""

from dataclasses import dataclass

from kvsim.catalog.footprint import blocks, positive

CAUTION = (
    "Three different observables: bytes of a token, slots of blocks, tokens of a prefix. They do not add up, and none "
    "is an end-to-end gain; for that, diagnose a run."
)


@dataclass(frozen=True)
class Static:
    """What a sequence of `tokens` tokens shows of each pressure.

    `blocks` are taken and `wasted_slots` of the last one stay empty (organisation); `saved_share` of the bytes a token
    takes in a layer is saved by one latent of `latent_elements` in place of its keys and values of `kv_elements`
    (representation; negative where the latent is larger); `reusable_tokens` of `tokens` are a prefix that is there
    already (reuse).
    """

    tokens: int
    blocks: int
    wasted_slots: int
    kv_elements: int
    latent_elements: int
    saved_share: float
    reusable_tokens: int

    @property
    def reusable_share(self) -> float:
        """The reusable prefix as a share of the tokens."""
        return self.reusable_tokens / self.tokens


def static_pressures(
    *, tokens: int, block_tokens: int, kv_heads: int, head_dim: int, latent: int, reusable_prefix: int
) -> Static:
    """Tell the three pressures of one sequence.

    The share saved is 1 - latent / (2 x kv_heads x head_dim): one latent vector of a layer against both K and V of all
    KV heads (multi-head latent attention, DeepSeek-V2 section 2.1, without its rotary part). Raises ValueError naming
    the size that is not a positive whole number, or `reusable_prefix` outside 0 to `tokens`.
    """
    taken, wasted = blocks(tokens, positive("block_tokens", block_tokens))
    elements = 2 * positive("kv_heads", kv_heads) * positive("head_dim", head_dim)
    width = positive("latent", latent)
    if isinstance(reusable_prefix, bool) or not 0 <= reusable_prefix <= tokens:
        raise ValueError(f"reusable_prefix: {reusable_prefix!r} is impossible; must be from 0 to the {tokens} tokens")
    return Static(tokens, taken, wasted, elements, width, 1 - width / elements, reusable_prefix)

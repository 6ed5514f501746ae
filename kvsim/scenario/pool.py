"""The KV pool of a run: given in the scenario, or what the planned start leaves of the card."""

import math

from kvsim.capacity.pages import PageRow
from kvsim.capacity.plan import Plan
from kvsim.capacity.pool import Pool, pool_from_card, stage_share
from kvsim.catalog.footprint import Footprint
from kvsim.scenario.schema.serving import NoCacheSettings
from kvsim.scenario.schema.settings import Settings
from kvsim.timing.host_share import as_fraction
from kvsim.units import size_text


def pool(
    settings: Settings, footprint: Footprint, *, block_size: int, row: PageRow | None, planned: Plan | None
) -> Pool:
    """The pool of a run: what the GPU holds, and more where a part of each slot's KV is on the host (see `on_gpu`)."""
    alone = on_gpu(settings, footprint, block_size=block_size, row=row, planned=planned)
    share = settings.placement.host_share
    if not share:
        return alone
    blocks = int(alone.slots // block_size / (1 - as_fraction(share)))
    return Pool(blocks * block_size, alone.provenance)


def on_gpu(
    settings: Settings, footprint: Footprint, *, block_size: int, row: PageRow | None, planned: Plan | None
) -> Pool:
    """What the GPU alone holds, in whole blocks of `block_size` tokens or in page rows.

    `planned` is the engine's start; it is needed where the scenario gives no pool. Raises DoesNotFitError where the
    card leaves no room, ValueError where what is given holds no token.
    """
    if isinstance(settings.allocator, NoCacheSettings):
        return Pool(0, "none: nothing is kept from one step to the next")
    given, block = settings.pool, block_size if row is None else row.tokens
    if given is None:
        assert planned is not None
        return pool_from_card(planned, block_size=block, block_bytes=None if row is None else row.bytes)
    if given.blocks is not None:
        blocks = f"blocks of {block}" if row is None else str(row)
        return Pool(given.blocks * block, f"given in the scenario: {given.blocks} {blocks}")
    if given.tokens is not None:
        return Pool(given.tokens, f"given in the scenario: {given.tokens:,} tokens")
    assert given.memory is not None
    said = f"given in the scenario: {size_text(given.memory)} of KV per rank"
    if row is not None and given.memory >= row.bytes:
        rows = given.memory // row.bytes
        return Pool(rows * row.tokens, f"{said}, {rows:,} {row}")
    token_bytes = math.ceil(footprint.kv_bytes_per_token * stage_share(footprint.model, settings.pipeline_parallel))
    slots = given.memory // token_bytes
    if slots < 1:
        raise ValueError(
            f"pool.memory: {given.memory} B holds no token of {footprint.model.name}, "
            f"whose KV takes {token_bytes} B each; give more, for example `memory: 12GiB`"
        )
    return Pool(slots, f"{said} at {token_bytes:,} bytes a token")

"""The fleet of a scenario: how many replicas, and who chooses between them."""

from typing import Annotated, Literal

from pydantic import Field

from kvsim.scenario.schema.fields import MOST, Part, Share

MOST_REPLICAS = 100_000
"""The most replicas of a fleet: each takes some 20 KB before its first request."""


class RouterSettings(Part):
    """Who chooses the replica of each request, and how."""

    name: Literal[
        "round-robin", "random", "least-requests", "least-kv", "power-of-two", "session-affinity", "prefix-aware"
    ] = "round-robin"
    """In turn; any; where the fewest requests are; where the least KV is held; of two drawn at random, where fewer
    requests are; the one of its session; the one that has most of the prompt cached."""
    min_match: Share | None = None
    """Router `prefix-aware`: the share of the prompt that must be cached somewhere to go by that; absent: 0.3."""
    imbalance_requests: Annotated[int, Field(ge=0, le=MOST)] | None = None
    """Router `prefix-aware`: a fleet is out of balance, and the least loaded replica gets the request, where the most
    loaded one has more than so many requests more; absent: 64."""
    imbalance_ratio: Annotated[float, Field(ge=1)] | None = None
    """Router `prefix-aware`: and more than so many times as many; absent: 1.5."""


class FleetSettings(Part):
    """Several replicas of the engine, each with a pool of its own, behind one router."""

    replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)]
    """How many there are."""
    router: RouterSettings = Field(default_factory=RouterSettings)
    """The router, by name or with options."""

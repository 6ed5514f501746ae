"""The fleet of a scenario: how many replicas, and who chooses between them."""

from typing import Annotated, Literal

from pydantic import Field

from kvsim.scenario.schema.fields import MOST, Part, Share, Timespan

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


class AutoscaleSettings(Part):
    """How many replicas take requests, asked again and again, by the rule of Kubernetes' Horizontal Pod Autoscaler.

    Of n that do, ceil(n x value / target) are wanted.
    """

    metric: Literal["kv_use", "waiting"] = "kv_use"
    """What is held against the target, as the mean over the replicas that take requests: the share of the pool that
    live requests hold, or the sequences that wait."""
    target: Annotated[float, Field(gt=0)]
    """The mean that is wanted: of `kv_use` a share such as 0.6, of `waiting` a number such as 4."""
    min_replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] = 1
    """The fewest that take requests, and those that do at the start; the most are `fleet.replicas`."""
    interval: Timespan = 15 * 10**12
    """How often it is asked."""
    start_up: Timespan = 60 * 10**12
    """From when a replica is ordered to its first request."""
    settle: Timespan = 300 * 10**12
    """One is let go only where none more was wanted for so long."""
    tolerance: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Nothing changes while the mean is within this share of the target."""


class FleetSettings(Part):
    """Several replicas of the engine, each with a pool of its own, behind one router."""

    replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)]
    """How many there are."""
    router: RouterSettings = Field(default_factory=RouterSettings)
    """The router, by name or with options."""
    autoscale: AutoscaleSettings | None = None
    """Who decides how many of them take requests; absent: all do."""

"""The seam between a fleet and its router: the router sees counters of each replica, and answers with one of them."""

from collections.abc import Sequence
from typing import Any, Protocol

from kvsim.content import Content
from kvsim.request import Request


class Member(Protocol):
    """One replica as its router sees it; nothing here tells how long an output will be. Reading costs O(1)."""

    @property
    def number(self) -> int:
        """Which replica of the fleet, from 0."""

    @property
    def requests(self) -> int:
        """Sequences that wait or run there now."""

    @property
    def held_slots(self) -> int:
        """Slots that live requests hold in the step in progress: neither free nor cached."""


class Router(Protocol):
    """Chooses the replica of each request as it arrives."""

    stateless: bool
    """The choice follows from the requests so far and the number of replicas alone, so that replicas can be simulated
    apart: a router that is shown every request chooses the same, whichever replicas there are beside it."""
    follows_caches: bool
    """It must be told what each replica stores and evicts (`caches`)."""

    def choose(self, request: Request, members: Sequence[Member]) -> Member:
        """One of `members`, which are never none and in order of their numbers. May mutate the router only."""


class RouterKind(Protocol):
    """Makes routers of one kind; see `Router` for what its properties say."""

    @property
    def stateless(self) -> bool:
        """See `Router`."""

    @property
    def follows_caches(self) -> bool:
        """See `Router`."""

    def __call__(self, *args: Any, **options: Any) -> Router:
        """Such a router."""


class Caches(Protocol):
    """What is cached where, as KV events tell it."""

    def found(self, content: Content, tokens: int) -> list[int]:
        """For each replica of the fleet: how many of the first `tokens` tokens of `content` it has, from the start."""

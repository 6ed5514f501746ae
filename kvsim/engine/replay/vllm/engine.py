"""What a replay asks of an engine: take requests in, decide a step, and tell what its output is."""

from typing import NamedTuple, Protocol

from kvsim.engine.replay.vllm.truth import Truth


class Step(NamedTuple):
    """What was decided for one step; requests are told by the number of their sequence."""

    scheduled: list[tuple[int, int]]
    """(request, tokens), in scheduling order."""
    hits: list[tuple[int, int]]
    """(request, tokens found cached) for each admission."""
    preempted: list[tuple[int, int]]
    """(request, computed tokens lost)."""
    running: list[int]
    waiting: list[int]


class Output(NamedTuple):
    """Tokens that a request has yielded, and whether they were its last."""

    request: int
    tokens: int
    ended: bool


class Engine(Protocol):
    """A scheduler with its memory."""

    @property
    def blocks(self) -> int:
        """Blocks of the pool, without the null block."""
        ...

    @property
    def free_blocks(self) -> int:
        """Blocks that nobody references."""
        ...

    @property
    def contents(self) -> int:
        """Different block contents that can be hit now."""
        ...

    @property
    def stored(self) -> int:
        """Blocks put into the map since the start."""
        ...

    @property
    def evicted(self) -> int:
        """Blocks that left the map since the start."""
        ...

    @property
    def busy(self) -> bool:
        """Somebody waits or runs."""
        ...

    def submit(self, truth: Truth) -> None:
        """A request joins the queue."""

    def give_up(self, truth: Truth) -> None:
        """Its client is gone; nothing happens where it is not there (any more)."""

    def schedule(self) -> Step:
        """Decide the next step. Raises InputError where a request can never have its blocks."""
        ...

    def outputs(self) -> list[Output]:
        """Output that has come now that the step was decided: its own, or with two in flight that of the one before."""
        ...

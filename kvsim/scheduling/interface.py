"""The seam between the scheduler and the engine: who runs in the next step.

A scheduler has no clock and no truth either. It owns the waiting queue and the running requests, and calls the
allocator's acquire and release itself.
"""

from collections.abc import Collection
from typing import Protocol

from kvsim.memory.interface import Allocator
from kvsim.request import Sequence
from kvsim.step import StepPlan


class Scheduler(Protocol):
    """Decides each step; every verb but `stable_steps` mutates."""

    allocator: Allocator

    def submit(self, sequence: Sequence) -> None:
        """A new request joins the queue."""

    def declare(self, sequence: Sequence) -> int:
        """Tokens that a new request must be provided for from the start, by what its client declared; 0: its own."""
        ...

    def plan(self) -> StepPlan:
        """Decide the next step and get its memory. O(1) in the batch unless memory runs short, then O(running)."""
        ...

    def complete(self, plan: StepPlan) -> list[Sequence]:
        """The step is over: what it computed is written. Returns those that sampled a token at the end of a prompt."""
        ...

    def leave(self, sequence: Sequence) -> None:
        """A request has ended (finished, cancelled): out of the running set or the queue, its memory given back."""

    def stable_steps(self, limit: int) -> int:
        """Steps, at most `limit`, for which `plan` would only decode what decodes now, whatever the memory does.

        0 when the next plan has to be made in full. Pure.
        """
        ...

    def silent_steps(self, longest_tokens: int) -> int:
        """More steps than this without a token, for requests of at most `longest_tokens`, mean no progress."""
        ...

    @property
    def running(self) -> Collection[int]:
        """Ids of the running requests."""
        ...

    @property
    def waiting_count(self) -> int:
        """Requests waiting, preempted ones included."""
        ...

    @property
    def running_count(self) -> int:
        """Requests running."""
        ...

    @property
    def head(self) -> Sequence | None:
        """The first of the queue."""
        ...

    def live(self) -> list[Sequence]:
        """All requests waiting or running, for audits. O(requests)."""
        ...

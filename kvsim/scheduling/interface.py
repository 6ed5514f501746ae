"""The seam between the scheduler and the engine: who runs in the next step.

A scheduler has no clock and no truth either. It owns the waiting queue and the running requests, and calls the
allocator's acquire and release itself.
"""

from collections.abc import Collection
from typing import Protocol

from kvsim.memory.host import HostPool
from kvsim.memory.interface import Allocator
from kvsim.request import Sequence
from kvsim.step import Rows, Short, StepPlan


class Scheduler(Protocol):
    """Decides each step; every verb but `stable_steps`, `rows`, `forks` and `impossible` mutates."""

    allocator: Allocator
    host: HostPool | None
    """Host memory for what is preempted, if there is any."""
    depth: int
    """Batches in flight at once: 1, or 2 where a step is planned when the one before it begins."""

    def submit(self, sequence: Sequence) -> None:
        """A new request joins the queue."""

    def declare(self, sequence: Sequence) -> int:
        """Tokens that a new request must be provided for from the start, by what its client declared; 0: its own."""
        ...

    def most_output(self, sequence: Sequence) -> int | None:
        """Output tokens that the engine cuts a new request to, whatever its client and its model allow; None: none."""
        ...

    def forks(self, sequence: Sequence) -> bool:
        """The `samples` of a new request fork off when its prompt is computed; otherwise each comes alone."""
        ...

    def impossible(self, sequence: Sequence) -> Short | None:
        """Why a new request can never run, if the reason is another than the pool."""
        ...

    def plan(self) -> StepPlan:
        """Decide the next step and get its memory. O(1) in the batch unless memory runs short, then O(running)."""
        ...

    def launched(self, plan: StepPlan) -> None:
        """The step begins. Where it was planned before the last one ended, what it computes in vain is left out."""

    def leapt(self, steps: int) -> None:
        """So many steps are over in which everyone decoded; the allocator knows already."""

    def complete(self, plan: StepPlan) -> list[Sequence]:
        """The step is over: what it computed is written. Returns those that sampled a token at the end of a prompt.

        The samples that fork off by it are among them, and noted in `plan.forked`.
        """
        ...

    def finish(self, sequence: Sequence) -> None:
        """A running sequence has emitted its last token."""

    def done(self) -> list[Sequence]:
        """Those of the finished whose results go out now, once each; the engine lets them leave."""
        ...

    def replace(self, dropped: Sequence, kept: Sequence) -> int:
        """`dropped` goes on from where `kept` is; both decode, and the allocator shares. The tokens in common."""
        ...

    def leave(self, sequence: Sequence) -> None:
        """A request has ended (finished, cancelled): out of the running set or the queue, its memory given back."""

    def flush(self) -> bool:
        """Empty the prefix cache, as whoever runs the engine may ask; False where the engine refuses it now.

        Only where the allocator `caches`. Never while anybody runs.
        """
        ...

    def rows(self) -> Rows:
        """What the next step computes for those that decode now, if nobody else does anything."""
        ...

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
        """Ids of the running sequences."""
        ...

    @property
    def waiting_count(self) -> int:
        """Sequences waiting, preempted ones included."""
        ...

    @property
    def running_count(self) -> int:
        """Sequences running."""
        ...

    @property
    def running_requests(self) -> int:
        """Requests of which at least one sequence runs."""
        ...

    @property
    def head(self) -> Sequence | None:
        """The next to be let in: the first in host memory, or else of the queue."""
        ...

    def live(self) -> list[Sequence]:
        """All sequences waiting or running, for audits. O(requests)."""
        ...

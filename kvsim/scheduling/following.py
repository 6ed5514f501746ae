"""Schedulers that follow their requests one by one, as the engines themselves do, before kvsim's engine.

Such a scheduler has its own idea of every request: what is scheduled of it, which may be ahead of what is computed by
as many steps as batches are in flight. The engine's sequences say what is computed. This keeps the two together.
A step costs O(running), and so does a leap, whatever its length.
"""

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

from kvsim.memory.books.held import HeldBooks
from kvsim.memory.host import HostPool
from kvsim.memory.interface import Allocator
from kvsim.request import Sequence
from kvsim.step import Preempted, Rows, Short, StepPlan


class FollowingScheduler(ABC):
    """Who waits, who runs and what is in flight; a subclass decides, by the rules of one engine.

    `depth` batches are in flight at once: with 2, a step is planned when the one before it begins.
    """

    host: HostPool | None = None

    def __init__(self, allocator: HeldBooks[Any], *, depth: int, max_num_batched_tokens: int) -> None:
        self.allocator: Allocator = allocator
        self._books = allocator
        self.depth = depth
        self.max_num_batched_tokens = max_num_batched_tokens
        self.running: dict[int, Sequence] = {}
        """By id, in admission order."""
        self._waiting: dict[int, Sequence] = {}
        self._finished: list[Sequence] = []
        self._admissions = 0
        self._flight: deque[StepPlan] = deque()
        """Plans whose output has not come, oldest first."""
        self._blocked = False
        """Whoever waits was tried by the last plan, and nothing has changed since that could help."""

    # What is there.

    @property
    def running_count(self) -> int:
        return len(self.running)

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    @property
    def running_requests(self) -> int:
        return len({s.id if s.request is None else s.request for s in self.running.values()})

    def live(self) -> list[Sequence]:
        return [*self.running.values(), *self._waiting.values()]

    @property
    @abstractmethod
    def head(self) -> Sequence | None: ...

    # What is known of the steps to come.

    def declare(self, sequence: Sequence) -> int:
        return 0

    def most_output(self, sequence: Sequence) -> int | None:
        return None

    def forks(self, sequence: Sequence) -> bool:
        """Samples come one by one, and find their prompt cached."""
        return False

    @abstractmethod
    def impossible(self, sequence: Sequence) -> Short | None: ...

    def rows(self) -> Rows:
        decodes = self.allocator.decodes
        return Rows(decodes.count, decodes.written + decodes.count)

    def stable_steps(self, limit: int) -> int:
        count = self.allocator.decodes.count
        steady = count and count == len(self.running) and (not self._waiting or self._blocked)
        for plan in self._flight:
            steady = steady and not plan.chunks and plan.rows.height == count and not plan.stalled
        # A step that is planned ahead of somebody's end is not like the others.
        return max(0, limit - self.depth + 1) if steady and len(self._flight) == self.depth - 1 else 0

    def silent_steps(self, longest_tokens: int) -> int:
        chunks = -(-longest_tokens // min(longest_tokens, self.max_num_batched_tokens))
        return 64 * self.depth + 2 * self.depth * chunks

    # Coming and going.

    def submit(self, sequence: Sequence) -> None:
        sequence.tokens = sequence.prompt_tokens
        self._waiting[sequence.id] = sequence
        self._submit(sequence)

    @abstractmethod
    def _submit(self, sequence: Sequence) -> None:
        """It joins the queue."""

    def finish(self, sequence: Sequence) -> None:
        self._finished.append(sequence)

    def done(self) -> list[Sequence]:
        finished, self._finished = self._finished, []
        return finished

    def replace(self, dropped: Sequence, kept: Sequence) -> int:
        raise NotImplementedError("sequences do not fork where requests are followed one by one")

    def leave(self, sequence: Sequence) -> None:
        self._blocked = False
        if sequence.id in self.running:
            self._forget(sequence)
        else:
            del self._waiting[sequence.id]
            sequence.gone = True
        self._leave(sequence)

    @abstractmethod
    def _leave(self, sequence: Sequence) -> None:
        """It has ended: what it holds is given back, and what is in flight for it is lost."""

    def flush(self) -> bool:
        """vLLM refuses while any block is referenced."""
        return not self.running and self.allocator.flush()

    def _forget(self, sequence: Sequence) -> None:
        """It runs no more, and what it has written counts no more."""
        del self.running[sequence.id]
        self._books.lets_go(sequence)

    def _loses(self, plan: StepPlan, sequence: Sequence, *, fails: bool) -> None:
        """A running sequence has lost its slots: it waits again, or `fails` for good."""
        decoding, lost = sequence.decoding, self.allocator.decodes.written_of(sequence)
        self._forget(sequence)
        if fails:
            plan.aborted.append(sequence)
            self._leave(sequence)
            return
        plan.preempted.append(Preempted(sequence, lost, decoding))
        sequence.written = 0
        self._waiting[sequence.id] = sequence

    def _starts(self, sequence: Sequence) -> None:
        """It runs from now on."""
        del self._waiting[sequence.id]
        sequence.admission = self._admissions
        self._admissions += 1
        self.running[sequence.id] = sequence

    # The step.

    @abstractmethod
    def plan(self) -> StepPlan: ...

    def launched(self, plan: StepPlan) -> None:
        """See `Scheduler`."""
        plan.decodes = 0 if plan.stalled else self.allocator.decodes.count
        # Whoever has left or was preempted since it was planned is computed in vain.
        running = self.running
        plan.chunks = [chunk for chunk in plan.chunks if running.get(chunk.sequence.id) is chunk.sequence]

    @abstractmethod
    def complete(self, plan: StepPlan) -> list[Sequence]: ...

    def _landed(self, plan: StepPlan) -> None:
        """The oldest plan in flight is over."""
        assert self._flight[0] is plan
        self._flight.popleft()

    def _written(self, plan: StepPlan) -> list[Sequence]:
        """What the step computed is written; returns those whose prompt is complete: they decode from now on."""
        self.allocator.settle(plan.chunks, stalled=plan.stalled)
        sampled = [chunk.sequence for chunk in plan.chunks if chunk.sequence.written == chunk.sequence.tokens]
        for sequence in sampled:
            sequence.tokens += 1
            self.allocator.begin_decode(sequence)
        return sampled

    def leapt(self, steps: int) -> None:
        """See `Scheduler`."""
        for plan in self._flight:
            height, context, pairs = plan.rows
            plan.rows = Rows(height, context + height * steps, pairs)

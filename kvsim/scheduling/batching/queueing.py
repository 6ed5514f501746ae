"""The queue and the running set: who comes, who is there, who goes."""

from collections import deque

from kvsim.memory.host import HostPool
from kvsim.memory.interface import Allocator
from kvsim.request import Sequence
from kvsim.scheduling.batching.padding import CompactRows
from kvsim.scheduling.batching.victims import VICTIMS
from kvsim.step import Blocked, Short, StepPlan

PREEMPTIONS = ("recompute", "swap", "abort", "never")
"""What happens when a running request cannot be extended."""

KERNELS = ("ragged", "padded")
"""How attention reads a batch of sequences of unequal length."""

UNLIMITED = 1 << 62
"""A token budget that no batch exhausts."""


class Queueing:
    """The state of a scheduler (its parameters are described with `BatchScheduler`)."""

    depth = 1
    chunked_prefill = False
    """A prompt may be computed in parts."""

    def __init__(
        self,
        allocator: Allocator,
        *,
        max_num_seqs: int = 256,
        max_num_batched_tokens: int = 2048,
        preemption: str = "recompute",
        victim: str = "last",
        max_model_len: int | None = None,
        host: HostPool | None = None,
        workspace_tokens: int | None = None,
        kernel: str = "ragged",
    ) -> None:
        if max_num_seqs < 1:
            raise ValueError(f"max_num_seqs is {max_num_seqs}; at least one request must be able to run")
        if max_num_batched_tokens < max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens is {max_num_batched_tokens}; it must be at least max_num_seqs "
                f"({max_num_seqs}), so that every running request can decode in each step"
            )
        if workspace_tokens is not None and workspace_tokens < max_num_seqs:
            raise ValueError(
                f"workspace_tokens is {workspace_tokens}; a step in which max_num_seqs ({max_num_seqs}) requests "
                f"decode must have room for its activations"
            )
        if preemption not in PREEMPTIONS:
            raise ValueError(f"preemption is {preemption!r}; it must be one of {', '.join(PREEMPTIONS)}")
        if victim not in VICTIMS:
            raise ValueError(f"victim is {victim!r}; it must be one of {', '.join(VICTIMS)}")
        if kernel not in KERNELS:
            raise ValueError(f"kernel is {kernel!r}; it must be one of {', '.join(KERNELS)}")
        if preemption == "never" and max_model_len is None:
            raise ValueError("max_model_len is missing; without preemption it bounds requests that set no max_tokens")
        if preemption == "swap" and host is None:
            raise ValueError("host is missing; swapping needs host memory to swap to")
        self.allocator = allocator
        self.preemption = preemption
        self.max_model_len = max_model_len
        self.max_num_seqs = max_num_seqs
        self.max_num_batched_tokens = max_num_batched_tokens
        self.host = host
        self.budget = max_num_batched_tokens if allocator.keeps else UNLIMITED
        """Tokens that a step may compute."""
        if workspace_tokens is not None:
            self.budget = min(self.budget, workspace_tokens)
        self.running: dict[int, Sequence] = {}
        """By id, in admission order."""
        self.prefilling: dict[int, Sequence] = {}
        """Those of the running that have known tokens left to compute."""
        self.waiting_count = 0
        self._victim = VICTIMS[victim]
        self._compact = CompactRows(allocator.decodes) if kernel == "padded" else None
        self._committed = 0
        """Slots that the running requests may come to own; kept where nothing is ever preempted."""
        self._seats = 0
        """Running sequences, and samples that will fork off them."""
        self._partners: dict[int, int] = {}
        """Running sequences of each request that has several samples."""
        self._queue: deque[Sequence] = deque()
        self._swapped: deque[Sequence] = deque()
        """Preempted sequences whose KV waits in host memory."""
        self._finished: list[Sequence] = []
        self._admissions = 0
        self._blocked = False
        """The head of the queue was tried and nothing has changed since that could help it."""

    # What is there.

    @property
    def running_count(self) -> int:
        return len(self.running)

    @property
    def running_requests(self) -> int:
        partners = self._partners
        return len(self.running) - sum(partners.values()) + len(partners) if partners else len(self.running)

    @property
    def head(self) -> Sequence | None:
        for waiting in (self._swapped, self._queue):
            while waiting and waiting[0].gone:
                waiting.popleft()
            if waiting:
                return waiting[0]
        return None

    def live(self) -> list[Sequence]:
        return [*self.running.values(), *(s for s in (*self._swapped, *self._queue) if not s.gone)]

    # Coming and going.

    def declare(self, sequence: Sequence) -> int:
        if self.preemption != "never":
            return 0
        assert self.max_model_len is not None
        if sequence.max_tokens is None:
            return self.max_model_len
        return min(self.max_model_len, sequence.prompt_tokens + sequence.max_tokens)

    def most_output(self, sequence: Sequence) -> int | None:
        return None

    def forks(self, sequence: Sequence) -> bool:
        """See `Scheduler`; samples that could never run all at once come one by one."""
        room = self.preemption != "never" or self._commitment(sequence) <= self.allocator.pool_slots
        return self.allocator.shares and sequence.seats <= self.max_num_seqs and room

    def submit(self, sequence: Sequence) -> None:
        sequence.tokens = sequence.prompt_tokens
        self._queue.append(sequence)
        if not self.waiting_count:
            self._blocked = False
        self.waiting_count += 1

    def flush(self) -> bool:
        """Whoever waits holds nothing, and finds what there is when it is admitted."""
        return not self.running and self.allocator.flush()

    def finish(self, sequence: Sequence) -> None:
        self._finished.append(sequence)

    def done(self) -> list[Sequence]:
        finished, self._finished = self._finished, []
        return finished

    def leave(self, sequence: Sequence) -> None:
        if sequence.id in self.running:
            self._drop(sequence)
            return
        self._blocked = False
        sequence.gone = True
        self.waiting_count -= 1
        if sequence.written:
            # Only what waits in host memory has kept anything.
            assert self.host is not None
            self.host.give(sequence.id)

    def _enter(self, sequence: Sequence) -> None:
        """It runs from now on."""
        self._start(sequence)
        self._seats += sequence.seats
        if self.preemption == "never":
            self._committed += self._commitment(sequence)

    def _start(self, sequence: Sequence) -> None:
        sequence.admission = self._admissions
        self._admissions += 1
        self.running[sequence.id] = sequence
        if sequence.request is not None:
            self._partners[sequence.request] = self._partners.get(sequence.request, 0) + 1

    def _drop(self, sequence: Sequence, *, comes_again: bool = False) -> None:
        """It runs no more, and its room may be what the head of the queue waits for."""
        self._blocked = False
        if self.preemption == "never":
            self._committed -= self._commitment(sequence)
        self._seats -= sequence.seats
        del self.running[sequence.id]
        if sequence.request is not None:
            self._partners[sequence.request] -= 1
            if not self._partners[sequence.request]:
                del self._partners[sequence.request]
        self.prefilling.pop(sequence.id, None)
        (self.allocator.preempt if comes_again else self.allocator.release)(sequence)
        if self._compact:
            self._compact.leave(sequence)

    def _commitment(self, sequence: Sequence) -> int:
        return sum(self.allocator.capacity(each.declared) for each in (sequence, *sequence.samples))

    def _has_seats(self, sequence: Sequence) -> bool:
        return self._seats + sequence.seats <= self.max_num_seqs

    def _dequeue(self) -> None:
        (self._swapped or self._queue).popleft()
        self.waiting_count -= 1

    def _outgrown(self, plan: StepPlan, head: Sequence) -> bool:
        """The head of the queue has become too long for the pool, and is aborted."""
        need = self.allocator.capacity(head.reach)
        if need <= self.allocator.most_slots:
            return False
        self._abort(plan, head, "outgrown", need)
        return True

    def _abort(self, plan: StepPlan, head: Sequence, cause: str, need: int) -> None:
        """The head of the queue has become too long: for the pool (outgrown), or for one step (activation)."""
        use = self.allocator.usage()
        room = (use.free, use.largest_hole) if cause == "outgrown" else (self.budget, self.budget)
        plan.blocked.append(Blocked(head, Short(cause, need, *room), "abort"))
        plan.aborted.append(head)
        self._dequeue()

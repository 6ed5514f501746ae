"""`ContinuousScheduler`, which extends everyone who decodes at once, in the place of a synchronous vLLM.

With prefix caching off it runs over the allocator that only counts blocks, with it on over the one that shares them.
"""

from kvsim.engine.replay.case import Record
from kvsim.engine.replay.vllm.engine import Output, Step
from kvsim.engine.replay.vllm.truth import Truth
from kvsim.errors import InputError
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.step import StepPlan

_ONLY: Record = {
    "max_num_active_seqs": None,
    "long_prefill_adaptive": False,
    "policy": "fcfs",
    "async_scheduling": False,
    "prefill_schedule_interval": 1,
    "groups": [{"kind": "full"}],
    "spec": None,
}
"""Settings whose other values ask for requests to be followed one by one."""


def can_batch(settings: Record) -> bool:
    """Whether a batch whose decoding part gets one token each can follow these settings."""
    return all(settings[key] == value for key, value in _ONLY.items())


class BatchEngine:
    """Blocks as numbers or with contents, a step decided for all at once."""

    def __init__(self, settings: Record) -> None:
        size, watermark = settings["block_size"], settings["watermark"]
        slots = (settings["num_blocks"] - 1) * size
        self.allocator: PagedAllocator | PrefixAllocator
        if settings["enable_prefix_caching"]:
            self.allocator = PrefixAllocator(slots, block_size=size, watermark=watermark)
        else:
            self.allocator = PagedAllocator(slots, block_size=size, watermark=watermark)
        self._pool = self.allocator.pool if isinstance(self.allocator, PrefixAllocator) else None
        self.scheduler = ContinuousScheduler(
            self.allocator,
            # Every running request takes a token of the budget, so no more of them than that can ever run.
            max_num_seqs=min(settings["max_num_seqs"], settings["max_num_batched_tokens"]),
            max_num_batched_tokens=settings["max_num_batched_tokens"],
            long_prefill_token_threshold=settings["long_prefill_token_threshold"],
            chunked_prefill=settings["enable_chunked_prefill"],
            reserve_full_isl=settings["reserve_full_isl"],
        )
        self._truths: dict[int, Truth] = {}
        self._plan = StepPlan()
        self._scheduled: list[tuple[int, int]] = []

    @property
    def blocks(self) -> int:
        """Blocks of the pool."""
        return self.allocator.blocks

    @property
    def free_blocks(self) -> int:
        """Those that nobody owns."""
        return self.allocator.free_blocks

    @property
    def contents(self) -> int:
        """Different contents that can be hit."""
        return self._pool.contents if self._pool else 0

    @property
    def stored(self) -> int:
        """Blocks put into the map since the start."""
        return self._pool.stored if self._pool else 0

    @property
    def evicted(self) -> int:
        """Blocks that left it."""
        return self._pool.evicted if self._pool else 0

    @property
    def busy(self) -> bool:
        """Somebody waits or runs."""
        return bool(self.scheduler.running_count or self.scheduler.waiting_count)

    def submit(self, truth: Truth) -> None:
        """It joins the queue."""
        self._truths[truth.sequence.id] = truth
        truth.sequence.content = truth.content
        self.scheduler.submit(truth.sequence)

    def give_up(self, truth: Truth) -> None:
        """It leaves, if it is there."""
        if truth.sequence.id in {sequence.id for sequence in self.scheduler.live()}:
            self.scheduler.leave(truth.sequence)

    def schedule(self) -> Step:
        """The running ones as admitted, new ones last."""
        scheduler = self.scheduler
        plan = self._plan = scheduler.plan()
        if plan.aborted:
            names = ", ".join(repr(self._truths[sequence.id].name) for sequence in plan.aborted)
            raise InputError(f"request {names} can never have its blocks; the case needs a larger pool")
        chunks = {chunk.sequence.id: chunk for chunk in plan.chunks}
        self._scheduled = [
            (sequence.id, 1 if sequence.decoding else chunks[sequence.id].tokens)
            for sequence in scheduler.running.values()
            if sequence.decoding or sequence.id in chunks
        ]
        return Step(
            self._scheduled,
            [(sequence.id, chunks[sequence.id].written) for sequence in plan.admitted],
            [(victim.sequence.id, victim.lost_tokens) for victim in plan.preempted],
            list(scheduler.running),
            [sequence.id for sequence in scheduler.live() if sequence.id not in scheduler.running],
        )

    def outputs(self) -> list[Output]:
        """One token from each that decodes or has come to the end of its prompt; who is done leaves."""
        scheduler = self.scheduler
        decoding = {number for number, _ in self._scheduled if scheduler.running[number].decoding}
        sampled = decoding | {sequence.id for sequence in scheduler.complete(self._plan)}
        outputs = []
        for number, _ in self._scheduled:
            if number in sampled:
                truth = self._truths[number]
                ended = truth.output + 1 == truth.allowed
                outputs.append(Output(number, 1, ended))
                if ended:
                    scheduler.leave(truth.sequence)
        return outputs

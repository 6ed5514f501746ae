"""`RequestScheduler` over shared blocks, in the place of a vLLM with all that its settings may ask."""

from collections import deque

from kvsim.engine.replay.case import Record
from kvsim.engine.replay.vllm.engine import Output, Step
from kvsim.engine.replay.vllm.truth import Truth
from kvsim.memory.prefix import BlockPool, FullGroup, Group, Holdings, SlidingGroup
from kvsim.scheduling.vllm import Batch, RequestScheduler, Rules


class RequestEngine:
    """Blocks with contents, requests followed one by one, one batch in flight or two."""

    def __init__(self, settings: Record) -> None:
        batches = 2 if settings["async_scheduling"] else 1
        drafts = settings["spec"]["k"] if settings["spec"] else 0
        looks_ahead = drafts and settings["spec"].get("lookahead", False)
        self.pool = BlockPool(settings["num_blocks"] - 1)
        holdings = Holdings(
            self.pool,
            [_group(entry, settings, batches) for entry in settings["groups"]],
            block_size=settings["block_size"],
            max_model_len=settings["max_model_len"],
            caching=settings["enable_prefix_caching"],
        )
        rules = Rules(
            max_num_seqs=settings["max_num_seqs"],
            max_num_active_seqs=settings["max_num_active_seqs"],
            max_num_batched_tokens=settings["max_num_batched_tokens"],
            max_model_len=settings["max_model_len"],
            enable_chunked_prefill=settings["enable_chunked_prefill"],
            long_prefill_token_threshold=settings["long_prefill_token_threshold"],
            long_prefill_adaptive=settings["long_prefill_adaptive"],
            reserve_full_isl=settings["reserve_full_isl"],
            watermark_blocks=int(settings["watermark"] * settings["num_blocks"]),
            policy=settings["policy"],
            async_scheduling=settings["async_scheduling"],
            prefill_schedule_interval=settings["prefill_schedule_interval"],
            draft_tokens=drafts,
            lookahead_tokens=drafts if looks_ahead else 0,
        )
        self.scheduler = RequestScheduler(holdings, rules)
        self._truths: dict[int, Truth] = {}
        self._flight: deque[Batch] = deque([Batch()] * (batches - 1))
        """Batches whose output has not come, oldest first."""

    @property
    def blocks(self) -> int:
        """Blocks of the pool."""
        return self.pool.blocks

    @property
    def free_blocks(self) -> int:
        """Those that nobody references."""
        return self.pool.free_blocks

    @property
    def contents(self) -> int:
        """Different contents that can be hit."""
        return self.pool.contents

    @property
    def stored(self) -> int:
        """Blocks put into the map since the start."""
        return self.pool.stored

    @property
    def evicted(self) -> int:
        """Blocks that left it."""
        return self.pool.evicted

    @property
    def busy(self) -> bool:
        """Somebody waits or runs."""
        return bool(self.scheduler.running or self.scheduler.waiting)

    def submit(self, truth: Truth) -> None:
        """It joins the queue."""
        self._truths[truth.sequence.id] = truth
        self.scheduler.submit(truth.sequence, truth.content)

    def give_up(self, truth: Truth) -> None:
        """It leaves, if it is there."""
        if truth.sequence.id in self._truths:
            del self._truths[truth.sequence.id]
            self.scheduler.leave(truth.sequence)

    def schedule(self) -> Step:
        """The running ones as admitted, new ones last."""
        scheduler = self.scheduler
        batch = scheduler.plan()
        self._flight.append(batch)
        return Step(
            [(row.request.sequence.id, row.tokens) for row in batch.rows],
            [(entry.request.sequence.id, entry.hit_tokens) for entry in batch.admitted],
            [(entry.request.sequence.id, entry.tokens) for entry in batch.preempted],
            [request.sequence.id for request in scheduler.running],
            [request.sequence.id for request in scheduler.waiting],
        )

    def outputs(self) -> list[Output]:
        """That of the oldest batch in flight."""
        batch = self._flight.popleft()
        verified = [row.request.sequence.id for row in batch.rows if row.drafts and not row.request.ended]
        accepted = {number: self._truths[number].accepts() for number in verified}
        outputs = [
            Output(emitted.sequence.id, emitted.tokens, emitted.ended)
            for emitted in self.scheduler.complete(batch, accepted)
        ]
        for output in outputs:
            if output.ended:
                self.scheduler.leave(self._truths.pop(output.request).sequence)
        return outputs


def _group(entry: Record, settings: Record, batches: int) -> Group:
    if entry["kind"] == "full":
        return FullGroup()
    return SlidingGroup(
        window=entry["window"],
        block_size=settings["block_size"],
        retention_tokens=settings["retention_interval"],
        max_in_flight_tokens=batches * settings["max_num_batched_tokens"],
        max_model_len=settings["max_model_len"],
    )

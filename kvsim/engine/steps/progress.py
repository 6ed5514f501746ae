"""The event budget: a run that goes on without getting anywhere is stopped with a diagnosis."""

from kvsim.errors import RunError
from kvsim.request import PS_PER_S
from kvsim.scheduling.interface import Scheduler


class ProgressWatch:
    """Counts the steps in a row in which no token is emitted and no request ends; more than `limit` are no progress."""

    __slots__ = ("_limit", "_scheduler", "_silent")

    def __init__(self, scheduler: Scheduler, limit: int) -> None:
        self._scheduler = scheduler
        self._limit = limit
        self._silent = 0

    def ended(self) -> None:
        """A request has ended: that is progress too."""
        self._silent = 0

    def step(self, now_ps: int, tokens: int) -> None:
        """A step that will emit `tokens` tokens begins."""
        if tokens:
            self._silent = 0
            return
        self._silent += 1
        if self._silent > self._limit:
            raise RunError(self.diagnosis(now_ps, f"no token in {self._silent} steps"))

    def diagnosis(self, now_ps: int, what: str) -> str:
        """A message that says what stands still, and where."""
        scheduler = self._scheduler
        pool, use, head = scheduler.allocator.pool_slots, scheduler.allocator.usage(), scheduler.head
        queue = "nothing waits" if head is None else f"request {head.id} of {head.tokens} tokens heads the queue"
        return (
            f"the run makes no progress at {now_ps / PS_PER_S:.6f} s: {what}; {scheduler.running_count} running, "
            f"{scheduler.waiting_count} waiting, {queue}; {use.free} of {pool} slots are free, the largest hole has "
            f"{use.largest_hole}. A larger pool or smaller requests may help; if not, the policy is at fault"
        )

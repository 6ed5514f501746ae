"""`--check`: after every arrival, cancellation and step, everything is counted again from the other side."""

from typing import TYPE_CHECKING

from kvsim.errors import CheckError

if TYPE_CHECKING:
    from kvsim.engine.replica import Replica


class Auditor:
    """Slots, requests and the clock are conserved, or a CheckError says which is not."""

    def __init__(self) -> None:
        self._last_ps = 0

    def audit(self, replica: "Replica") -> None:
        """Raise CheckError at the first thing that does not add up. O(requests in the system)."""
        now = replica.clock.now_ps
        if now < self._last_ps:
            raise CheckError(f"the clock steps back from {self._last_ps} ps to {now} ps")
        self._last_ps = now
        scheduler, log = replica.scheduler, replica.recording.requests
        held = scheduler.live()
        if {s.id for s in held} != set(replica.live) or len(held) != len(replica.live):
            lost = sorted(set(replica.live) ^ {s.id for s in held})
            raise CheckError(f"requests {lost} are known to the engine or to the scheduler, but not to both (lost)")
        if scheduler.waiting_count + scheduler.running_count != len(held):
            raise CheckError(
                f"{scheduler.waiting_count} waiting and {scheduler.running_count} running requests are counted, "
                f"{len(held)} are there"
            )
        # Samples of one request are sequences of their own to the scheduler.
        inside = len({sequence.id if sequence.request is None else sequence.request for sequence in held})
        if log.arrived != log.ends + inside:
            raise CheckError(
                f"{log.arrived} requests have arrived, {log.ends} have ended and {inside} are in the system"
            )
        if replica.recording.occupancy.count != inside:
            raise CheckError(
                f"the step records count {replica.recording.occupancy.count} requests in the system, {inside} are there"
            )
        replica.allocator.audit(held)
        use = replica.allocator.usage()
        if min(use) < 0 or sum(use) - use.largest_hole != replica.allocator.pool_slots:
            raise CheckError(f"the classes {use} do not add up to the pool's {replica.allocator.pool_slots} slots")

"""What a step moves beside its kernels: slots copied inside the memory, pages mapped into it, slots swapped out.

Whole picoseconds a slot or page, so that sums are exact.
"""

from dataclasses import dataclass

from kvsim.step import StepPlan


@dataclass(frozen=True, slots=True)
class Moves:
    """Picoseconds of a slot copied or gathered, of a page mapped, of a slot swapped."""

    copied_ps: int
    mapped_ps: int
    swapped_ps: int

    def of(self, plan: StepPlan) -> int:
        """What a step moves, whatever it computes."""
        return (
            self.copied_ps * (plan.copied_slots + plan.gathered_slots)
            + self.mapped_ps * plan.mapped_pages
            + self.swapped_ps * plan.swapped_slots
        )

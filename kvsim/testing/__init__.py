"""Conformance suites for the seams of kvsim: run them on your own allocator or scheduler.

    check_allocator(lambda pool_slots: MyAllocator(pool_slots))
    check_scheduler(lambda allocator: MyScheduler(allocator), max_num_seqs=8, max_num_batched_tokens=64)

Each raises a CheckError that names every broken promise. `allocator_checks` and `scheduler_checks` give the same as
(name, check) pairs, for a test runner to list one by one. Everything is deterministic.
"""

from kvsim.testing.allocators import allocator_checks, check_allocator
from kvsim.testing.schedulers import check_scheduler, scheduler_checks

__all__ = ["allocator_checks", "check_allocator", "check_scheduler", "scheduler_checks"]

"""What a user calls: one run, several compared, all of them replicated, many at many points, or a plan.

Loaded on first use, so that a command pays for what it does.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvsim.study.planning.ask import plan
    from kvsim.study.replication.study import compare_with_intervals
    from kvsim.study.side_by_side import compare
    from kvsim.study.single import run
    from kvsim.study.sweeps.sweep import sweep

__all__ = ["compare", "compare_with_intervals", "plan", "run", "sweep"]


def __getattr__(name: str) -> Any:
    if name == "run":
        from kvsim.study.single import run

        return run
    if name == "compare":
        from kvsim.study.side_by_side import compare

        return compare
    if name == "compare_with_intervals":
        from kvsim.study.replication.study import compare_with_intervals

        return compare_with_intervals
    if name == "plan":
        from kvsim.study.planning.ask import plan

        return plan
    if name == "sweep":
        from kvsim.study.sweeps.sweep import sweep

        return sweep
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""What a user calls: one run, several compared, all of them replicated, or many at many points.

Loaded on first use, so that a command pays for what it does.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvsim.study.replication.study import compare_with_intervals
    from kvsim.study.side_by_side import compare
    from kvsim.study.single import run
    from kvsim.study.sweeps.sweep import sweep

__all__ = ["compare", "compare_with_intervals", "run", "sweep"]


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
    if name == "sweep":
        from kvsim.study.sweeps.sweep import sweep

        return sweep
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

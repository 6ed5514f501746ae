"""Where the runs of a study are computed: here, in processes of this machine, or on a cluster.

The seam is the stdlib's `concurrent.futures.Executor`; what a run gives does not depend on which of them it went to.
"""

from kvsim.study.executors.opening import Workers, opened
from kvsim.study.executors.pieces import outcomes

__all__ = ["Workers", "opened", "outcomes"]

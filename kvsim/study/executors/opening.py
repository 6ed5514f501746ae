"""From what a user asks for (`--jobs`, `--cluster`) to workers that are there."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass

from kvsim.errors import InputError
from kvsim.study.executors.processes import LostWorkerError, ProcessExecutor
from kvsim.study.executors.serial import SerialExecutor


@dataclass(frozen=True)
class Workers:
    """An executor, what it is called in messages, how many calls it does at once, and how it says that one is lost."""

    executor: Executor
    name: str
    count: Callable[[], int]
    lost: tuple[type[BaseException], ...] = (LostWorkerError,)


@contextmanager
def opened(*, jobs: int | None = None, cluster: str | None = None) -> Iterator[Workers]:
    """Workers for the body; they end with it, and at once where it raises.

    `jobs` processes of this machine (None: one a core; 1: this process itself), or those of a `cluster`: the address
    of a dask scheduler, or "local" for a cluster of `jobs` workers on this machine. Raises InputError where `jobs` is
    below 1, the extra for clusters is missing, or the scheduler cannot be reached.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs: {jobs} is too few; use 1 or more")
    jobs = cores() if jobs is None else jobs
    if cluster is not None:
        from kvsim.study.executors.cluster import connected

        with connected(cluster, jobs) as workers:
            yield workers
    elif jobs == 1:
        yield Workers(SerialExecutor(), "this process", lambda: 1)
    else:
        executor = ProcessExecutor(jobs)
        try:
            yield Workers(executor, f"{jobs} processes", lambda: jobs)
        except BaseException:
            executor.kill()
            raise
        executor.shutdown()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

"""Workers of a dask.distributed cluster: a scheduler's by its address, or some of this machine. Loaded late."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kvsim.errors import InputError
from kvsim.study.executors.interrupts import uninterrupted
from kvsim.study.executors.opening import Workers
from kvsim.version import __version__

LOCAL = "local"
"""In place of an address: workers of this machine, with a scheduler of their own."""

CONNECT_S = 10
"""How long a scheduler may take to answer, and workers to be there."""


@contextmanager
def connected(cluster: str, jobs: int) -> Iterator[Workers]:
    """The workers of the scheduler at this address, or `jobs` of this machine for "local".

    Dask hands the piece of a worker that died to another one, three times, before it gives up. Raises InputError where
    the extra is missing, the address is none, nobody answers, no worker comes, or one has another version.
    """
    try:
        from distributed import Client, KilledWorker, LocalCluster
    except ImportError:
        raise InputError(
            "--cluster: needs dask.distributed, which is not installed; pip install 'kvsim[cluster]', or leave "
            "--cluster out to use the processes of this machine"
        ) from None
    if cluster != LOCAL and "://" not in cluster:
        raise InputError(f"--cluster {cluster}: is no address; write tcp://HOST:PORT, or local")
    # What goes wrong is told by what is raised; dask would tell it once more, and restarted workers as well.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if cluster == LOCAL:
        with ExitStack() as stack:
            with uninterrupted():
                local = LocalCluster(
                    n_workers=jobs,
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    worker_dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
                client = stack.enter_context(Client(stack.enter_context(local)))
            yield _workers(client, f"{jobs} workers of a local cluster", KilledWorker)
        return
    try:
        client = Client(cluster, timeout=CONNECT_S)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"--cluster {cluster}: no scheduler answers there ({_reason(error)}); start one with `dask scheduler`, and "
            "give the address that it prints"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_S)
        except TimeoutError:
            raise InputError(
                f"--cluster {cluster}: the scheduler has no workers; start some with `dask worker {cluster}`"
            ) from None
        _check_versions(cluster, client)
        yield _workers(client, f"the cluster at {cluster}", KilledWorker)


def _workers(client: Any, name: str, lost: type[BaseException]) -> Workers:
    return Workers(client.get_executor(pure=False), name, lambda: sum(client.nthreads().values()), (lost,))


def _check_versions(cluster: str, client: Any) -> None:
    """Other versions of kvsim, or of numpy, whose random streams these are, would give other results."""
    try:
        found = client.run(versions)
    except ImportError as error:
        raise InputError(
            f"--cluster {cluster}: a worker lacks a package ({error}); install kvsim {__version__} for all of them"
        ) from None
    here = versions()
    for worker, there in sorted(found.items()):
        for package, version in here.items():
            if there[package] != version:
                raise InputError(
                    f"--cluster {cluster}: worker {worker} has {package} {there[package]}, and this process {version}: "
                    "results could differ; install the same for all"
                )


def versions() -> dict[str, str]:
    """The versions that decide what a run gives."""
    import numpy as np

    return {"kvsim": __version__, "numpy": np.__version__}


def _reason(error: BaseException) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__

"""Workers start out of reach of interrupts: Ctrl-C goes to all processes of a terminal, and is one's business alone."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def uninterrupted() -> Iterator[None]:
    """An interrupt waits until the body is over; threads and processes that the body starts never see one.

    Without it those that are still loading their modules end in a traceback each.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Whoever starts the tracker unblocks interrupts behind it.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

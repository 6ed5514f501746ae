"""What runs in a worker process: one call after the other, as they come through its connection."""

import os
import pickle
import signal
import threading
from multiprocessing.connection import Connection, wait
from multiprocessing.process import parent_process
from typing import Any

from kvsim.errors import RunError

READY = b"ready"
"""Said once, before the first call: the process has come up."""

END = b""
"""In place of a call: there will be none any more."""


def serve(connection: "Connection[Any, Any]") -> None:
    """Answer each call with `(True, result)` or `(False, exception)` until `END` or until nobody listens any more.

    An interrupt is the caller's business; a worker whose parent was killed ends at once, in the middle of a call too.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        connection.send_bytes(READY)
        while call := connection.recv_bytes():
            connection.send_bytes(_answer(call))
    except (EOFError, OSError):
        return


def _answer(call: bytes) -> bytes:
    try:
        function, args, kwargs = pickle.loads(call)
        return pickle.dumps((True, function(*args, **kwargs)))
    except Exception as error:
        return _failure(error)


def _failure(error: Exception) -> bytes:
    try:
        text = pickle.dumps((False, error))
        pickle.loads(text)  # some exceptions can be written and not read
    except Exception:
        text = pickle.dumps((False, RunError(f"{type(error).__name__}: {error}")))
    return text


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)

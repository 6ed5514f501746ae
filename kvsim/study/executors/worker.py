"""What runs in a worker process: one call after the other; meanwhile the next ones come through its connection."""

import os
import pickle
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from kvsim.errors import RunError

READY = b"ready"
"""Said once, before the first call: the process has come up."""

END = b""
"""In place of a call: there will be none any more."""


def serve(connection: "Connection[Any, Any]") -> None:
    """Answer each call with `(True, result)` or `(False, exception)` until `END`.

    An interrupt is the caller's business; a worker whose parent was killed ends at once, in the middle of a call too.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, calls), daemon=True).start()
    with suppress(OSError):
        connection.send_bytes(READY)
        while call := calls.get():
            connection.send_bytes(_answer(call))


def _receive(connection: "Connection[Any, Any]", calls: "SimpleQueue[bytes]") -> None:
    try:
        while True:
            calls.put(connection.recv_bytes())
    except (EOFError, OSError):  # the parent is gone
        os._exit(1)


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

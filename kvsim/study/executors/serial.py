"""The executor without workers: a call is done when `submit` returns."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class SerialExecutor(Executor):
    """Computes in the caller's own process and thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Call `fn` now; the future holds what it gives or raises, but an interrupt, which is the caller's."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

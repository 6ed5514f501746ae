"""Worker processes of this machine as a stdlib Executor that outlives the death of any of them.

`concurrent.futures.ProcessPoolExecutor` breaks as a whole when one worker dies, and cannot say which call was its last.
Here every worker has a connection of its own: the call of a lost worker, and no other, goes to a new one.
"""

import multiprocessing
import pickle
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

from kvsim.errors import RunError
from kvsim.study.executors.interrupts import uninterrupted
from kvsim.study.executors.worker import END, READY, serve

MOST_LOSSES = 3
"""A call that was lost with so many workers is not tried again: it is likely what kills them."""

AHEAD = 2
"""Calls that a worker has at once: the next one is there when it is done with the one before."""

PRELOADED = ("kvsim.study.single",)
"""Loaded once and shared by all workers, so that one starts in milliseconds."""


class LostWorkerError(RunError):
    """Every worker that had this call died before it could answer."""


@dataclass(slots=True)
class _Call:
    future: "Future[Any]"
    text: bytes
    losses: int = 0


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    connection: "Connection[Any, Any]"
    ready: bool = False
    calls: deque[_Call] = field(default_factory=deque)
    """Those that it has and has not answered, the one that it computes first."""


class ProcessExecutor(Executor):
    """At most `jobs` worker processes, started as calls come; what is called must be importable by name.

    A call lost with its worker goes to another, up to `MOST_LOSSES` times, then its future raises LostWorkerError.
    Where workers cannot even start, every future raises RunError.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._context = _context()
        self._lock = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._workers: list[_Worker] = []
        self._closing = self._killed = self._woken = False
        self._wakes, self._wake = multiprocessing.Pipe(duplex=False)
        self._thread: threading.Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Let a worker call `fn`; see `Executor.submit`."""
        call = _Call(Future(), pickle.dumps((fn, args, kwargs)))
        with self._lock:
            if self._closing:
                raise RuntimeError("submit: the executor was shut down")
            self._waiting.append(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                with uninterrupted():
                    self._thread.start()
        self._wake_up()
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls and end the workers when theirs are answered; see `Executor.shutdown`."""
        with self._lock:
            self._closing = True
            if cancel_futures:
                self._cancel_waiting()
        self._wake_up()
        if wait and self._thread is not None:
            self._thread.join()

    def kill(self) -> None:
        """End the workers now, whatever they do; calls without an answer are cancelled or lost."""
        self._killed = True
        self.shutdown(cancel_futures=True)

    def _cancel_waiting(self) -> None:
        while self._waiting:
            self._waiting.popleft().future.cancel()

    def _wake_up(self) -> None:
        with self._lock:
            if not self._woken:
                self._woken = True
                self._wake.send_bytes(READY)

    # What follows runs in the thread that hands out calls; only `_waiting` is shared with others.

    def _run(self) -> None:
        try:
            while self._turn():
                self._listen()
        except Exception as error:  # no process can be had, for one
            self._give_up(RunError(f"worker processes: {error}; use fewer jobs"))
        finally:
            for worker in self._workers:
                self._end(worker)

    def _give_up(self, error: RunError) -> None:
        with self._lock:
            self._closing = self._killed = True
            calls = [*self._waiting, *(call for worker in self._workers for call in worker.calls)]
            self._waiting.clear()
        for call in calls:
            if not call.future.done():
                call.future.set_exception(error)

    def _turn(self) -> bool:
        """Hand out what waits. Returns whether there is anything to listen for."""
        with self._lock:
            self._woken = False
            while self._wakes.poll():
                self._wakes.recv_bytes()
            if self._killed:
                return False
            while self._waiting and (worker := self._free_worker()):
                call = self._waiting.popleft()
                if call.future.running() or call.future.set_running_or_notify_cancel():
                    worker.calls.append(call)
                    with suppress(OSError):  # it has died, which is noticed when it is listened to
                        worker.connection.send_bytes(call.text)
            return not self._closing or bool(self._waiting) or any(worker.calls for worker in self._workers)

    def _free_worker(self) -> _Worker | None:
        free = min(self._workers, key=lambda worker: len(worker.calls), default=None)
        if (free is None or free.calls) and len(self._workers) < self._jobs:
            here, there = multiprocessing.Pipe()
            process = self._context.Process(target=serve, args=(there,), daemon=True)  # type: ignore[attr-defined]
            process.start()
            there.close()
            free = _Worker(process, here)
            self._workers.append(free)
        return free if free is not None and len(free.calls) < AHEAD else None

    def _listen(self) -> None:
        heard = wait([self._wakes, *(worker.connection for worker in self._workers)])
        for worker in [worker for worker in self._workers if worker.connection in heard]:
            try:
                self._hear(worker, worker.connection.recv_bytes())
            except (EOFError, OSError):
                self._lose(worker)

    def _hear(self, worker: _Worker, text: bytes) -> None:
        if not worker.ready and text == READY:
            worker.ready = True
            return
        call = worker.calls.popleft()
        fine, value = pickle.loads(text)
        if fine:
            call.future.set_result(value)
        else:
            call.future.set_exception(value)

    def _lose(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        self._end(worker)
        if not worker.ready:
            for call in worker.calls:
                call.future.set_exception(
                    RunError(
                        "a worker process could not start; in a script, call kvsim from under "
                        '`if __name__ == "__main__":`, as for any pool of processes, or use one job'
                    )
                )
            return
        if not worker.calls:
            return
        # It died in the first of its calls; the others it had not begun.
        call = worker.calls.popleft()
        with self._lock:
            self._waiting.extendleft(reversed(worker.calls))
        call.losses += 1
        if call.losses >= MOST_LOSSES:
            call.future.set_exception(
                LostWorkerError(f"{call.losses} worker processes died in it; were they out of memory?")
            )
        else:
            with self._lock:
                self._waiting.appendleft(call)

    def _end(self, worker: _Worker) -> None:
        if self._killed:
            worker.process.kill()
        else:
            with suppress(OSError):
                worker.connection.send_bytes(END)
        worker.connection.close()
        worker.process.join()
        if self._killed:
            for call in worker.calls:
                if not call.future.done():
                    call.future.set_exception(LostWorkerError("its worker process was ended"))


def _context() -> BaseContext:
    """A clean process forks the workers where there can be one: nothing of this process's threads is inherited."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context

"""Worker processes: calls come back whole, in spite of workers that die."""

import os
import signal
import time
from pathlib import Path

import pytest

from kvsim.errors import RunError
from kvsim.study.executors.processes import AHEAD, LostWorkerError, ProcessExecutor


def square(number: int) -> int:
    return number * number


def die_once(marker: str) -> str:
    """Kills its worker the first time, as the kernel does with one that is out of memory."""
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def out_of_reach() -> bool:
    """An interrupt does not get through to this process, whatever it does with one."""
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def refuse() -> None:
    raise RunError("it cannot be done")


def test_map_gives_what_the_calls_give_in_their_order():
    with ProcessExecutor(2) as executor:
        assert list(executor.map(square, range(50))) == [number * number for number in range(50)]


def test_an_interrupt_is_the_callers_business_from_the_first_moment_of_a_worker():
    with ProcessExecutor(1) as executor:
        assert executor.submit(out_of_reach).result()
    assert not out_of_reach()


def test_an_exception_of_a_call_comes_back_as_it_was():
    with ProcessExecutor(2) as executor, pytest.raises(RunError, match="it cannot be done"):
        executor.submit(refuse).result()


def test_the_call_of_a_worker_that_died_is_done_by_another(tmp_path):
    with ProcessExecutor(2) as executor:
        lost = executor.submit(die_once, str(tmp_path / "marker"))
        others = [executor.submit(square, number) for number in range(20)]
        assert lost.result(timeout=30) == "done"
        assert [other.result() for other in others] == [number * number for number in range(20)]


def test_a_call_that_kills_every_worker_fails_alone():
    with ProcessExecutor(2) as executor:
        deadly = executor.submit(die)
        others = [executor.submit(square, number) for number in range(20)]
        with pytest.raises(LostWorkerError, match="3 worker processes died in it"):
            deadly.result(timeout=30)
        assert [other.result() for other in others] == [number * number for number in range(20)]


def test_a_cancelled_call_is_never_made(tmp_path):
    with ProcessExecutor(1) as executor:
        for _ in range(AHEAD):
            executor.submit(time.sleep, 0.2)
        waiting = executor.submit(Path.touch, tmp_path / "touched")
        assert waiting.cancel()
    assert not (tmp_path / "touched").exists()


def test_kill_ends_workers_in_the_middle_of_a_call():
    executor = ProcessExecutor(2)
    futures = [executor.submit(time.sleep, 600) for _ in range(3)]
    while not futures[0].running():
        time.sleep(0.01)
    started = time.monotonic()
    executor.kill()
    assert time.monotonic() - started < 10
    assert all(future.done() for future in futures)


def test_nothing_is_taken_after_shutdown():
    executor = ProcessExecutor(1)
    executor.shutdown()
    with pytest.raises(RuntimeError, match="was shut down"):
        executor.submit(square, 2)

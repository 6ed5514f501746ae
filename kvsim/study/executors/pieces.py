"""Work handed out in pieces: so large that handing over costs nothing, so small that little is lost with one."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from typing import TypeVar

from kvsim.errors import RunError
from kvsim.study.executors.opening import Workers

PIECE_S = 2.0
"""Seconds of work that a piece should be."""

AHEAD = 2
"""Pieces handed out per worker: one that it computes and one that waits beside it."""

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def outcomes(
    workers: Workers,
    function: Callable[[Item], Outcome],
    items: Sequence[Item],
    *,
    lost: Callable[[Item, str], Outcome],
) -> Iterator[list[tuple[Item, Outcome]]]:
    """Yield what `function` gives for every item, piece by piece as they are done, in no particular order.

    `function` is importable by name and does not raise but to end the whole. An item whose workers died again and
    again has the outcome that `lost` makes of it and of what happened. Raises RunError where the workers are gone.
    """
    waiting = deque(items)
    running: dict[Future[tuple[list[Outcome], float]], list[Item]] = {}
    done, spent_s = 0, 0.0
    while waiting or running:
        count = max(1, workers.count())
        while waiting and len(running) < AHEAD * count:
            size = _size(len(waiting), count, spent_s / done if done else None)
            piece = [waiting.popleft() for _ in range(size)]
            running[workers.executor.submit(compute, function, piece)] = piece
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            piece = running.pop(future)
            try:
                made, took_s = future.result()
            except CancelledError:
                raise RunError(f"{workers.name}: the work was given up; is it still running?") from None
            except workers.lost as error:
                if len(piece) > 1:
                    # One of them may be what kills workers: each on its own, so that the others are done.
                    for item in piece:
                        running[workers.executor.submit(compute, function, [item])] = [item]
                    continue
                made, took_s = [lost(piece[0], str(error))], 0.0
            done, spent_s = done + len(piece), spent_s + took_s
            yield list(zip(piece, made, strict=True))


def compute(function: Callable[[Item], Outcome], piece: Sequence[Item]) -> tuple[list[Outcome], float]:
    """What a worker does with a piece: the outcomes, and the seconds that they took."""
    started = time.perf_counter()
    return [function(item) for item in piece], time.perf_counter() - started


def _size(waiting: int, workers: int, each_s: float | None) -> int:
    """How many items come next: one until it is known how long they take, and few near the end, so that all end."""
    if each_s is None:
        return 1
    return max(1, min(round(PIECE_S / max(each_s, 1e-6)), waiting // (2 * AHEAD * workers)))

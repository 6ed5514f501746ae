"""Questions that need runs again and again, what came of the last ones deciding which are next, asked side by side."""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from kvsim.study.replication.runs.replicate import Executor, Piece, Replicate, simulate

Answer = TypeVar("Answer")

Asking = Generator[list[Piece], list[Replicate], Answer]
"""A question: yields the runs that it needs next, is sent what they gave in the same order, and returns its answer."""

Progress = Callable[[int, int], None]
"""Called with the runs that are done, and those that have been asked for so far."""


def answered(questions: Sequence[Asking[Answer]], executor: Executor, progress: Progress | None = None) -> list[Answer]:
    """The answer to each question, in their order; the runs that all of them need next go out together.

    Every question sees its own runs alone, so that its answer depends neither on the others nor on the executor.
    """
    answers: dict[int, Answer] = {}
    waiting: dict[int, list[Piece]] = {}
    done, asked = 0, 0

    def go_on(number: int, runs: list[Replicate] | None) -> None:
        try:
            waiting[number] = next(questions[number]) if runs is None else questions[number].send(runs)
        except StopIteration as end:
            waiting.pop(number, None)
            answers[number] = end.value

    for number in range(len(questions)):
        go_on(number, None)
    while waiting:
        turn = dict(waiting)
        asked += sum(map(len, turn.values()))
        came = iter(executor.map(simulate, [piece for pieces in turn.values() for piece in pieces]))
        for number, pieces in turn.items():
            runs = []
            for _ in pieces:
                runs.append(next(came))
                done += 1
                if progress is not None:
                    progress(done, asked)
            go_on(number, runs)
    return [answers[number] for number in range(len(questions))]

"""When requests were left waiting, from the record of steps."""

from array import array

from kvsim.metrics.memory.levels import SERIES

_WIDTH = len(SERIES)
_START, _DURATION, _WAITING = (SERIES.index(name) for name in ("start_ps", "duration_ps", "waiting"))


class Waited:
    """The stretches of time, each as long as can be, before the steps of which somebody waited."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int]] = []

    def add(self, series: "array[int]") -> None:
        """These rows of the record come next. Mutates."""
        _go_on(self._found, series)

    def and_then(self, series: "array[int]") -> list[tuple[int, int]]:
        """The stretches of all rows so far and of these, as (from, to) in picoseconds."""
        return _go_on(self._found.copy(), series)


def _go_on(found: list[tuple[int, int]], series: "array[int]") -> list[tuple[int, int]]:
    columns = (series[column::_WIDTH] for column in (_START, _DURATION, _WAITING))
    for start_ps, duration_ps, waiting in zip(*columns, strict=True):
        if not waiting:
            continue
        end_ps = start_ps + duration_ps
        if found and found[-1][1] == start_ps:
            found[-1] = (found[-1][0], end_ps)
        else:
            found.append((start_ps, end_ps))
    return found

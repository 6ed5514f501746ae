"""The tables of a fleet: its replicas, and what came to any of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from kvsim.metrics.requests import RequestLog
from kvsim.metrics.summary import Run
from kvsim.metrics.tables.rows import Table, event_rows, preemption_rows, request_rows


class FleetTables(Mapping[str, Table]):
    """ "replicas" as given; of `runs`, whose records were kept, "requests", "events" and "preemptions" as well.

    What lies where in time is a matter of each replica, and not here.
    """

    def __init__(self, replicas: Table, runs: Sequence[Run]) -> None:
        logs = [run.requests for run in runs if isinstance(run.requests, RequestLog)]
        self._makers: dict[str, Callable[[], Table]] = {"replicas": lambda: replicas}
        if logs:
            self._makers |= {
                "requests": lambda: request_rows(sorted(chain.from_iterable(log.ended for log in logs))),
                "events": lambda: event_rows(_in_time(chain.from_iterable(log.events for log in logs))),
                "preemptions": lambda: preemption_rows(_in_time(chain.from_iterable(log.losses for log in logs))),
            }
        self._made: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._makers:
            raise KeyError(f"a fleet keeps no table {name!r}: it is recorded replica by replica")
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def _in_time(records: Any) -> list[Any]:
    return sorted(records, key=lambda record: record.time_ps)

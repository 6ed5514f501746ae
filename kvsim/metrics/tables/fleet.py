"""The tables of a fleet: its replicas, and what came to any of them."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from kvsim.metrics.requests import RequestLog
from kvsim.metrics.summary import Run
from kvsim.metrics.tables.made import MadeTables
from kvsim.metrics.tables.rows import Table, event_rows, preemption_rows, request_rows


class FleetTables(MadeTables):
    """ "replicas" as given; of `runs`, whose records were kept, "requests", "events" and "preemptions" as well.

    What lies where in time is a matter of each replica, and not here.
    """

    def __init__(self, replicas: Table, runs: Sequence[Run]) -> None:
        logs = [run.requests for run in runs if isinstance(run.requests, RequestLog)]
        makers: dict[str, Callable[[], Table]] = {"replicas": lambda: replicas}
        if logs:
            makers |= {
                "requests": lambda: request_rows(
                    list(chain.from_iterable(log.ended for log in logs)),
                    {record.id: number for number, log in enumerate(logs) for record in log.ended},
                ),
                "events": lambda: event_rows(_in_time(chain.from_iterable(log.events for log in logs))),
                "preemptions": lambda: preemption_rows(_in_time(chain.from_iterable(log.losses for log in logs))),
            }
        super().__init__(makers)

    def __getitem__(self, name: str) -> Table:
        if name not in self:
            raise KeyError(f"a fleet keeps no table {name!r}: it is recorded replica by replica")
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        return name in self._makers


def _in_time(records: Any) -> list[Any]:
    return sorted(records, key=lambda record: record.time_ps)

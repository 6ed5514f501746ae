"""The tables of a run whose records were all kept in memory."""

from collections.abc import Callable

from kvsim.metrics.memory import AddressLog, MemoryRecorder
from kvsim.metrics.prefix.prompts import PromptLog
from kvsim.metrics.requests import RequestLog
from kvsim.metrics.tables.made import MadeTables
from kvsim.metrics.tables.rows import (
    MemoryRows,
    Table,
    address_rows,
    event_rows,
    preemption_rows,
    prompt_rows,
    request_rows,
    step_rows,
)


class Tables(MadeTables):
    """ "requests", "steps", "memory", "events" and "preemptions" of a run, each built once, on first use.

    And "addresses" and "prompts", where they were recorded. The columns are those of `columns.COLUMNS`.
    """

    def __init__(
        self,
        requests: RequestLog,
        memory: MemoryRecorder,
        addresses: AddressLog | None = None,
        prompts: PromptLog | None = None,
    ) -> None:
        makers: dict[str, Callable[[], Table]] = {
            "requests": lambda: request_rows(requests.ended),
            "steps": lambda: step_rows(memory.series),
            "memory": lambda: MemoryRows(memory.pool_slots, has_holes=memory.has_holes).of(
                memory.series, memory.rests, last=True
            ),
            "events": lambda: event_rows(requests.events),
            "preemptions": lambda: preemption_rows(requests.losses),
        }
        if addresses is not None:
            makers["addresses"] = lambda: address_rows(addresses)
        if prompts is not None:
            makers["prompts"] = lambda: prompt_rows(prompts)
        super().__init__(makers)

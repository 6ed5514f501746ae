"""What happens to a prefix cache from outside: warm starts and restarts."""

from collections.abc import Callable, Iterator
from heapq import merge
from itertools import count

from kvsim.engine.flushes import Flushes
from kvsim.scenario.schema.serving import FlushSettings
from kvsim.scenario.schema.settings import Settings


def flushes_of(settings: Settings) -> Callable[[], Flushes] | None:
    """Makes who empties the cache of one replica; None: nobody does."""
    flush = settings.engine.flush
    return None if flush is None else lambda: Flushes(_times_ps(flush), waits=flush.busy == "wait")


def _times_ps(flush: FlushSettings) -> Iterator[int]:
    every = count(flush.every, flush.every) if flush.every is not None else ()
    last_ps = None
    for time_ps in merge(sorted(flush.at or ()), every):
        if time_ps != last_ps:
            yield time_ps
        last_ps = time_ps


def cache_is_there(settings: Settings, caches: bool) -> None:
    """ValueError naming the key that means nothing where nothing is cached."""
    if caches:
        return
    for key, value in (("workload.warm", settings.workload.warm), ("engine.flush", settings.engine.flush)):
        if value is not None:
            raise ValueError(
                f"{key}: this run has no prefix cache; set allocator.prefix_caching: true, use a profile such as "
                f"vllm@0.33, or leave {key} out"
            )

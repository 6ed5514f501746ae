"""What one key alone cannot tell: names the catalogue does not know, and keys that contradict one another.

The checks look at plain values, before and whatever pydantic says, so that one load reports every mistake. A
value of the wrong type is left to pydantic.
"""

import math
from collections.abc import Iterator
from typing import Any

from kvsim.scenario.checks.fleet import fleet_mistakes
from kvsim.scenario.checks.serving import engine_mistakes, name_mistakes, timing_mistakes
from kvsim.scenario.checks.traffic import class_mistakes, workload_mistakes
from kvsim.scenario.messages import MISSING, NO_TEXT, TEXT, Mistake, Origins, alternatives, is_text
from kvsim.scenario.reading.loading import Plain


def check(data: Plain, origins: Origins) -> Iterator[Mistake]:
    """Yield every mistake between the keys of a scenario."""
    yield from _finite(data, "")
    yield from _written(data, "")
    yield from name_mistakes(data, origins)
    yield from engine_mistakes(data, origins)
    yield from timing_mistakes(data, origins)
    yield from fleet_mistakes(data)
    pool = data.get("pool")
    if isinstance(pool, dict) and len(pool) != 1:
        given = alternatives(sorted(pool)).replace(" or ", " and ") or "nothing"
        yield Mistake("pool", MISSING, f"{given} is given", "give exactly one of blocks, tokens or memory")
    workload = data.get("workload")
    if isinstance(workload, dict):
        yield from workload_mistakes(workload, "horizon" in data, origins)
        yield from class_mistakes(data.get("slo"), workload)


def _finite(value: Any, key: str) -> Iterator[Mistake]:
    if isinstance(value, dict):
        for word, inner in value.items():
            yield from _finite(inner, f"{key}.{word}" if key else word)
    elif isinstance(value, list):
        for inner in value:
            yield from _finite(inner, key)
    elif isinstance(value, float) and not math.isfinite(value):
        yield Mistake(key, value, "is not a finite number", "write a number, with its unit where it has one")


def _written(value: Any, key: str) -> Iterator[Mistake]:
    """Texts that no file can hold: halves of a character, as a wrong escape or a wrong encoding leaves them."""
    if isinstance(value, dict):
        for word, inner in value.items():
            yield from _written(inner, f"{key}.{word}" if key else word)
    elif isinstance(value, list):
        for inner in value:
            yield from _written(inner, key)
    elif isinstance(value, str) and not is_text(value):
        yield Mistake(key, ascii(value), NO_TEXT, TEXT)

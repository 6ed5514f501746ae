"""Where a real SGLang keeps its KV: the slots of every row after every pass, of three recorded cases.

Source: SGLang 0.5.23's own scheduler, radix tree and request rows, run without model or GPU over its index pools' rules
(`data/sglang/*.slots.jsonl`): single slots and pages of 4 and 16, one batch in flight and two, prompts in chunks and
mixed with decodes, prefixes shared, duplicates, evictions, retractions. Tolerance: none.
"""

import json
from pathlib import Path

import pytest

from kvsim.engine.replay.sglang.case import settings_of
from kvsim.engine.replay.sglang.stream import Stream
from kvsim.memory.radix.slots import SlotBook

pytestmark = pytest.mark.oracle

DATA = Path(__file__).parent / "data" / "sglang"
CASES = sorted(DATA.glob("*.slots.jsonl"))


def recorded(case):
    """The rows after each pass, as the lines say how they change."""
    rows = {}
    for line in case.read_text(encoding="utf-8").splitlines():
        for name, change in json.loads(line)["rows"].items():
            if change is None:
                del rows[name]
            else:
                kept, runs = change
                behind = [slot for first, slots in runs for slot in range(first, first + slots)]
                rows[name] = rows.get(name, [])[:kept] + behind
        yield {name: list(row) for name, row in rows.items()}


def ours(case):
    """The same of kvsim's own scheduler and tree: edges that a row protects, and behind them its own slots."""
    given = json.loads(case.with_name(case.name.replace(".slots.jsonl", ".json")).read_text(encoding="utf-8"))
    stream = Stream(settings_of(given), given["requests"])
    scheduler, pool = stream.scheduler, stream.tree.pool
    book = pool.book = SlotBook(pool.slots, pool.page_size)
    planned, found = scheduler.plan, []

    def plan():
        made = planned()
        rows = {}
        for telling in stream.tellings.values():
            request = telling.request
            if request.holds:
                edges = reversed(request.locked.path() if request.locked else [])
                slots = [slot for edge in edges for slot in book.edges[edge]] + list(book.rows.get(request, ()))
                rows[request.name] = slots[: request.committed]
        found.append(rows)
        return made

    scheduler.plan = plan
    for _ in stream.records():
        pass
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.removesuffix(".slots.jsonl"))
def test_every_row_has_the_slots_that_sglang_gave_it_after_every_pass(case):
    theirs = list(recorded(case))
    for number, (row, there) in enumerate(zip(ours(case), theirs, strict=True)):
        assert row == there, number


def test_the_recordings_meet_single_slots_and_pages_shared_slots_and_slots_that_come_again():
    assert len(CASES) == 3
    for case in CASES:
        shared, owners = 0, {}
        for rows in recorded(case):
            held = [slot for row in rows.values() for slot in row]
            shared += len(held) > len(set(held))
            for name, row in rows.items():
                for slot in row:
                    owners.setdefault(slot, set()).add(name)
        assert shared > 10
        assert sum(len(names) > 1 for names in owners.values()) > 100

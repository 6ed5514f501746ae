"""The address recorder: its changes, replayed slot by slot, give the classes of the step records and touch nothing.

The step records count by the allocators' own books and the engine's ends, never by place; that both agree at every
step means that every slot is in one place, of one class, and counted once.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kvsim.engine.run import simulate
from kvsim.errors import RunError
from kvsim.memory.host import HostPool
from kvsim.metrics.memory import SERIES
from kvsim.request import Request
from kvsim.scheduling.batching.queueing import PREEMPTIONS
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.scheduling.prefill_first import PrefillFirstScheduler
from kvsim.scheduling.static import StaticScheduler
from kvsim.step import CLASSES
from tests.effort import examples
from tests.laws.cases import CaseTiming, allocator_of, everything, run_case
from tests.laws.strategies import scenarios
from tests.laws.test_prefix_caching import cases as caching_cases
from tests.laws.test_region_policies import POLICIES
from tests.laws.test_virtual import in_pages
from tests.laws.test_vllm_scheduler import followed_cases

FREE = CLASSES.index("free")
BY_OWNER = ("used", "reserved", "internal", "dead", "moving", "cached")
SCHEDULERS = {
    "continuous": (ContinuousScheduler, {}),
    "continuous, largest": (ContinuousScheduler, {"victim": "largest"}),
    "continuous, abort": (ContinuousScheduler, {"preemption": "abort"}),
    "continuous, never": (ContinuousScheduler, {"preemption": "never"}),
    "continuous, swap": (ContinuousScheduler, {"preemption": "swap"}),
    "prefill first": (PrefillFirstScheduler, {}),
    "prefill first, swap": (PrefillFirstScheduler, {"preemption": "swap"}),
    "static": (StaticScheduler, {}),
}


def replayed(log, pool_slots):
    """Yields (time, class of each slot, sequence of each slot) after the last change of each time."""
    kinds, sequences = np.full(pool_slots, FREE), np.zeros(pool_slots, dtype=int)
    at = 0
    while at < len(log):
        now_ps = log.time_ps[at]
        while at < len(log) and log.time_ps[at] == now_ps:
            place = slice(log.start[at], log.start[at] + log.slots[at])
            assert 0 <= place.start < place.stop <= pool_slots
            kinds[place], sequences[place] = log.kind[at], log.sequence[at]
            at += 1
        yield now_ps, kinds, sequences


def holds(log):
    """Every step record, every idle stretch and the end are what the changes up to then add up to."""
    memory = log.recording.memory
    pool_slots, width = memory.pool_slots, len(SERIES)
    rows = [
        dict(zip(SERIES, memory.series[at : at + width], strict=True)) for at in range(0, len(memory.series), width)
    ]
    expected, over_ps = {}, 0
    for row in rows:
        expected.setdefault(over_ps, None)
        expected[row["start_ps"]] = row
        over_ps = row["start_ps"] + row["duration_ps"]
    expected.setdefault(over_ps, None)
    changes = replayed(log.recording.addresses.log, pool_slots)
    empty = dict.fromkeys((*CLASSES, "rounding"), 0) | {"free": pool_slots}
    coming, counts = next(changes, None), np.bincount([FREE], minlength=len(CLASSES)) * pool_slots
    for now_ps, row in expected.items():
        if row is None:
            stayed = memory.rests.get(now_ps, 0)
            row = empty | {"cached": stayed, "free": pool_slots - stayed}
        while coming is not None and coming[0] <= now_ps:
            counts = np.bincount(coming[1], minlength=len(CLASSES))
            coming = next(changes, None)
        found = dict(zip(CLASSES, counts.tolist(), strict=True))
        assert {name: found[name] for name in BY_OWNER} == {name: row[name] for name in BY_OWNER}, now_ps
        assert found["external"] == row["rounding"]
        assert found["external"] + found["free"] == row["external"] + row["free"]
    assert coming is None


def agrees(case, run=run_case):
    try:
        plain = run(case, stepwise=True)
    except RunError:  # what can never be admitted is another law's matter
        assume(False)
    recorded = run(case, stepwise=False, addresses=True)
    holds(recorded)
    assert everything(recorded) == everything(plain)
    assert recorded.recording.memory.series == plain.recording.memory.series
    assert plain.recording.addresses is None


@pytest.mark.parametrize("policy", POLICIES)
def test_regions_lie_where_the_records_count_them(policy):
    name, options = POLICIES[policy]

    @settings(max_examples=examples(40))
    @given(scenarios(allocators=(name,)))
    def agree(case):
        own = {"chunk": case["chunk"]} if "chunk" in options else {}
        agrees(case | {"options": options | own})

    agree()


@settings(max_examples=examples(250))
@given(scenarios(allocators=("paged",)))
def test_blocks_add_up_to_what_the_records_count(case):
    agrees(case)


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_blocks_that_are_shared_and_cached_add_up_to_what_the_records_count(preemption):
    @settings(max_examples=examples(25))
    @given(caching_cases("prefix", preemption))
    def agree(case):
        agrees(case)

    agree()


@settings(max_examples=examples(50))
@given(followed_cases())
def test_blocks_of_vllms_scheduler_add_up_with_one_batch_in_flight_and_with_two(case):
    agrees(case)


@settings(max_examples=examples(60))
@given(scenarios(allocators=("paged",)), st.sampled_from([1, 3, 16, 300]), st.integers(1, 6))
def test_page_rows_add_up_to_what_the_records_count(case, page_tokens, rows):
    agrees(in_pages(case, page_tokens, rows, mapped_ahead=True))


def run_scheduled(case, *, stepwise, addresses=False):
    kind, options = SCHEDULERS[case["scheduler"]]
    allocator = allocator_of(case)
    if options.get("preemption") == "swap":
        options = options | {"host": HostPool(case["host_slots"])}
    scheduler = kind(
        allocator,
        max_num_seqs=case["max_num_seqs"],
        max_num_batched_tokens=max(case["max_num_batched_tokens"], case["max_model_len"]),
        max_model_len=case["max_model_len"],
        **options,
    )
    return simulate(
        iter(case["requests"]),
        scheduler,
        CaseTiming(case["step_time"]),
        max_model_len=case["max_model_len"],
        horizon_ps=case["horizon_ps"],
        stepwise=stepwise,
        check=True,
        addresses=addresses,
    )


@st.composite
def sampled(draw, allocators=("paged", "contiguous", "reserve")):
    """A case in which some requests ask for several samples of their prompt."""
    case = draw(scenarios(allocators=allocators))
    requests = []
    for request in case["requests"]:
        more = draw(st.sampled_from([(), (), (3,), (1, 20), (7, 7, 2)]))
        fields = {name: getattr(request, name) for name in Request.__dataclass_fields__}
        requests.append(Request(**fields | {"more_outputs": more}))
    seqs = max(case["max_num_seqs"], 4)
    return case | {
        "requests": requests,
        "max_num_seqs": seqs,
        "max_num_batched_tokens": case["max_num_batched_tokens"] + seqs,
        "host_slots": draw(st.sampled_from([0, 40, 1000])),
    }


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_samples_that_share_blocks_and_everyone_who_is_preempted_add_up_too(scheduler):
    @settings(max_examples=examples(120))
    @given(sampled())
    def agree(case):
        agrees(case | {"scheduler": scheduler}, run=run_scheduled)

    agree()

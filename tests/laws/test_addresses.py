"""The address recorder: its changes, replayed slot by slot, give the classes of the step records and touch nothing.

The step records count by the allocators' own books and the engine's ends, never by place; that both agree at every
step means that every slot is in one place, of one class, and counted once.
"""

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kvsim.content import Content, Run, own_stream
from kvsim.engine.addresses.tree import TreeLayout
from kvsim.engine.run import simulate
from kvsim.errors import RunError
from kvsim.memory.host import HostPool
from kvsim.memory.radix.slots import SlotBook
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
from tests.laws.test_cold_and_warm import KINDS, outside, run_with
from tests.laws.test_prefix_caching import cases as caching_cases
from tests.laws.test_region_policies import POLICIES
from tests.laws.test_sglang_scheduler import sglang_cases
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
    # A cache is warm before the first step, or emptied while nothing runs.
    expected = {now_ps: expected.get(now_ps) for now_ps in sorted({*expected, *memory.rests})}
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


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_rows_and_the_tree_add_up_to_what_the_records_count(preemption):
    @settings(max_examples=examples(20))
    @given(caching_cases("radix", preemption))
    def agree(case):
        agrees(case)

    agree()


ALONE = {
    "scheduler": "sglang",
    "allocator": "prefix",
    "pool_slots": 107,
    "block_size": 1,
    "max_running_requests": 2,
    "chunked_prefill_size": None,
    "schedule_policy": "fcfs",
    "eviction": "lru",
    "enable_mixed_chunk": False,
    "overlap": True,
    "max_num_batched_tokens": 2,
    "max_model_len": 64,
    "horizon_ps": None,
    "step_time": {"base_ps": 1, "token_ps": 0, "context_ps": 0, "copied_ps": 0},
}
"""SGLang's scheduler, but for the requests."""


def crowd(seed):
    """A case over SGLang's scheduler in which the pool is short: long outputs, and prompts that begin alike."""
    draw = Random(seed)
    requests, now_ps = [], 0
    for number in range(12):
        now_ps += draw.choice([0, 3, 9])
        prompt, output = draw.randint(4, 12), draw.randint(20, 40)
        said = draw.choice([0, prompt // 2, prompt])
        content = Content([Run(draw.randint(0, 1), 0, said), Run(own_stream(number), said, prompt - said)])
        requests.append(Request(number, now_ps, prompt, output, max_tokens=output, content=content))
    return ALONE | {
        "requests": requests,
        "pool_slots": draw.choice([72, 96]),
        "block_size": draw.choice([1, 4]),
        "chunked_prefill_size": 8,
        "max_running_requests": 12,
        "max_num_batched_tokens": 64,
        "overlap": draw.choice([False, True]),
        "enable_mixed_chunk": draw.choice([False, False, True]),
    }


@settings(max_examples=examples(40))
@given(sglang_cases() | st.integers(0, 1 << 20).map(crowd))
def test_rows_of_sglangs_scheduler_add_up_with_one_batch_in_flight_and_with_two(case):
    agrees(case)


def test_a_request_that_ends_where_sglang_would_end_it_owns_no_slot_beyond():
    """With two batches in flight whoever ends by itself is scheduled once more, but not at the most it may make."""
    case = ALONE | {"requests": [Request(0, 0, 1, 5), Request(1, 0, 58, 4)]}
    agrees(case)
    log = run_case(case, stepwise=True, addresses=True).recording.addresses.log
    beyond = {owner for owner, kind in zip(log.sequence, log.kind, strict=True) if CLASSES[kind] == "internal"}
    assert beyond == {0}


def test_the_cases_over_a_tree_meet_all_that_moves_slots(monkeypatch):
    """The law above would hold of runs in which nothing is ever found, cut, evicted or retracted as well."""
    met = Counter()

    class Book(SlotBook):
        def hand_over(self, row, found, edge, new):
            met["duplicates"] += found > 0
            super().hand_over(row, found, edge, new)

        def cut(self, edge, upper, tokens):
            met["cut"] += 1
            super().cut(edge, upper, tokens)

        def evict(self, edge):
            met["evicted"] += 1
            super().evict(edge)

    def ahead(layout, row, written):
        met["handed over in flight"] += 1
        put_ahead(layout, row, written)

    put_ahead = TreeLayout._put_ahead
    monkeypatch.setattr("kvsim.engine.addresses.tree.layout.SlotBook", Book)
    monkeypatch.setattr(TreeLayout, "_put_ahead", ahead)

    for case in map(crowd, range(12)):
        log = run_case(case, stepwise=False, check=False, addresses=True)
        met["retracted"] += any(ended.preemptions for ended in log.recording.requests.ended)
        met["pages"] += case["block_size"] > 1
    wanted = ("duplicates", "cut", "evicted", "handed over in flight", "retracted", "pages")
    assert all(met[what] >= 2 for what in wanted), met


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


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_cached_before_the_run_lies_somewhere_and_an_emptied_cache_is_free(kind):
    @settings(max_examples=examples(16))
    @given(KINDS[kind], outside())
    def agree(case, what):
        recorded = run_with(case | {"caching": True}, **what, stepwise=False, addresses=True)
        holds(recorded)
        assert everything(recorded) == everything(run_with(case | {"caching": True}, **what, stepwise=True))

    agree()


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

"""What happens when a running request cannot be extended: abort, never, and who the victim is."""

import pytest

from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.no_cache import NoCacheAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.request import Request
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.scheduling.prefill_first import PrefillFirstScheduler
from kvsim.scheduling.static import StaticScheduler
from tests.scheduling import stories
from tests.scheduling.stories import ends, events, ids, records, serve, step, submit

Always = pytest.mark.parametrize("kind", [ContinuousScheduler, PrefillFirstScheduler, StaticScheduler])


def test_with_abort_whoever_cannot_grow_fails_itself():
    """6 slots for two of 3: 0 finds none and is gone, 1 grows into what it leaves."""
    requests = [Request(0, 0, 3, 4), Request(1, 0, 3, 4)]
    log = serve(requests, lambda: stories.scheduler(pool=6, preemption="abort"))
    assert ends(log) == {0: ("aborted", 1000, 1), 1: ("finished", 4000, 4)}
    assert events(log) == [(1000, 0, "capacity", "abort")]


@Always
def test_with_abort_nobody_is_preempted_and_a_lone_one_has_outgrown_the_pool(kind):
    requests = [Request(0, 0, 3, 4), Request(1, 0, 3, 4), Request(2, 5000, 3, 9)]
    log = serve(requests, lambda: stories.scheduler(kind, pool=6, preemption="abort"))
    assert log.recording.requests.preemptions == 0
    assert events(log)[-1] == (9000, 2, "outgrown", "abort")
    assert records(log)[2].generated_tokens == 4


@Always
@pytest.mark.parametrize(
    "allocator",
    [
        lambda: PagedAllocator(30, block_size=1),
        lambda: PagedAllocator(32, block_size=4),
        lambda: ContiguousAllocator(30, chunk=1),
        lambda: ContiguousAllocator(30, growth="cat"),
        lambda: ContiguousAllocator(32, growth="double", fit="buddy"),
        lambda: ReserveAllocator(30, max_model_len=10),
    ],
    ids=["1-slot blocks", "4-slot blocks", "chunks", "cat", "buddy", "reserve"],
)
def test_with_never_nobody_is_preempted_and_all_end(kind, allocator):
    requests = [Request(number, 0, 4, 5, max_tokens=6) for number in range(6)]
    log = serve(
        requests, lambda: stories.scheduler(kind, allocator=allocator(), preemption="never", max_model_len=10), limit=10
    )
    assert log.recording.requests.preemptions == 0
    assert {record.end for record in records(log).values()} == {"finished"}
    assert {(cause, outcome) for _, _, cause, outcome in events(log)} <= {
        ("capacity", "wait"),
        ("fragmentation", "wait"),
    }


def test_with_never_a_client_that_sets_no_limit_counts_with_the_models():
    engine = stories.scheduler(pool=30, preemption="never", max_model_len=20)
    submit(engine, 4, 4)
    assert ids(step(engine).admitted) == [0]
    [blocked] = step(engine).blocked
    assert blocked.short == ("capacity", 20, 10, 10)


def test_with_never_who_could_reach_beyond_the_pool_is_refused():
    log = serve(
        [Request(0, 0, 4, 2, max_tokens=30), Request(1, 0, 4, 2, max_tokens=4)],
        lambda: stories.scheduler(pool=30, preemption="never", max_model_len=64),
    )
    assert ends(log) == {0: ("rejected", 0, 0), 1: ("finished", 2000, 2)}
    assert log.recording.requests.events == [(0, 0, "never", "reject", 34, 30, 30)]


def test_where_nothing_is_kept_nothing_can_run_short():
    requests = [Request(number, 0, 40, 4) for number in range(4)]
    log = serve(requests, lambda: stories.scheduler(allocator=NoCacheAllocator()))
    assert ends(log) == dict.fromkeys(range(4), ("finished", 4000, 4))
    assert events(log) == []
    assert log.recording.memory.totals.slots_ps == [0] * 8


# Victims: 0 has written most, 2 least; 1 arrived last by priority.


def victim(policy, pool=15):
    """Who goes when three of 6, 5 and 4 tokens want a slot each and there is none."""
    engine = stories.scheduler(pool=pool, victim=policy)
    sequences = submit(engine, 6, 5, 4)
    sequences[1].priority = 1
    step(engine)
    return ids(v.sequence for v in step(engine).preempted)


@pytest.mark.parametrize(
    ("policy", "who"), [("last", [2]), ("lowest-priority", [1]), ("largest", [1]), ("least-work", [2])]
)
def test_the_victim_is_who_the_policy_names(policy, who):
    assert victim(policy) == who


def test_the_first_admitted_is_never_the_largest_victim_unless_it_is_alone():
    """Two prompts of 6 in chunks of 4 on 7 slots: were each preempted when it is the larger, none would ever end."""
    log = serve(
        [Request(0, 0, 6, 2), Request(1, 0, 6, 2)],
        lambda: stories.scheduler(pool=7, budget=4, seqs=4, victim="largest", reserve_full_isl=False),
    )
    assert {record.end for record in records(log).values()} == {"finished"}
    assert records(log)[0].preemptions == 0

"""Compaction, told by hand: where no hole fits although enough is free, everything slides down, and that is copied."""

from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.request import Sequence
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.step import Ask, Blocked, Chunk, Grant, PoolUse, Short
from tests.memory.test_contiguous_growth import decoding


def compacting(slots: int, **options) -> ContiguousAllocator:
    return ContiguousAllocator(slots, compaction="on-failure", **({"chunk": 10} | options))


def test_a_newcomer_that_fits_no_hole_is_let_in_by_sliding_what_lies_above_the_holes():
    allocator = compacting(50)
    held = decoding(allocator, 10, 10, 6, 10, 8)
    allocator.release(held[1])
    allocator.release(held[3])
    newcomer = Sequence(9, 20, None, tokens=20)
    got = allocator.acquire([Ask(newcomer, 20, admit=True)])
    # The third and the fifth region move, with 6 and 8 written slots; the first lies at 0 already.
    short = Short("fragmentation", need_slots=20, free_slots=20, largest_hole_slots=10)
    assert got == Grant(copied_slots=14, compacted=(Blocked(newcomer, short, "compact"),))
    # A slide has no second place: nothing is moving.
    assert allocator.usage() == PoolUse(24, 26, 0, 0, 0, 0, 0)
    assert not allocator.settle([Chunk(newcomer, 20, 0)])
    allocator.audit([held[0], held[2], held[4], newcomer])


def test_what_is_short_of_capacity_is_not_compacted():
    allocator = compacting(50)
    held = decoding(allocator, *[10] * 5)
    allocator.release(held[1])
    allocator.release(held[3])
    before = allocator.usage()
    newcomer = Sequence(9, 21, None, tokens=21)
    assert allocator.acquire([Ask(newcomer, 21, admit=True)]) == Short("capacity", 30, 20, 10)
    assert allocator.usage() == before


def test_without_compaction_the_same_request_waits():
    allocator = ContiguousAllocator(50, chunk=10)
    held = decoding(allocator, *[10] * 5)
    allocator.release(held[1])
    allocator.release(held[3])
    newcomer = Sequence(9, 20, None, tokens=20)
    assert allocator.acquire([Ask(newcomer, 20, admit=True)]) == Short("fragmentation", 20, 20, 10)


def test_the_region_that_must_grow_slides_last_and_grows_where_it_comes_to_lie():
    allocator = compacting(60)
    held = decoding(allocator, *[10] * 6)
    allocator.release(held[1])
    allocator.release(held[4])
    got = allocator.acquire([Ask(held[2], 11)])
    # 30..39 slides to 10, 50..59 to 20, and 20..29 goes to 30..39 and grows to 49: thirty slots are copied.
    assert got == Grant(30, compacted=(Blocked(held[2], Short("fragmentation", 20, 20, 10), "compact"),))
    assert allocator.usage() == PoolUse(40, 10, 0, 0, 0, 10, 10)
    allocator.audit([held[0], held[2], held[3], held[5]])


def test_a_compaction_for_one_ask_is_undone_when_another_cannot_be_met():
    allocator = compacting(50)
    held = decoding(allocator, 10, 10, 6, 10, 8)
    allocator.release(held[1])
    allocator.release(held[3])
    first, second = (Sequence(number, 20, None, tokens=20) for number in (9, 10))
    asks = [Ask(one, 20, admit=True) for one in (first, second)]
    assert allocator.acquire(asks) == Short("capacity", 20, 0, 0)
    assert allocator.usage() == PoolUse(24, 6, 0, 0, 0, 20, 10)
    allocator.audit([held[0], held[2], held[4]])


def test_what_is_being_copied_away_slides_too_and_is_held_until_the_step_is_over():
    allocator = compacting(80)
    held = decoding(allocator, *[10] * 6)  # 0..59
    assert allocator.acquire([Ask(held[0], 11)]) == Grant(10)  # to 60..79; 0..9 is held
    for number in (1, 3):
        allocator.release(held[number])
    newcomer = Sequence(9, 20, None, tokens=20)
    got = allocator.acquire([Ask(newcomer, 20, admit=True)])
    # Three regions of ten slide, and the twenty slots with the ten written ones of the first; not what it left.
    assert got.copied_slots == 40
    assert allocator.usage() == PoolUse(used=40, unwritten=30, dead=0, moving=10, cached=0, free=0, largest_hole=0)
    live = [held[0], held[2], held[4], held[5], newcomer]
    allocator.audit(live)
    assert allocator.settle([Chunk(newcomer, 20, 0)])
    assert allocator.usage().free == 10
    allocator.audit(live)


def test_what_a_concatenated_region_gives_up_itself_is_part_of_the_hole_it_needs():
    allocator = compacting(50, growth="cat", tensors=5)
    held = decoding(allocator, 20, 10, 10, 10)  # 0..49
    allocator.release(held[1])
    # 21 slots and a tensor of 4 go into 0..19 and 20..29 together: nothing else has to move.
    assert allocator.acquire([Ask(held[0], 21)]) == Grant(20)
    assert allocator.usage() == PoolUse(40, 1, 0, 4, 0, 5, 5)
    allocator.audit([held[0], held[2], held[3]])


def test_concatenation_slides_the_others_together_where_no_hole_has_room_for_the_new_region():
    allocator = compacting(62, growth="cat", tensors=5)
    held = decoding(allocator, *[10] * 6)  # 0..59; 60 and 61 are free
    allocator.release(held[0])
    allocator.release(held[4])
    got = allocator.acquire([Ask(held[2], 11)])
    # Eleven slots and a tensor of 2, of 22 free and its own 10, which is between neighbours and no longer than others.
    short = Short("fragmentation", need_slots=13, free_slots=32, largest_hole_slots=10)
    # Three others and it slide, to 0, 10, 20 and 30; then it is concatenated: fifty slots are copied.
    assert got == Grant(50, compacted=(Blocked(held[2], short, "compact"),))
    assert allocator.usage() == PoolUse(40, 1, 0, 2, 0, 19, 19)
    allocator.audit([held[1], held[2], held[3], held[5]])


def test_the_scheduler_passes_on_a_compaction_and_charges_what_slid_to_the_step():
    allocator = compacting(50, chunk=1)
    scheduler = ContinuousScheduler(allocator, max_num_seqs=8, max_num_batched_tokens=100)
    batch = [Sequence(number, 10, None) for number in range(3)]
    for sequence in batch:
        scheduler.submit(sequence)
    scheduler.complete(scheduler.plan())
    scheduler.leave(batch[1])
    newcomer = Sequence(3, 27, None)
    scheduler.submit(newcomer)
    # The others grow in place to 0..10 and 20..30. Free are 11..19 and 31..49: enough for 27, but apart.
    plan = scheduler.plan()
    assert plan.blocked == [Blocked(newcomer, Short("fragmentation", 27, 28, 19), "compact")]
    assert plan.admitted == plan.granted == [newcomer]
    assert plan.copied_slots == 10
    scheduler.complete(plan)
    allocator.audit(scheduler.live())

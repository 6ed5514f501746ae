"""Both forms of the block phases answer what one finds by walking every sequence through every step."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.memory.phases import TABLE_LIMIT, PhaseCounts, PhaseTable, phases_of

FORMS = [PhaseTable, PhaseCounts]


def filled(form, size, members):
    phases = form(size)
    for phase in members:
        phases.add(phase)
    return phases


def unwritten(size, phase, clock):
    """A sequence that takes a block at `phase` owns a whole one then, and one slot less each step."""
    left = size
    while clock % size != phase:
        clock -= 1
        left -= 1
    return left


@st.composite
def sets(draw, largest):
    size = draw(st.one_of(st.integers(1, 5), st.integers(1, largest)))
    # Few phases that many share, or many that few do.
    phase = st.integers(0, size - 1) if draw(st.booleans()) else st.sampled_from(sorted({0, size // 2, size - 1}))
    return size, draw(st.lists(phase, min_size=1, max_size=12)), draw(st.integers(0, 3 * size))


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=150, deadline=None)
@given(case=sets(64), steps=st.integers(1, 150), a=st.integers(0, 10**13), b=st.integers(0, 10**9), data=st.data())
def test_every_answer_is_that_of_single_steps(form, case, steps, a, b, data):
    size, members, clock = case
    phases = filled(form, size, members)
    crossings = [sum((clock + step) % size == phase for phase in members) for step in range(steps)]
    levels = [sum(unwritten(size, phase, clock + step) for phase in members) for step in range(steps)]
    assert phases.count == phases.recount() == len(members)
    assert [phases.crossing(clock + step) for step in range(steps)] == crossings
    assert [phases.blocks(clock, n) for n in range(steps + 1)] == [sum(crossings[:n]) for n in range(steps + 1)]
    assert phases.quiet(clock, steps) == next((n for n, crossing in enumerate(crossings) if crossing), steps)
    blocks = data.draw(st.integers(0, sum(crossings) + 1))
    assert phases.served(clock, steps, blocks) == max(n for n in range(steps + 1) if sum(crossings[:n]) <= blocks)
    weighted = sum((a + b * step) * level for step, level in enumerate(levels))
    assert phases.unwritten_sum(clock, steps, a, b) == weighted
    first = data.draw(st.integers(0, steps - 1))
    assert phases.unwritten_peak(clock + first, steps - first) == max(levels[first:])


@settings(max_examples=150, deadline=None)
@given(
    case=sets(256),
    steps=st.integers(1, 2000),
    blocks=st.integers(0, 100),
    a=st.integers(0, 10**13),
    b=st.integers(0, 10**9),
)
def test_the_table_and_the_counts_agree_over_long_leaps(case, steps, blocks, a, b):
    size, members, clock = case
    table, counts = (filled(form, size, members) for form in FORMS)
    assert table.blocks(clock, steps) == counts.blocks(clock, steps)
    assert table.served(clock, steps, blocks) == counts.served(clock, steps, blocks)
    assert table.quiet(clock, steps) == counts.quiet(clock, steps)
    assert table.unwritten_sum(clock, steps, a, b) == counts.unwritten_sum(clock, steps, a, b)
    assert table.unwritten_peak(clock, steps) == counts.unwritten_peak(clock, steps)


@pytest.mark.parametrize("form", FORMS)
def test_whoever_leaves_is_counted_no_more(form):
    phases = filled(form, 8, [3, 3, 5])
    for phase in (3, 5):
        phases.remove(phase)
    assert (phases.count, phases.recount()) == (1, 1)
    assert [phases.crossing(clock) for clock in range(8)] == [0, 0, 0, 1, 0, 0, 0, 0]
    phases.remove(3)
    assert (phases.count, phases.recount(), phases.quiet(0, 99), phases.served(0, 99, 0)) == (0, 0, 99, 99)
    assert phases.blocks(0, 99) == phases.unwritten_sum(0, 99, 7, 3) == 0


def test_one_request_in_pages_of_2048_tokens_is_a_sawtooth_from_2048_down_to_1():
    phases = filled(PhaseCounts, 2048, [0])
    whole = 2048 * 2049 // 2
    assert phases.unwritten_sum(0, 2048, 1, 0) == whole
    assert phases.unwritten_sum(0, 10 * 2048, 1, 0) == 10 * whole
    assert phases.unwritten_sum(2047, 2, 1, 0) == 1 + 2048
    assert phases.unwritten_peak(1, 2047) == 2047
    assert phases.unwritten_peak(1, 2048) == 2048


@pytest.mark.parametrize(("size", "form"), [(1, PhaseTable), (TABLE_LIMIT, PhaseTable), (257, PhaseCounts)])
def test_long_blocks_are_kept_without_a_table(size, form):
    assert type(phases_of(size)) is form

"""How many requests are in the system, from arrivals and ends alone, and the sums over the measured window."""

from hypothesis import given
from hypothesis import strategies as st

from kvsim.metrics.window import N_CLASSES, Occupancy, Totals
from kvsim.step import CLASSES


def test_requests_in_the_system_are_integrated_over_time():
    occupancy = Occupancy()
    occupancy.arrive(10)
    occupancy.arrive(30)  # one request for 20
    occupancy.leave(60)  # two for 30
    assert occupancy.reading(100) == 20 + 2 * 30 + 40
    assert occupancy.count == 1


def test_reading_twice_at_one_moment_changes_nothing():
    occupancy = Occupancy()
    occupancy.arrive(0)
    assert (occupancy.reading(7), occupancy.reading(7), occupancy.stay_ps) == (7, 7, 7)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=20))
def test_the_integral_is_the_sum_of_the_stays(stays):
    occupancy = Occupancy()
    moments = [(start, 0, occupancy.arrive) for start, _ in stays]
    moments += [(start + length, 1, occupancy.leave) for start, length in stays]
    for time, _, verb in sorted(moments, key=lambda moment: moment[:2]):
        verb(time)
    assert occupancy.count == 0
    assert occupancy.stay_ps == sum(length for _, length in stays)


def test_there_is_a_sum_and_a_peak_for_each_class():
    assert len(Totals().slots_ps) == len(Totals().peaks) == N_CLASSES == len(CLASSES) == 8


def test_a_copy_of_the_sums_is_frozen():
    totals = Totals()
    totals.time_ps, totals.running_ps, totals.stay_ps, totals.tokens, totals.max_running = 1, 2, 3, 4, 5
    totals.slots_ps[3], totals.peaks[2] = 6, 7
    twin = totals.copy()
    for name in Totals.__slots__:
        assert getattr(twin, name) == getattr(totals, name)
    totals.slots_ps[3] = totals.peaks[2] = 0
    totals.time_ps = 0
    assert (twin.slots_ps[3], twin.peaks[2], twin.time_ps) == (6, 7, 1)

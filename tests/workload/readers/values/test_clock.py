"""Wall-clock times are read exactly, whatever the digits and the zone."""

from datetime import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.workload.readers.values.clock import WallClock

START = "2023-11-16 18:15:46.6805900"


def ps_between(first, second):
    clock = WallClock()
    start = clock.read_ps(first)
    return clock.read_ps(second) - start


@pytest.mark.parametrize(
    ("later", "ps"),
    [
        ("2023-11-16 18:15:46.6805901", 10**5),
        ("2023-11-16 18:15:46.680590000001", 1),
        ("2023-11-16 18:15:47", 319_410 * 10**6),
        ("2023-11-16T18:16:46.6805900", 60 * 10**12),
        ("2023-11-17 18:15:46.68059", 86_400 * 10**12),
        ("2024-03-01 18:15:46.6805900", 106 * 86_400 * 10**12),
        ("2023-11-16 18:15:46.6805899", -(10**5)),
    ],
)
def test_differences_are_exact_to_the_last_digit(later, ps):
    assert ps_between(START, later) == ps


@pytest.mark.parametrize("zone", ["+00:00", "Z", "+0000", "-08:00"])
def test_a_zone_that_all_rows_share_changes_no_difference(zone):
    assert ps_between(f"2024-05-10 00:00:00.009930{zone}", f"2024-05-10T00:00:01.5{zone}") == 1_490_070 * 10**6


@pytest.mark.parametrize(
    ("zoned", "utc"),
    [
        ("2024-05-10 02:00:00.5+02:00", "2024-05-10 00:00:00.5Z"),
        ("2024-05-09 18:30:00-05:30", "2024-05-10 00:00:00Z"),
    ],
)
def test_zones_are_offsets_from_one_another(zoned, utc):
    assert ps_between(zoned, utc) == 0
    assert ps_between(utc, zoned) == 0


moments = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2100, 1, 1))


@given(st.lists(st.tuples(moments, st.sampled_from([" ", "T"])), min_size=2, max_size=20))
def test_it_agrees_with_the_standard_library_on_any_sequence_of_times(sequence):
    clock = WallClock()
    got = [clock.read_ps(moment.isoformat(sep)) for moment, sep in sequence]
    first = sequence[0][0]
    for (moment, _), ps in zip(sequence, got, strict=True):
        gap = moment - first
        exact = Fraction(gap.days * 86_400 + gap.seconds) + Fraction(gap.microseconds, 10**6)
        assert ps - got[0] == exact * 10**12


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty cell"),
        ("  ", "empty cell"),
        ("yesterday", "not a time"),
        ("nan", "not a time"),
        ("1700158546.68", "not a time"),
        ("16/11/2023 18:15:46", "not a time"),
        ("2023-11-16 18:15", "not a time"),
        ("2023-11-16 18:15:46.", "not a time"),
        ("2023-11-16 18:15:46.68x", "not a time"),
        ("2023-11-16 18:15:4६", "not a time"),
        ("2023-11-16 18:15:+1.5", "not a time"),
        ("2023-02-30 18:15:46", "no such day"),
        ("2023-11-16 24:15:46", "no such time of day"),
        ("2023-11-16 18:60:46", "no such time of day"),
        ("2023-11-16 18:15:60", "no such time of day"),
        ("2023-11-16 18:15:46.0000000000001", "finer than a picosecond"),
        ("2023-11-16 18:15:46+99:99", "no such zone"),
        ("2023-11-16 18:15:46-18:60", "no such zone"),
        ("2023-11-16 18:15:46Z", "has a zone where earlier rows have none"),
    ],
)
def test_what_is_no_time_is_refused_with_the_reason(text, reason):
    clock = WallClock()
    clock.read_ps(START)
    with pytest.raises(ValueError, match=f"^{reason}$"):
        clock.read_ps(text)


def test_a_row_without_a_zone_among_rows_with_one_is_refused():
    clock = WallClock()
    clock.read_ps("2024-05-10 00:00:00.009930+00:00")
    with pytest.raises(ValueError, match="no zone where earlier rows do"):
        clock.read_ps("2024-05-10 00:00:00.009930")

"""Sizes, durations, rates and shares: what is read, what is refused, and that texts read back exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.units import (
    duration_text,
    format_duration,
    format_rate,
    format_share,
    format_size,
    parse_duration,
    parse_rate,
    parse_seconds,
    parse_share,
    parse_size,
    rate_text,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("80GiB", 80 * 2**30),
        ("16GB", 16 * 10**9),
        ("512MiB", 512 * 2**20),
        ("0.5 GiB", 2**29),
        ("1e3kB", 10**6),
        ("0B", 0),
    ],
)
def test_a_size_is_read_exactly(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "duration_ps"),
    [
        ("50ms", 50 * 10**9),
        ("2s", 2 * 10**12),
        ("1.5 min", 90 * 10**12),
        ("1h", 3600 * 10**12),
        ("10us", 10**7),
        ("7ps", 7),
        ("0.1s", 10**11),
    ],
)
def test_a_duration_is_read_as_whole_picoseconds(text: str, duration_ps: int) -> None:
    assert parse_duration(text) == duration_ps


def test_seconds_are_the_same_duration() -> None:
    assert parse_seconds("50ms") == 0.05


@pytest.mark.parametrize(
    ("text", "per_s"), [("8/s", 8.0), ("480/min", 8.0), ("0.5/s", 0.5), ("36 / h", 0.01), ("1e3/s", 1000.0)]
)
def test_a_rate_is_read_per_second(text: str, per_s: float) -> None:
    assert parse_rate(text) == per_s


@pytest.mark.parametrize(("value", "share"), [(0.9, 0.9), ("90%", 0.9), ("0.9", 0.9), (1, 1.0), ("0 %", 0.0)])
def test_a_share_is_a_number_or_a_percentage(value: object, share: float) -> None:
    assert parse_share(value) == share


@pytest.mark.parametrize(
    ("parse", "value", "says"),
    [
        (parse_size, "80", "80 has no unit; write for example 12GiB"),
        (parse_size, 80, "80 has no unit"),
        (parse_size, "80gib", "did you mean GiB?"),
        (parse_size, "80 bananas", "known units are B"),
        (parse_size, "-1GiB", "is negative"),
        (parse_size, "nan GiB", "finite number"),
        (parse_size, float("nan"), "finite number"),
        (parse_size, float("inf"), "finite number"),
        (parse_size, "infGiB", "finite number"),
        (parse_size, "1e999999GiB", "too large"),
        (parse_size, True, "is not a size"),
        (parse_size, ["1GiB"], "is not a size"),
        (parse_duration, "2", "2 has no unit; write for example 50ms"),
        (parse_duration, "-2s", "is negative"),
        (parse_duration, "2 S", "did you mean s?"),
        (parse_duration, "", "is not a duration"),
        (parse_rate, "8", "8 has no unit; write for example 8/s"),
        (parse_rate, "-8/s", "is negative"),
        (parse_rate, "0/s", "must be above 0"),
        (parse_rate, "8 requests/s", "unknown unit 'requests/s'"),
        (parse_share, 1.5, "between 0 and 1"),
        (parse_share, "150%", "between 0 and 1"),
        (parse_share, "-1%", "between 0 and 1"),
        (parse_share, "nan", "is not a share"),
        (parse_share, True, "is not a share"),
    ],
)
def test_what_is_refused_says_why(parse: object, value: object, says: str) -> None:
    assert callable(parse)
    with pytest.raises(ValueError) as refused:
        parse(value)
    assert says in str(refused.value)


@given(st.integers(0, 2**60))
def test_the_text_of_a_size_reads_back_exactly(size_bytes: int) -> None:
    assert parse_size(size_text(size_bytes)) == size_bytes


@given(st.integers(0, 10**18))
def test_the_text_of_a_duration_reads_back_exactly(duration_ps: int) -> None:
    assert parse_duration(duration_text(duration_ps)) == duration_ps


@given(st.floats(1e-9, 1e12))
def test_the_text_of_a_rate_reads_back_exactly(per_s: float) -> None:
    assert parse_rate(rate_text(per_s)) == per_s


def test_texts_are_short_where_they_can_be() -> None:
    assert size_text(12 * 2**30) == "12GiB"
    assert size_text(16 * 10**9) == "16GB"
    assert duration_text(50 * 10**9) == "50ms"
    assert duration_text(0) == "0s"
    assert rate_text(8.0) == "8/s"


def test_output_for_people_has_a_unit_and_few_digits() -> None:
    assert format_size(14_745_600) == "14.06 MiB"
    assert format_size(4.5 * 2**30) == "4.50 GiB"
    assert format_size(12) == "12 B"
    assert format_duration(0.0123) == "12.3 ms"
    assert format_duration(1.5) == "1.50 s"
    assert format_duration(7200) == "2.00 h"
    assert format_duration(0) == "0 s"
    assert format_rate(8) == "8.00 /s"
    assert format_share(0.9637) == "96.4 %"

"""Intervals: what printed digits mean, and how they carry through sums."""

import pytest

from kvsim.capacity.span import Span
from kvsim.units import GIB


@pytest.mark.parametrize(
    ("text", "low", "high"), [("14.99", 14.985, 14.995), ("8", 7.5, 8.5), ("11.832", 11.8315, 11.8325)]
)
def test_printed_digits_mean_half_a_unit_of_the_last(text, low, high):
    span = Span.printed_gib(text)
    assert (span.low / GIB, span.best / GIB, span.high / GIB) == pytest.approx((low, float(text), high))


def test_where_only_k_is_printed_v_is_the_same_again():
    assert Span.printed_gib("8.23", 2).best == 2 * 8.23 * GIB


def test_sums_and_differences_widen():
    a, b = Span(1, 2, 3), Span(10, 20, 30)
    assert a + b == Span(11, 22, 33)
    assert b - a == Span(7, 18, 29)
    assert a.times(2) == Span(2, 4, 6)
    assert Span(1.2, 2.7, 3.9).each(int) == Span(1, 2, 3)


def test_a_spread_does_not_reach_below_nothing():
    assert Span.within(2, 5) == Span(0, 2, 7)

"""Values of swept keys: their numbers, their units, and how they are shown."""

import pytest

from kvsim.study.values import axis, quantity, shown


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (16, (16, "")),
        (0.5, (0.5, "")),
        (1 << 127, (2.0**127, "")),
        ("90%", (0.9, "")),
        ("480/min", (8.0, "/s")),
        ("50ms", (0.05, "s")),
        ("1KiB", (1024, "bytes")),
        (True, None),
        (None, None),
        ("paged", None),
        ({"name": "paged"}, None),
    ],
)
def test_a_value_stands_for_a_number_in_a_base_unit_or_for_none(value, found):
    assert quantity(value) == found


def test_an_axis_has_numbers_where_all_its_values_are_of_one_kind():
    rates = axis("workload.rate", ["2/s", "60/min", "2/s"])
    assert (rates.values, rates.numbers, rates.unit) == (["2/s", "60/min"], [2.0, 1.0], "/s")
    assert rates.number("60/min") == 1.0


@pytest.mark.parametrize("values", [["1GiB", "2s"], [1, "paged"], [1, None]])
def test_an_axis_of_several_kinds_has_none(values):
    mixed = axis("pool", values)
    assert mixed.numbers is None
    with pytest.raises(ValueError, match="pool: its values are no numbers"):
        mixed.number(values[0])


def test_values_are_shown_as_a_scenario_writes_them():
    assert shown({"name": "paged", "prefix_caching": True, "sizes": [1, None]}) == (
        "{name: paged, prefix_caching: true, sizes: [1, null]}"
    )

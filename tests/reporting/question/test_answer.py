"""An answer's numbers are those that were measured."""

import pytest

from kvsim.errors import InputError
from kvsim.reporting.question.answer import answered, measured, significant
from kvsim.units import GIB

NUMBERS = {
    "paged": {"waste_share": 0.0123, "ttft_s": {"p50": 0.0312}, "preemptions": 3, "pool_bytes": 5 * GIB, "name": "x"},
    "orca max": {"ttft_s.p50": 0.624, "waste_share": 0.5, "none": 0},
}


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("wastes {paged: waste_share %}.", "wastes 1.23 %."),
        ("after {paged: ttft_s.p50 ms}", "after 31.2 ms"),
        ("{orca max: ttft_s.p50 s}", "0.624 s"),
        ("{orca max: ttft_s.p50 / paged: ttft_s.p50} times", "20.0 times"),
        ("{orca max: waste_share - paged: waste_share points}", "48.8 points"),
        ("{paged: preemptions} and {paged: pool_bytes GiB}", "3 and 5.00 GiB"),
        ("{paged: waste_share * paged: pool_bytes GiB}", "0.0615 GiB"),
        ("no number at all", "no number at all"),
    ],
)
def test_a_number_is_looked_up_and_shown_in_its_unit(form, text):
    assert answered(form, NUMBERS) == text


def test_operations_go_from_left_to_right():
    assert measured("paged: preemptions - paged: preemptions / paged: preemptions", NUMBERS) == 0
    assert measured("paged: preemptions / paged: preemptions * paged: preemptions", NUMBERS) == 3


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("{radix: waste_share}", "there is no radix; there are paged, orca max"),
        ("{paged: tpot_s.p50}", "tpot_s.p50 of paged is no number but None"),
        ("{paged: name}", "name of paged is no number but 'x'"),
        ("{waste_share}", "'waste_share' is not `who: what`"),
        ("{paged: preemptions / orca max: none}", "divides by orca max: none, which is 0"),
    ],
)
def test_a_number_that_is_not_there_is_an_error_that_quotes_the_place(form, message):
    with pytest.raises(InputError) as error:
        answered(form, NUMBERS)
    assert message in str(error.value)
    assert form in str(error.value)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (41_408, "41,408"),
        (7.0, "7.00"),
        (0.0, "0"),
        (0.00123456, "0.00123"),
        (0.5, "0.5"),
        (15.349, "15.3"),
        (1431.4, "1,431"),
        (-2.5, "-2.50"),
    ],
)
def test_three_digits_count(number, text):
    assert significant(number) == text

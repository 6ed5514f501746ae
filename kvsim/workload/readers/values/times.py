"""Times that traces write as numbers, to integer picoseconds, exactly."""

from decimal import Decimal, InvalidOperation

PS_DIGITS = 12
_LAST_DIGIT = 15
"""Times of more digits before the point are no seconds of anybody's life."""
_LONGEST_TEXT = 40


def ps_of(value: object, unit_digits: int) -> int | None:
    """Picoseconds of a number (int, Decimal, or its text) in units of 10^-`unit_digits` seconds; None if it is none.

    0 is seconds, 3 milliseconds. Rounded to the picosecond, once.
    """
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST_TEXT or not text.isascii() or "_" in text:
            return None
        try:
            value = Decimal(text)
        except InvalidOperation:
            return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    exact = Decimal(value)
    if not exact.is_finite() or not (exact.is_zero() or exact.adjusted() < _LAST_DIGIT):
        return None
    return round(exact.scaleb(PS_DIGITS - unit_digits))


def why_no_time(value: object) -> str:
    """Why `ps_of` does not take the value."""
    return "missing" if value is None else "empty cell" if value == "" else "not a time"

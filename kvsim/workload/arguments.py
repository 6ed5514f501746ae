"""Checks of keyword arguments; each raises a ValueError that names the argument and says what would be
right.
"""

import math


def check_positive(argument: str, value: object) -> None:
    """`value` is a finite number above 0."""
    if not _finite(value) or value <= 0:  # type: ignore[operator]
        raise ValueError(f"{argument}: must be a finite number above 0; got {value!r}")


def check_not_negative(argument: str, value: object) -> None:
    """`value` is a finite number of at least 0."""
    if not _finite(value) or value < 0:  # type: ignore[operator]
        raise ValueError(f"{argument}: must be a finite number of at least 0; got {value!r}")


def check_share(argument: str, value: object) -> None:
    """`value` is a number from 0 to 1."""
    if not _finite(value) or not 0 <= value <= 1:  # type: ignore[operator]
        raise ValueError(f"{argument}: must be a share from 0 to 1; got {value!r}")


def check_whole(argument: str, value: object, least: int, most: int | None = None) -> None:
    """`value` is an int of at least `least` and, where given, at most `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        end = "" if most is None else f" and at most {most}"
        raise ValueError(f"{argument}: must be a whole number of at least {least}{end}; got {value!r}")


def _finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float comes near
        return False

"""A number as a log prints it: it stands for every value that would have been printed with the same digits."""

import re
from dataclasses import dataclass
from decimal import Decimal

ROUNDED_GIB_DECIMALS = 2
"""The engines print GiB with two decimals; `round` drops a trailing zero, so "8.8 GiB" was rounded to 8.80 too."""

_GIB_OF = {
    "": Decimal(1),  # "(22.04/23.52 GiB)": the unit stands behind the second number
    "b": Decimal(1) / 2**30,
    "bytes": Decimal(1) / 2**30,
    "kib": Decimal(1) / 2**20,
    "kb": Decimal(1) / 2**20,
    "mib": Decimal(1) / 2**10,
    "mb": Decimal(1) / 2**10,
    "gib": Decimal(1),
    "gb": Decimal(1),
}
"""GiB in one of each unit. A log that says GB or MB divides by powers of two all the same."""

_MEMORY = re.compile(r"(-?[\d,]*\.?\d+)\s*([A-Za-z]*)")


@dataclass(frozen=True, slots=True)
class Printed:
    """One number of a log, in the unit of its name, with the line it stands on.

    `low` and `high` are the ends of what the printed digits can mean, both included; they equal `value` where
    the log prints the number exactly (bytes, tokens, blocks).
    """

    value: float
    low: float
    high: float
    line_number: int
    text: str

    def __contains__(self, value: float) -> bool:
        """Whether `value` would have been printed like this."""
        return self.low <= value <= self.high

    @property
    def width(self) -> float:
        """How far apart the ends are."""
        return self.high - self.low

    def plus(self, other: "Printed") -> "Printed":
        """The sum, between the sums of the ends; the line is this one's."""
        return Printed(
            self.value + other.value, self.low + other.low, self.high + other.high, self.line_number, self.text
        )

    def minus(self, other: "Printed") -> "Printed":
        """The difference, as far apart as the ends can be; the line is this one's."""
        return Printed(
            self.value - other.value, self.low - other.high, self.high - other.low, self.line_number, self.text
        )


def memory(digits: str, line_number: int, text: str) -> Printed:
    """Read memory such as `8.60 GiB`, `552.50 MiB` or `9232221491 bytes`, in GiB."""
    match = _MEMORY.fullmatch(digits.strip())
    assert match is not None, digits  # the rules let nothing else through
    number, unit = Decimal(match[1].replace(",", "")), match[2].lower()
    if unit in ("b", "bytes"):
        return _between(number, Decimal(0), _GIB_OF[unit], line_number, text)
    decimals = max(_decimals(number), ROUNDED_GIB_DECIMALS if unit in ("", "gib", "gb") else 0)
    return _between(number, _half(decimals), _GIB_OF[unit], line_number, text)


def count(digits: str, line_number: int, text: str) -> Printed:
    """Read a whole number such as `41,408`; it is exact."""
    value = int(digits.replace(",", ""))
    return Printed(value, value, value, line_number, text)


def rounded(digits: str, line_number: int, text: str) -> Printed:
    """Read a number such as the `1.26` of a concurrency, rounded to its last digit."""
    number = Decimal(digits.replace(",", ""))
    return _between(number, _half(_decimals(number)), Decimal(1), line_number, text)


def _decimals(number: Decimal) -> int:
    return max(0, -int(number.as_tuple().exponent))


def _half(decimals: int) -> Decimal:
    return Decimal(1).scaleb(-decimals) / 2


def _between(number: Decimal, half: Decimal, unit: Decimal, line_number: int, text: str) -> Printed:
    low, high = (number - half) * unit, (number + half) * unit
    return Printed(float(number * unit), float(low), float(high), line_number, text)

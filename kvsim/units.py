"""Sizes, durations and rates as people write them (`12GiB`, `50ms`, `8/s`), to numbers and back.

Numbers inside kvsim carry their unit in the name: bytes are int, clocks are integer picoseconds, rates are
float per second. GiB is 2^30 and GB is 10^9; a bare number is refused, because either reading would be a
silent 7 % error. Every function that parses raises a ValueError whose text begins with the value: `80 has no
unit; write ...`.
"""

import re
from decimal import Decimal

SIZE_UNITS = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
"""Bytes of each unit of size."""

GIB = SIZE_UNITS["GiB"]

DURATION_UNITS = {
    "ps": 1,
    "ns": 10**3,
    "us": 10**6,
    "µs": 10**6,
    "ms": 10**9,
    "s": 10**12,
    "min": 60 * 10**12,
    "h": 3600 * 10**12,
    "d": 86400 * 10**12,
}
"""Picoseconds of each unit of time."""

PS_PER_S = DURATION_UNITS["s"]

RATE_UNITS = {"/s": 1, "/min": 60, "/h": 3600, "/d": 86400}
"""Seconds in the period of each unit of rate."""

_NUMBER_AND_UNIT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*")
_LARGEST = 10**30
"""Beyond any size or time of a computer; keeps a typo such as `1e999999GiB` from becoming a million-digit
integer."""


def _split(value: object, units: dict[str, int], examples: str, kind: str) -> tuple[Decimal, int]:
    """Return the number and the factor of the unit of `value`, or raise a ValueError that says what is
    wrong."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"{value!r} is not a {kind}; write a number and a unit, {examples}")
    text = str(value)
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a {kind}; write a finite number and a unit, {examples}")
    number, unit = Decimal(match[1]), match[2]
    if not unit:
        raise ValueError(f"{text} has no unit; write {examples}")
    if unit not in units:
        same = [known for known in units if known.lower() == unit.lower()]
        hint = f"did you mean {same[0]}?" if same else f"known units are {', '.join(units)}"
        raise ValueError(f"{text!r} has an unknown unit {unit!r}; {hint}")
    if number < 0:
        raise ValueError(f"{text!r} is negative; a {kind} cannot be below 0")
    if number and (number.adjusted() > 30 or number * units[unit] > _LARGEST):
        raise ValueError(f"{text!r} is too large for a {kind}; write {examples}")
    return number, units[unit]


def parse_size(value: object) -> int:
    """Return the bytes of a size such as `80GiB`, `16GB` or `512MiB`, rounded to a whole byte."""
    number, factor = _split(value, SIZE_UNITS, "for example 12GiB (2^30 bytes each) or 12GB (10^9)", "size")
    return round(number * factor)


def parse_duration(value: object) -> int:
    """Return the integer picoseconds of a duration such as `50ms`, `2s`, `1.5 min` or `1h`."""
    number, factor = _split(value, DURATION_UNITS, "for example 50ms, 2s or 1.5min", "duration")
    return round(number * factor)


def parse_seconds(value: object) -> float:
    """Return the seconds of a duration such as `50ms`."""
    return parse_duration(value) / PS_PER_S


def parse_rate(value: object) -> float:
    """Return how often per second a rate such as `8/s`, `480/min` or `0.5/s` says; more than 0."""
    if isinstance(value, str):
        value = re.sub(r"\s*/\s*", "/", value)
    number, period_s = _split(value, RATE_UNITS, "for example 8/s or 480/min", "rate")
    rate = float(number / period_s)
    if rate == 0:
        raise ValueError(f"{str(value)!r} is no traffic; a rate must be above 0, for example 0.5/s")
    return rate


def parse_share(value: object) -> float:
    """Return the fraction from 0 to 1 that `value` says, as a number (`0.9`) or a percentage (`90%`)."""
    text = str(value).strip()
    percent = text.endswith("%")
    match = _NUMBER_AND_UNIT.fullmatch(text.removesuffix("%"))
    if isinstance(value, bool) or match is None or match[2]:
        raise ValueError(f"{text!r} is not a share; write a number from 0 to 1 or a percentage, such as 0.9 or 90%")
    share = float(match[1]) / (100 if percent else 1)
    if not 0 <= share <= 1:
        raise ValueError(f"{text} is not a share; it must lie between 0 and 1 (0% and 100%), such as 0.9 or 90%")
    return share


def size_text(size_bytes: int) -> str:
    """Return the shortest text that `parse_size` reads back to exactly `size_bytes`."""
    return _exact(size_bytes, ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB", "B"), SIZE_UNITS)


def duration_text(duration_ps: int) -> str:
    """Return the text that `parse_duration` reads back to exactly `duration_ps`, such as `1500ms`."""
    if duration_ps == 0:
        return "0s"
    return _exact(duration_ps, ("h", "min", "s", "ms", "us", "ns", "ps"), DURATION_UNITS)


def rate_text(rate_per_s: float) -> str:
    """Return the text that `parse_rate` reads back to exactly `rate_per_s`, such as `8/s`."""
    return f"{rate_per_s!r}/s".replace(".0/s", "/s")


def _exact(amount: int, names: tuple[str, ...], units: dict[str, int]) -> str:
    if amount == 0:
        return f"0{names[-1]}"
    whole = [f"{amount // units[name]}{name}" for name in names if amount % units[name] == 0]
    return min(whole, key=len)


def format_size(size_bytes: float) -> str:
    """Return a size for people to read, in binary units and three or more digits: `14.06 MiB`, `4.50 GiB`."""
    for name in ("TiB", "GiB", "MiB", "KiB"):
        if abs(size_bytes) >= SIZE_UNITS[name]:
            return f"{size_bytes / SIZE_UNITS[name]:,.2f} {name}"
    return f"{size_bytes:.0f} B"


def format_duration(duration_s: float) -> str:
    """Return seconds for people to read, with three digits: `12.3 ms`, `1.50 s`, `2.00 h`."""
    if duration_s == 0:
        return "0 s"
    for name in ("h", "min", "s", "ms", "us", "ns"):
        amount = duration_s * PS_PER_S / DURATION_UNITS[name]
        if abs(amount) >= 1:
            break
    digits = 2 if abs(amount) < 10 else 1 if abs(amount) < 100 else 0
    return f"{amount:,.{digits}f} {name}"


def format_rate(rate_per_s: float) -> str:
    """Return a rate for people to read, with three digits: `8.00 /s`."""
    digits = 2 if abs(rate_per_s) < 10 else 1 if abs(rate_per_s) < 100 else 0
    return f"{rate_per_s:,.{digits}f} /s"


def format_share(share: float) -> str:
    """Return a fraction as a percentage with one decimal: `96.4 %`."""
    return f"{share * 100:.1f} %"

"""The rows of a comparison with a recorded run as people read them, in the terminal and in the report."""

from kvsim.study.recorded.compare import NAMES, Comparison, Row

HEAD = ("", "unit", "measured", "simulated", "off by", "apart on average")
DIGITS = 3
PERCENT = 100.0


def cells(row: Row) -> list[str]:
    """Label, unit, both numbers, how far the simulated one is off, and how far apart the two are over time."""
    share = row.unit == "share"
    unit = "%" if share else row.unit
    scale = PERCENT if share else 1.0
    numbers = ["-" if value is None else _short(scale * value) for value in (row.measured, row.simulated)]
    error, distance = row.error, row.distance
    if error is None:
        off = "-"
    else:
        off = f"{PERCENT * error:+.1f} {'points' if share else '%'}"
    if distance is None:
        apart = ""
    else:
        apart = f"{PERCENT * distance:.1f} points" if share else _short(distance)
    return [row.label, unit, *numbers, off, apart]


def pairs_line(comparison: Comparison) -> str:
    """How far requests are off one by one; empty where the two sides are not of the same requests."""
    if not comparison.pairs:
        return ""
    told = ", ".join(f"{NAMES[name]} {PERCENT * value:.1f} %" for name, value in comparison.pairs.items())
    return f"Request by request the median distance is: {told}."


def _short(value: float) -> str:
    """Three digits that count; whole numbers from 100 on."""
    if abs(value) >= 10 ** (DIGITS - 1):
        return f"{value:,.0f}"
    text = f"{value:.{DIGITS}g}"
    return f"{float(text):g}" if "e" in text else text

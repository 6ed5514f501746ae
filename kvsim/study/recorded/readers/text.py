"""What the readers share: opening a file, numbers with their place, series from rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from kvsim.errors import InputError
from kvsim.study.recorded.measured import SERIES, Series

MOST_BYTES = 1 << 30
"""More is no log of one run that fits memory as text."""


def text_of(path: Path) -> str:
    """The text of a file; wrong bytes become marks, as logs may hold what a model wrote. Raises InputError."""
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder; name the files of the run")
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path}: has more than {MOST_BYTES:,} bytes; cut out the time of the run")
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name a file of the run") from None
    if b"\x00" in raw:
        raise InputError(f"{path}: is a binary file; a measured run is a CSV, a log, a scrape or a JSON text")
    text = raw.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise InputError(f"{path}: is empty; nothing was measured")
    return text


def number(text: object, place: str, *, most: float | None = None) -> float:
    """A number from 0 on, at most `most`; InputError with the place and what would be right."""
    try:
        value = float(str(text).replace(",", ""))
    except ValueError:
        value = math.nan
    if math.isnan(value) or math.isinf(value) or value < 0:
        raise InputError(f"{place} is {text!r}; it is a number, 0 or more")
    if most is not None and value > most:
        raise InputError(f"{place} is {text}; it is at most {most:g}: mind the unit")
    return value


def series_of(rows: Sequence[tuple[float, Mapping[str, float]]]) -> Series:
    """Moments and what was told at each; NaN where a moment lacks what another has."""
    names = [name for name in SERIES if any(name in told for _, told in rows)]
    return Series(
        np.array([time_s for time_s, _ in rows]),
        {name: np.array([told.get(name, np.nan) for _, told in rows]) for name in names},
    )


def one_of(found: Iterable[str], path: Path, what: str) -> None:
    """Raises InputError where a file tells of several engines: kvsim simulates one."""
    several = sorted(set(found))
    if len(several) > 1:
        raise InputError(
            f"{path}: has lines of {what} {', '.join(several)}; kvsim simulates one replica: keep the lines of one"
        )


def since_start(clock_s: Sequence[float], interval_s: float) -> list[float]:
    """Seconds since the run began, taken to be one interval before the first line. Days go on past midnight."""
    times, added, before = [], 0.0, clock_s[0]
    for value in clock_s:
        if value < before - DAY_S / 2:
            added += DAY_S
        before = value
        times.append(value + added - clock_s[0] + interval_s)
    return times


DAY_S = 86400.0


def middle_gap(clock_s: Sequence[float], otherwise: float) -> float:
    """The median time between two lines."""
    gaps = np.diff(np.array(clock_s))
    gaps = gaps[gaps > 0]
    return float(np.median(gaps)) if len(gaps) else otherwise

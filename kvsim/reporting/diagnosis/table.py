"""The two tables of a diagnosis: the pressures with what was measured, and the run before and after each cure."""

from collections.abc import Sequence

from kvsim.reporting.diagnosis.verdict import percent
from kvsim.reporting.finding import three_digits
from kvsim.study.diagnosis.diagnose import Diagnosis, Numbers
from kvsim.study.diagnosis.pressures import Pressures

BEFORE = "before: as it is"

LEAST = 0.0005
"""Shares below this are written as 0.0 % and left out."""

COLUMNS = ("goodput\n/s", "TTFT\np99 s", "pre-\nempted", "waste\n%", "running", "peak\nused %", "hit\n%")
"""Headings of the numbers of a run; the first is `requests` where the scenario has no goal."""


def cure_rows(found: Diagnosis) -> list[tuple[str, list[str]]]:
    """A name and its numbers for the run before, and after each cure that could be had."""
    rows = [(BEFORE, _cells(found.before))]
    rows += [(f"-> {one.cure.name}", _cells(one.numbers)) for one in found.tried if one.numbers is not None]
    return rows


def pressure_rows(pressures: Pressures) -> list[tuple[str, str, str]]:
    """Each pressure, its share of the slots taken in per cent, and the figures behind it."""
    lost = [f"{name} {percent(share)}" for name, share in pressures.lost.items() if share and share >= LEAST]
    organisation = f"of the pool: {', '.join(lost)} %" if lost else "no slot is taken for nothing"
    if pressures.fragmentation is not None:
        organisation += f"; fragmentation {percent(pressures.fragmentation)} %"
    reuse = [f"hits {percent(pressures.hit_rate)} %" if pressures.hit_rate is not None else "nothing is cached"]
    if pressures.unbounded_hit_rate is not None:
        reuse.append(f"without bounds {percent(pressures.unbounded_hit_rate)} % of prompt tokens")
    if pressures.duplicate_share:
        reuse.append(f"duplicate {percent(pressures.duplicate_share)} % of the pool")
    representation = f"{pressures.kv_bytes_per_token:,} B a token ({pressures.kv_dtype})"
    if pressures.taken_share is not None:
        representation += f"; {percent(pressures.taken_share)} % of the pool is taken"
    return [
        ("representation", percent(pressures.representation), representation),
        ("organisation", percent(pressures.organisation), organisation),
        ("reuse", percent(pressures.reuse), "; ".join(reuse)),
    ]


def headings(found: Diagnosis) -> Sequence[str]:
    """`COLUMNS`, for a scenario with goals or without."""
    return ("requests\n/s", *COLUMNS[1:]) if found.before.goodput_per_s is None else COLUMNS


def _cells(numbers: Numbers) -> list[str]:
    return [
        three_digits(numbers.rate),
        three_digits(numbers.ttft_p99_s),
        f"{numbers.preemptions:,}",
        percent(numbers.waste_share),
        three_digits(numbers.mean_running),
        percent(numbers.peak_used_share),
        percent(numbers.hit_rate),
    ]

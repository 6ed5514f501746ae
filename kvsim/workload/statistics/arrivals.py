"""Arrivals in a few numbers: rate, and how unevenly they come over short and over long times."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvsim.request import PS_PER_S

BIN_S = 60
"""The time over which clustering is counted: the length of the reference table's."""


@dataclass(frozen=True)
class Arrivals:
    """Of arrivals in order of time, the first at 0.

    `rate_per_s` is of gaps (one fewer than arrivals) over the span. `cv` is the standard deviation over the mean of all
    gaps, `cv_untied` of those above 0: clocks of whole seconds tie arrivals that came apart. `idc` is the index of
    dispersion for counts, variance over mean of the counts in bins of `bin_s` seconds from the first arrival on: 1 for
    Poisson arrivals, and more where busy times last. It counts the last, partly filled bin; `idc_whole_bins` does not.
    Variances divide by the number, not by one less. None where there is too little to tell.
    """

    span_s: float
    rate_per_s: float | None
    cv: float | None
    cv_untied: float | None
    tied_share: float
    bin_s: int
    idc: float | None
    idc_whole_bins: float | None


def arrivals(times_ps: Sequence[int]) -> Arrivals | None:
    """Of at least one arrival, in any order; None of none."""
    import numpy as np

    if not len(times_ps):
        return None
    first_ps = min(times_ps)
    # Exact differences first: picoseconds since the year 1 are beyond a float's digits, and 64 bits.
    times_s = np.sort(np.fromiter(((time - first_ps) / PS_PER_S for time in times_ps), float, len(times_ps)))
    gaps_s = np.diff(times_s)
    untied_s = gaps_s[gaps_s > 0]
    span_s = float(times_s[-1])
    counts = np.bincount((times_s // BIN_S).astype(np.int64)) if span_s < _MOST_BINS * BIN_S else np.array([])
    return Arrivals(
        span_s=span_s,
        rate_per_s=len(gaps_s) / span_s if span_s else None,
        cv=float(gaps_s.std() / gaps_s.mean()) if span_s else None,
        cv_untied=float(untied_s.std() / untied_s.mean()) if span_s else None,
        tied_share=float((gaps_s == 0).mean()) if len(gaps_s) else 0.0,
        bin_s=BIN_S,
        idc=float(counts.var() / counts.mean()) if len(counts) > 1 else None,
        idc_whole_bins=float(counts[:-1].var() / counts[:-1].mean()) if len(counts) > 2 else None,
    )


_MOST_BINS = 10_000_000
"""19 years of minutes: a longer span is a wrong time, and its counts would fill the memory."""

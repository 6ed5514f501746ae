"""From the runs of variants to estimates: intervals, and differences to the baseline on the same random streams."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kvsim.study.replication.catalogue import better, numbers, percentile_of
from kvsim.study.replication.runs.replicate import Replicate
from kvsim.study.statistics.intervals import LEVEL, Array, Interval, mean_interval
from kvsim.study.statistics.paired import Difference, paired_difference, told_ratio, verdict
from kvsim.study.statistics.percentiles import percentile_interval, samples_needed, spread_about


@dataclass(frozen=True)
class Estimate:
    """A metric of one variant. `values` are those of each run, batch or draw that has one.

    `needed` is how many requests each of them should have for the interval of a percentile to be trusted (None:
    enough). `difference` is to the baseline; None for itself, and where one of the two has no value.
    """

    interval: Interval
    values: tuple[float, ...] = field(default=(), repr=False)
    needed: int | None = None
    difference: Difference | None = None


def estimates(
    runs: Sequence[Replicate], baseline: Sequence[Replicate] | None = None, level: float = LEVEL
) -> dict[str, Estimate]:
    """Every metric of a variant by name, in the order of its runs' metrics; with its difference to the baseline's runs.

    Runs of the two belong together by their place. Percentiles of latencies are those of all requests of all runs,
    with the runs as sections; all else are means over runs.
    """
    ours = [numbers(run.metrics) for run in runs]
    theirs = None if baseline is None else [numbers(run.metrics) for run in baseline]
    keys = dict.fromkeys(key for found in ours for key in found)
    made = {}
    for key in keys:
        sections = _sections(runs, key)
        percent = percentile_of(key)
        if sections is not None and percent is not None:
            interval = percentile_interval(sections, percent[1], level)
            needed = samples_needed(sections, interval.estimate, percent[1])
        else:
            interval, needed = mean_interval([found[key] for found in ours if key in found], level), None
        difference = None
        if baseline is not None and theirs is not None:
            others = _sections(baseline, key)
            if sections is not None and others is not None and percent is not None and len(sections) == len(others):
                difference = percentile_difference(sections, others, percent[1], key, level)
            else:
                pairs = [
                    (one[key], other[key])
                    for one, other in zip(ours, theirs, strict=True)
                    if key in one and key in other
                ]
                if pairs:
                    mine, rivals = ([pair[side] for pair in pairs] for side in (0, 1))
                    difference = paired_difference(mine, rivals, better(key), level)
        values = tuple(found[key] for found in ours if key in found)
        made[key] = Estimate(interval, values, needed, difference)
    return made


def percentile_difference(
    ours: Sequence[Array], theirs: Sequence[Array], percent: float, key: str, level: float = LEVEL
) -> Difference:
    """The difference of the percentiles of two variants, with the runs, which belong together, as sections."""
    apart = float(np.percentile(np.concatenate(ours), percent) - np.percentile(np.concatenate(theirs), percent))
    mine = np.array([np.percentile(section, percent) for section in ours])
    others = np.array([np.percentile(section, percent) for section in theirs])
    if len(mine) < 2:
        interval = Interval(apart, None, None, 1, level)
    else:
        half = float(spread_about(apart, mine - others, level))
        interval = Interval(apart, apart - half, apart + half, len(mine), level)
    return Difference(interval, verdict(interval, better(key)), told_ratio(mine, others))


def _sections(runs: Sequence[Replicate], key: str) -> list[Array] | None:
    """The latencies of single requests, run by run, that a percentile is of; None where some run has none."""
    percent = percentile_of(key)
    if percent is None:
        return None
    found = [run.latencies.get(percent[0], np.empty(0)) for run in runs]
    return found if all(section.size for section in found) else None

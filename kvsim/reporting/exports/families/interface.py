"""A metric family as a scraper sees it, and what had happened by each of the moments at which it looks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvsim.metrics.result import Result
from kvsim.study.recorded.measured import Column

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one metric with these labels at each moment; NaN where there is none then.

    Of a histogram, `counts` has a column for each edge and one for all, cumulative, and `values` are the sums.
    """

    labels: Labels
    values: Column
    counts: Column | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """One metric; `kind` is gauge, counter or histogram, and a counter's `name` is without `_total`."""

    name: str
    kind: str
    meaning: str
    series: Sequence[Series]
    edges: Sequence[float] = ()


class Moments:
    """Sums and counts of what had happened by each of some moments."""

    def __init__(self, times_s: Column) -> None:
        self.times_s = times_s

    def sums(self, when_s: Column, amounts: Column | None = None) -> Column:
        """How much, or how many, had come by each moment; what never came has no time."""
        come = ~np.isnan(when_s)
        order = np.argsort(when_s[come], kind="stable")
        each = np.ones(len(order)) if amounts is None else amounts[come][order]
        so_far = np.concatenate([[0.0], np.cumsum(each)])
        return np.asarray(so_far[np.searchsorted(when_s[come][order], self.times_s, side="right")])

    def histogram(
        self, labels: Labels, when_s: Column, values: Column, edges: Sequence[float], times: Column | None = None
    ) -> Series:
        """Values that came, each once or so many `times`."""
        known = ~np.isnan(values) & ~np.isnan(when_s)
        when_s, values = when_s[known], values[known]
        weights = np.ones(len(values)) if times is None else times[known]
        counts = [self.sums(when_s, weights * (values <= edge)) for edge in edges]
        counts.append(self.sums(when_s, weights))
        return Series(labels, self.sums(when_s, weights * values), np.array(counts).T)

    def nowhere_but_at_the_end(self, value: float) -> Column:
        """A number that is known of the whole run alone."""
        values = np.full(len(self.times_s), np.nan)
        values[-1] = value
        return values

    def always(self, value: float) -> Column:
        """The same number at every moment."""
        return np.full(len(self.times_s), float(value))


def labels_of(result: Result) -> Labels:
    """What every series of a run is labelled with."""
    return {"model_name": str(setting(result, "model.name") or ""), "engine": "0"}


def setting(result: Result, key: str) -> Any:
    """The value of a key of the scenario that was run; None where it has none."""
    return result.scenario_resolved.get(key, {}).get("value")

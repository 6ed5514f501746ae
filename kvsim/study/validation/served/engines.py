"""Fits of engines to served runs, and predictions with groups of runs held out.

Each engine is fitted twice: alone, then with the scales of kernels drawn towards the median over all engines, since
kernels are much the same everywhere. An engine without runs to fit to takes the median of the others.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kvsim.study.validation.served.runs import ServedRun
from kvsim.study.validation.served.time import SCALES, FirstToken, ServedTime
from kvsim.timing.families import device
from kvsim.timing.families.interface import Column, Family, Values, starts
from kvsim.timing.fitting.robust import Fitted, fit, median_of

Mask = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.str_]
SERVED, FIRST = ServedTime(), FirstToken()
FEWEST = 4
MOST_WEIGHT = 3.0
NO_DEVICE = device("A100")
"""Features hold their device already; families of runs do not look at it."""


class Engines:
    """Runs with their features; `fitted` gives each engine's parameters from any part of them."""

    def __init__(
        self, runs: Sequence[ServedRun], features: Mapping[str, Column], prior: Mapping[str, Values] | None = None
    ) -> None:
        self.runs, self.features, self.prior = runs, features, dict(prior or {})
        self.seconds = np.array([run.seconds for run in runs])
        self.engine = np.array([run.engine for run in runs])
        self.first = np.array([run.quantity == "ttft" for run in runs])
        self._alone: dict[tuple[str, bytes, bool], Fitted] = {}

    def fitted(
        self, train: Mask, groups: Labels, only: Sequence[str] = (), *, known: bool = True
    ) -> dict[str, dict[str, float]]:
        """Parameters by engine from the runs of `train`; each group of an engine counts the same.

        `only`: draw the scales of these engines together (of all unless given). `known`: begin at `prior`.
        """
        return {name: one.values for name, one in self.fits(train, groups, only, known=known).items()}

    def fits(self, train: Mask, groups: Labels, only: Sequence[str] = (), *, known: bool = True) -> dict[str, Fitted]:
        """The same with standard errors."""
        part = train & ~self.first
        names = [name for name in dict.fromkeys(self.engine) if np.sum(part & (self.engine == name)) >= FEWEST]
        priors = {name: self._prior(name) if known else starts(SERVED) for name in names}
        alone = {
            name: self._by_itself(name, part & (self.engine == name), groups, priors[name], known) for name in names
        }
        if not alone:
            return {}
        shared = median_of({name: one.values for name, one in alone.items()})
        scales = {name: shared[name] for name in SCALES}
        wanted = [name for name in names if not only or name in only]
        found = {
            name: self._fit(SERVED, part & (self.engine == name), groups, priors[name] | scales) for name in wanted
        }
        return alone | found

    def _by_itself(self, name: str, rows: Mask, groups: Labels, prior: Values, known: bool) -> Fitted:
        """A fit of one engine alone, kept: most held-out labels leave most engines untouched."""
        key = name, rows.tobytes(), known
        found = self._alone.get(key)
        if found is None:
            found = self._alone[key] = self._fit(SERVED, rows, groups, prior)
        return found

    def predict(
        self, values: Mapping[str, Values], rows: Mask, train: Mask, groups: Labels, *, known: bool = True
    ) -> Column:
        """Seconds of the runs of `rows`, with `values` by engine; first tokens are fitted around them on `train`."""
        base = self._around(values, self.prior if known else {})
        out = np.where(self.first, np.nan, base)
        for name in dict.fromkeys(self.engine[rows & self.first]):
            mine = train & self.first & (self.engine == name)
            enough = np.sum(mine) >= FEWEST
            mine = mine if enough else train & self.first
            if np.sum(mine) >= FEWEST:
                first = self._fit(FIRST, mine, groups, None, {"base_s": base}).values
            else:
                first = starts(FIRST)
            target = rows & self.first & (self.engine == name)
            out[target] = FIRST.seconds(first, {"base_s": base[target]})
        return np.asarray(out[rows])

    def _around(self, values: Mapping[str, Values], prior: Mapping[str, Values]) -> Column:
        """Steps and prompts of every run, without any front end for first tokens."""
        stand_in = median_of(dict(prior) | dict(values)) if prior or values else starts(SERVED)
        out = np.zeros(len(self.runs))
        for name in dict.fromkeys(self.engine):
            mine = self.engine == name
            rows = {key: column[mine] for key, column in self.features.items()}
            rows["fronts"] = np.where(self.first[mine], 0.0, rows["fronts"])
            out[mine] = SERVED.seconds(values.get(name, prior.get(name, stand_in)), rows)
        return out

    def _fit(
        self,
        family: Family,
        rows: Mask,
        groups: Labels,
        prior: Values | None,
        features: Mapping[str, Column] | None = None,
    ) -> Fitted:
        chosen = {key: column[rows] for key, column in (features or self.features).items()}
        _, member, counts = np.unique(groups[rows], return_inverse=True, return_counts=True)
        size = counts[member]
        weights = np.clip(np.sqrt(size.mean() / size), 1 / MOST_WEIGHT, MOST_WEIGHT)
        return fit(family, chosen, self.seconds[rows], NO_DEVICE, prior=prior, weights=weights)

    def _prior(self, name: str) -> dict[str, float]:
        return dict(self.prior.get(name, starts(SERVED)))


def held_out(engines: Engines, held: Labels, groups: Labels, seen: Collection[str] = ()) -> Column:
    """Predicted seconds of every run, each from fits that saw none of the runs with its label in `held`.

    `groups` are the groups that count alike within an engine. The engines' prior is used for labels that are not among
    those that it has `seen`.
    """
    out = np.full(len(engines.runs), np.nan)
    for label in dict.fromkeys(held):
        target, known = held == label, label not in seen
        values = engines.fitted(~target, groups, tuple(dict.fromkeys(engines.engine[target])), known=known)
        out[target] = engines.predict(values, target, ~target, groups, known=known)
    return out

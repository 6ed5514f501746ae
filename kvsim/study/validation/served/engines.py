"""Fits of engines to served runs, and predictions with groups of runs held out.

Each engine is fitted twice: alone, then with the scales of kernels drawn towards the median over all engines, since
kernels are much the same everywhere; how far they may differ, cross-validation on the training rows decides. An engine
without runs to fit to takes what it is known to be (a prior), else the median of the others.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kvsim.study.validation.served.runs import ServedRun
from kvsim.study.validation.served.time import SCALES, SPREADS, FirstToken, ServedTime
from kvsim.timing.families import device
from kvsim.timing.families.interface import Column, Family, Values, starts
from kvsim.timing.fitting.robust import Fitted, fit, median_of

Mask = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.str_]
Priors = Mapping[str, Values]
"""What engines are known to be, by name, from runs that are not scored."""
SERVED, FIRST = ServedTime(), FirstToken()
FEWEST = 4
INNER_FOLDS = 2
"""Into how many parts the groups of the training rows fall when a spread is chosen."""
MOST_WEIGHT = 3.0
TRUST = 5.0
"""A prior from measurements counts so much more than one from nowhere."""
NO_DEVICE = device("A100")
"""Features hold their device already; families of runs do not look at it."""


class Engines:
    """Runs with their features; `fitted` gives each engine's parameters from any part of them."""

    def __init__(self, runs: Sequence[ServedRun], features: Mapping[str, Column]) -> None:
        self.runs, self.features = runs, features
        self.seconds = np.array([run.seconds for run in runs])
        self.engine = np.array([run.engine for run in runs])
        self.first = np.array([run.quantity == "ttft" for run in runs])
        self._alone: dict[tuple[object, ...], Fitted] = {}

    def fits(
        self,
        train: Mask,
        groups: Labels,
        only: Sequence[str] = (),
        priors: Priors | None = None,
        spread: float | None = None,
    ) -> dict[str, Fitted]:
        """Parameters by engine from the runs of `train`; each group of an engine counts the same.

        `only`: draw the scales of these engines together (of all unless given). `priors`: where to begin. `spread`: how
        far scales may well lie from the others'; chosen on `train` unless given.
        """
        if spread is None:
            spread = self.spread(train, groups, only)
        served = ServedTime(spread)
        known, part = priors or {}, train & ~self.first
        rows = {name: part & (self.engine == name) for name in dict.fromkeys(self.engine)}
        rows = {name: mask for name, mask in rows.items() if np.sum(mask) >= FEWEST}
        alone = {name: self._by_itself(served, name, mask, groups, known.get(name)) for name, mask in rows.items()}
        if not alone:
            return {}
        shared = median_of(dict(known) | {name: one.values for name, one in alone.items()})
        scales = {name: shared[name] for name in SCALES}
        wanted = [name for name in rows if not only or name in only]
        trust = {name: TRUST if name in known else 1.0 for name in wanted}
        begin = {name: dict(known.get(name, starts(SERVED))) | scales for name in wanted}
        return alone | {name: self._fit(served, rows[name], groups, begin[name], trust=trust[name]) for name in wanted}

    def spread(self, train: Mask, groups: Labels, only: Sequence[str] = ()) -> float:
        """The candidate of `SPREADS` that predicts groups of `train` best from the others of them, without priors."""
        part = train & ~self.first
        scored = part & np.isin(self.engine, only) if only else part
        _, member = np.unique(groups, return_inverse=True)
        if len(np.unique(groups[scored])) < INNER_FOLDS:
            return SPREADS[0]
        # Groups that no scored run is of are dealt out too, so that which fold one is in does not depend on `only`.
        fold = member % INNER_FOLDS
        off = dict.fromkeys(SPREADS, 0.0)
        for spread in SPREADS:
            for number in range(INNER_FOLDS):
                target = scored & (fold == number)
                found = self.fits(part & (fold != number), groups, only, None, spread)
                if found and target.any():
                    values = {name: one.values for name, one in found.items()}
                    off[spread] += float(np.median(np.abs(np.log(self._around(values)[target] / self.seconds[target]))))
        return min(off, key=lambda spread: (off[spread], spread))

    def fitted(
        self, train: Mask, groups: Labels, only: Sequence[str] = (), priors: Priors | None = None
    ) -> dict[str, dict[str, float]]:
        """The same without standard errors, priors where there was nothing to fit to."""
        found = {name: one.values for name, one in self.fits(train, groups, only, priors).items()}
        return {name: dict(values) for name, values in (priors or {}).items()} | found

    def predict(self, values: Mapping[str, Values], rows: Mask, train: Mask, groups: Labels) -> Column:
        """Seconds of the runs of `rows`, with `values` by engine; first tokens are fitted around them on `train`."""
        around = {
            "base_s": self._around(values),
            "wait_s": self._around(values, "wait_"),
            "burst_s": self._around(values, "burst_"),
        }
        out = np.where(self.first, np.nan, around["base_s"])
        for name in dict.fromkeys(self.engine[rows & self.first]):
            mine = train & self.first & (self.engine == name)
            mine = mine if np.sum(mine) >= FEWEST else train & self.first
            first = starts(FIRST)
            if np.sum(mine) >= FEWEST:
                first = self._fit(FIRST, mine, groups, None, around).values
            target = rows & self.first & (self.engine == name)
            out[target] = FIRST.seconds(first, {name: column[target] for name, column in around.items()})
        return np.asarray(out[rows])

    def _by_itself(self, served: ServedTime, name: str, rows: Mask, groups: Labels, prior: Values | None) -> Fitted:
        """A fit of one engine alone, kept: most held-out labels leave most engines untouched."""
        scales = tuple(one.spread for one in served.parameters)
        key = name, scales, rows.tobytes(), tuple(sorted(prior.items())) if prior else None
        found = self._alone.get(key)
        if found is None:
            trust = TRUST if prior else 1.0
            found = self._alone[key] = self._fit(served, rows, groups, prior, trust=trust)
        return found

    def _around(self, values: Mapping[str, Values], what: str = "") -> Column:
        """Steps and prompts of every run, without any front end for first tokens; `what`: those of a wait alone."""
        stand_in = median_of(values) if values else starts(SERVED)
        out = np.zeros(len(self.runs))
        for name in dict.fromkeys(self.engine):
            mine = self.engine == name
            rows = {key: column[mine] for key, column in self.features.items()}
            if what:
                rows |= {key: rows[f"{what}{key}"] for key in ("steps", "prompts")}
                rows["mixed"] = np.ones_like(rows["mixed"])
            rows["fronts"] = np.where(self.first[mine], 0.0, rows["fronts"])
            out[mine] = SERVED.seconds(values.get(name, stand_in), rows)
        return out

    def _fit(
        self,
        family: Family,
        rows: Mask,
        groups: Labels,
        prior: Values | None,
        features: Mapping[str, Column] | None = None,
        trust: float = 1.0,
    ) -> Fitted:
        chosen = {key: column[rows] for key, column in (features or self.features).items()}
        _, member, counts = np.unique(groups[rows], return_inverse=True, return_counts=True)
        size = counts[member]
        weights = np.clip(np.sqrt(size.mean() / size), 1 / MOST_WEIGHT, MOST_WEIGHT)
        return fit(family, chosen, self.seconds[rows], NO_DEVICE, prior=prior, weights=weights, trust=trust)


def held_out(engines: Engines, held: Labels, groups: Labels, priors: Callable[[str], Priors] | None = None) -> Column:
    """Predicted seconds of every run, each from fits that saw none of the runs with its label in `held`.

    `groups` are the groups that count alike within an engine; `priors` gives what is known without a label.
    """
    out = np.full(len(engines.runs), np.nan)
    for label in dict.fromkeys(held):
        target = held == label
        known = priors(str(label)) if priors else {}
        values = engines.fitted(~target, groups, tuple(dict.fromkeys(engines.engine[target])), known)
        out[target] = engines.predict(values, target, ~target, groups)
    return out

"""Poisson arrivals whose rate goes back and forth between two levels (an MMPP of two states), fitted to counts.

Counts in bins are taken as a hidden Markov chain with Poisson counts, fitted by the Baum-Welch method. A sojourn that
is short against the bin is not seen.
"""

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST_BIN_S = 1.0
_MOST_BINS = 4096
_LEAST_BINS = 20
_ROUNDS = 60
_ENOUGH = 1e-7


@dataclass(frozen=True)
class Modulated:
    """Rates of the quiet and the busy state, and how long each lasts in the mean (exponentially spread)."""

    rates_per_s: tuple[float, float]
    sojourns_s: tuple[float, float]

    def idc(self, seconds: float) -> float:
        """Variance over mean of counts over so long, in the long run (Heffes and Lucantoni 1986, for two states)."""
        leave = [1 / sojourn for sojourn in self.sojourns_s]
        both = leave[0] + leave[1]
        quiet, busy = leave[1] / both, leave[0] / both
        mean = quiet * self.rates_per_s[0] + busy * self.rates_per_s[1]
        step = self.rates_per_s[1] - self.rates_per_s[0]
        spread = 2 * quiet * busy * step * step / (mean * both)
        return 1 + spread * (1 - (1 - exp(-both * seconds)) / (both * seconds))


def fit_modulated(times_s: "NDArray[Any]") -> Modulated | None:
    """From arrival times in order, the first at 0; None where the rate does not change, or nothing tells."""
    import numpy as np

    span_s = float(times_s[-1])
    bin_s = max(_LEAST_BIN_S, span_s / _MOST_BINS)
    bins = int(span_s // bin_s)
    if bins < _LEAST_BINS:
        return None
    counts = np.bincount(np.minimum((times_s // bin_s).astype(np.int64), bins))[:bins]
    mean = float(counts.mean())
    if mean <= 0 or counts.var() <= mean:
        return None
    rates = np.array([0.25 * mean, max(2.0 * mean, float(counts[counts > mean].mean()))])
    stay = np.array([[0.95, 0.05], [0.05, 0.95]])
    start = np.array([0.5, 0.5])
    last = -np.inf
    for _ in range(_ROUNDS):
        shares, moves, likelihood = _expect(counts, rates, stay, start)
        mass = shares.sum(axis=0)
        rates = np.maximum((shares * counts[:, None]).sum(axis=0) / mass, 1e-9)
        stay = moves / moves.sum(axis=1, keepdims=True)
        start = shares[0]
        if likelihood - last < _ENOUGH * abs(likelihood):
            break
        last = likelihood
    order = np.argsort(rates)
    leave = 1 - np.diag(stay)[order]
    if rates[order][1] <= rates[order][0] or leave.min() <= 0:
        return None
    quiet, busy = (float(rate / bin_s) for rate in rates[order])
    lasts = [float(bin_s / one) for one in leave]
    if max(lasts) > span_s:
        return None  # A state that was never seen to end is no state of a cycle.
    return Modulated((quiet, busy), (lasts[0], lasts[1]))


def _expect(
    counts: "NDArray[Any]", rates: "NDArray[Any]", stay: "NDArray[Any]", start: "NDArray[Any]"
) -> "tuple[NDArray[Any], NDArray[Any], float]":
    """Shares of each state in each bin, expected moves between states, and the log-likelihood up to a constant."""
    import numpy as np

    scores = counts[:, None] * np.log(rates) - rates
    top = scores.max(axis=1)
    fits = np.exp(scores - top[:, None]).tolist()
    (a00, a01), (a10, a11) = stay.tolist()
    ahead, scales = [], []
    one, two = start.tolist()
    for first, second in fits:
        one, two = one * first, two * second
        scale = one + two
        one, two = one / scale, two / scale
        ahead.append((one, two))
        scales.append(scale)
        one, two = one * a00 + two * a10, one * a01 + two * a11
    back = [(1.0, 1.0)]
    for (first, second), scale in zip(reversed(fits[1:]), reversed(scales[1:]), strict=True):
        later = back[-1]
        one, two = first * later[0] / scale, second * later[1] / scale
        back.append((a00 * one + a01 * two, a10 * one + a11 * two))
    forward, backward, fit = np.array(ahead), np.array(back[::-1]), np.array(fits)
    shares = forward * backward
    shares /= shares.sum(axis=1, keepdims=True)
    later = fit[1:] * backward[1:] / np.array(scales[1:])[:, None]
    moves = stay * (forward[:-1].T @ later)
    return shares, moves, float(np.log(scales).sum() + top.sum())

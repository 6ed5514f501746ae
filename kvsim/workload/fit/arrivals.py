"""Arrival processes fitted to the times of a trace, each with how far its gaps and its clustering are from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvsim.request import PS_PER_S
from kvsim.workload.fit.lengths import gamma_shape, weibull_shape_and_scale
from kvsim.workload.fit.modulated import Modulated, fit_modulated
from kvsim.workload.statistics.arrivals import BIN_S, Arrivals
from kvsim.workload.streams import Streams

if TYPE_CHECKING:
    from numpy.typing import NDArray

TIED = 0.5
"""Share of gaps of 0 from which on a clock is too coarse to tell gaps by."""

LEAST_ARRIVALS = 10
"""Fewer gaps tell no law."""


@dataclass(frozen=True)
class ArrivalFit:
    """One process: its name, its parameters, the distance of its gaps, and its index of dispersion over `BIN_S`.

    `ks` is Kolmogorov's distance from all gaps, None where gaps have no closed form; `idc` that of a long run.
    """

    process: str
    parameters: dict[str, Any]
    ks: float | None
    idc: float | None


def fit_arrivals(times_ps: Sequence[int], measured: Arrivals) -> list[ArrivalFit]:
    """Renewal processes by distance, then the modulated one; empty where there is too little to tell.

    Gaps of 0 are the clock's, not the traffic's: laws of the greatest likelihood are fitted to the others, and the
    rate is that of all. Where more than `TIED` of them are, arrivals are first spread evenly at random over the clock's
    tick, which is the median of the gaps above 0; the same each time.
    """
    import numpy as np

    if len(times_ps) < LEAST_ARRIVALS or not measured.rate_per_s:
        return []
    first_ps = min(times_ps)
    times_s = np.sort(np.fromiter(((time - first_ps) / PS_PER_S for time in times_ps), float, len(times_ps)))
    if measured.tied_share > TIED:
        times_s = _untied(times_s)
    gaps_s = np.diff(times_s)
    above = gaps_s[gaps_s > 0]
    mean = float(gaps_s.mean())
    found = [_fit("poisson", {}, gaps_s, lambda at: -np.expm1(-at / mean), 1.0)]
    shape = gamma_shape(above)
    if shape is not None:
        from scipy.special import gammainc

        found.append(
            _fit("gamma", {"cv": shape**-0.5}, gaps_s, lambda at: gammainc(shape, at * shape / mean), 1 / shape)
        )
    weibull = weibull_shape_and_scale(above)
    if weibull is not None:
        k = weibull[0]
        cv, unit = _weibull_cv_and_mean(k)
        found.append(_fit("weibull", {"cv": cv}, gaps_s, lambda at: -np.expm1(-((at * unit / mean) ** k)), cv * cv))
    found.sort(key=lambda fit: 2.0 if fit.ks is None else fit.ks)
    modulated = fit_modulated(times_s)
    return found if modulated is None else [*found, _modulated(modulated)]


def _untied(times_s: "NDArray[Any]") -> "NDArray[Any]":
    import numpy as np

    gaps_s = np.diff(times_s)
    tick_s = float(np.median(gaps_s[gaps_s > 0]))
    spread = np.sort(times_s + Streams(0).generator("ties").uniform(0, tick_s, len(times_s)))
    found: NDArray[Any] = spread - spread[0]
    return found


def _fit(process: str, parameters: dict[str, Any], gaps_s: Any, share: Any, idc: float) -> ArrivalFit:
    """With the distance between the gaps and a law; a renewal process over long times has the IDC cv^2."""
    import numpy as np

    ordered = np.sort(gaps_s)
    law = share(ordered)
    number = len(ordered)
    upper = np.arange(1, number + 1) / number - law
    lower = law - np.arange(number) / number
    return ArrivalFit(process, parameters, float(max(upper.max(), lower.max())), idc)


def _modulated(fit: Modulated) -> ArrivalFit:
    parameters = {"rates_per_s": list(fit.rates_per_s), "sojourns_s": list(fit.sojourns_s)}
    return ArrivalFit("mmpp", parameters, None, fit.idc(BIN_S))


def _weibull_cv_and_mean(shape: float) -> tuple[float, float]:
    """Of a Weibull law of this shape and scale 1."""
    from math import exp, expm1, gamma, lgamma

    log_ratio = lgamma(1 + 2 / shape) - 2 * lgamma(1 + 1 / shape)
    return expm1(log_ratio) ** 0.5, gamma(1 + 1 / shape) if shape > 0.02 else exp(lgamma(1 + 1 / shape))

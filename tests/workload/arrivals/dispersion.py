"""Counts of arrivals in windows, and what their dispersion must be."""

import numpy as np
from scipy.linalg import expm

from kvsim.request import PS_PER_S


def counts(process, width_s, windows, seed=0):
    """Arrivals in each of so many windows."""
    found = np.zeros(windows, dtype=int)
    for time_ps in process.arrivals_ps(np.random.default_rng(seed)):
        window = time_ps // round(width_s * PS_PER_S)
        if window >= windows:
            return found
        found[window] += 1
    return found


def own_idc(process, window_s):
    """The index of dispersion of a Markov-modulated Poisson process, from its matrices.

    1 + 2 / (mean t) x the integral of (t - u) x the covariance of the rate over u from 0 to t (Fischer and
    Meier-Hellstern 1993).
    """
    factor = process.rate / process.own_rate
    rates = np.array(process.rates) * factor
    sojourns = np.array(process.sojourns_s) / (factor if process.scale == "time" else 1)
    k = len(rates)
    moves = np.full((k, k), 1 / (k - 1)) if process.moves is None else np.array(process.moves)
    np.fill_diagonal(moves, 0)
    generator = (moves - np.eye(k)) / sojourns[:, None]
    pieces = 4_000
    width = window_s / pieces
    later, step = expm(generator * width / 2) @ rates, expm(generator * width)
    integral = 0.0
    for piece in range(pieces):
        covariance = (np.array(process.presence) * rates) @ later - process.rate**2
        integral += (window_s - (piece + 0.5) * width) * covariance * width
        later = step @ later
    return 1 + 2 * integral / (process.rate * window_s)

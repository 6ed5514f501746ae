"""A queue whose truth is known: M/M/1 by Lindley's recursion, many at once, in order of arrival.

W(n+1) = max(0, W(n) + S(n) - A(n+1)); the time in the system of a stationary one is exponential with rate
mu - lambda (Kleinrock, Queueing Systems I, 1975, section 5.6).
"""

import math

import numpy as np


def waits(services, gaps):
    """Waiting times over the last axis, from an empty queue: the walk of S - A above its lowest point so far."""
    walk = np.cumsum(services[..., :-1] - gaps[..., 1:], axis=-1)
    lowest = np.minimum(np.minimum.accumulate(walk, axis=-1), 0.0)
    return np.concatenate([np.zeros_like(walk[..., :1]), walk - lowest], axis=-1)


class Streams:
    """The same arrivals and the same work, to be served by servers of different speed."""

    def __init__(self, generator, load, shape):
        self.load = load
        self._gaps = generator.exponential(1 / load, shape)
        self._work = generator.exponential(1.0, shape)

    def waits(self, speed=1.0):
        return waits(self._work / speed, self._gaps)

    def stays(self, speed=1.0):
        """Times in the system."""
        return self.waits(speed) + self._work / speed

    def mean_stay(self, speed=1.0):
        return 1 / (speed - self.load)

    def percentile_stay(self, percent, speed=1.0):
        return -math.log(1 - percent / 100) * self.mean_stay(speed)

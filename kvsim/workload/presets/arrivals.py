"""Arrivals as a recording has them, by name."""

from typing import Any

from kvsim.workload.arrivals import ARRIVALS, ArrivalProcess, Mmpp
from kvsim.workload.presets.files import arrival_preset

_FACTS = ("about", "source", "licence", "measured_idc_60s", "measured_cv")
"""What an entry says beside the process and its parameters."""


def preset_arrivals(name: str, rate: float | None = None, **changes: Any) -> ArrivalProcess:
    """The process of preset `name` at `rate` arrivals per second (None: as recorded).

    Another rate stretches time where the process has states, so that bursts keep their number of arrivals, and
    multiplies the rate of every hour or client elsewhere; `changes` replace parameters (`scale: count` keeps the
    duration of bursts). InputError for an unknown name, ValueError for a parameter that the process lacks.
    """
    entry = dict(arrival_preset(name))
    parameters = {word: value for word, value in entry.items() if word not in _FACTS} | changes
    process = ARRIVALS[parameters.pop("process")]
    own = parameters.pop("rate", None)
    if rate is None:
        rate = own or Mmpp(rate=1.0, **parameters).own_rate
    try:
        return process(rate=rate, **parameters)
    except TypeError:
        known = ", ".join(word for word in parameters if word not in changes)
        raise ValueError(f"arrivals: preset {name} takes {known}; got {', '.join(changes)}") from None

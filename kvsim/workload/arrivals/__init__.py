"""When requests arrive: processes by the name that a scenario gives them, one file each.

`renewal` holds those of independent gaps, `modulated` those whose rate changes with time, `clients` many at once.
"""

from collections.abc import Callable

from kvsim.workload.arrivals.clients import Clients
from kvsim.workload.arrivals.constant import Constant
from kvsim.workload.arrivals.interface import CHUNK, LAST_PS, ArrivalProcess, as_written
from kvsim.workload.arrivals.modulated.diurnal import Diurnal
from kvsim.workload.arrivals.modulated.mmpp import Mmpp
from kvsim.workload.arrivals.modulated.on_off import OnOff
from kvsim.workload.arrivals.modulated.ramp import Ramp
from kvsim.workload.arrivals.modulated.spikes import Spikes
from kvsim.workload.arrivals.modulated.stages import Stages
from kvsim.workload.arrivals.renewal.gamma import Gamma
from kvsim.workload.arrivals.renewal.poisson import Poisson
from kvsim.workload.arrivals.renewal.weibull import Weibull

ARRIVALS: dict[str, Callable[..., ArrivalProcess]] = {
    Poisson.process: Poisson,
    Constant.process: Constant,
    Gamma.process: Gamma,
    Weibull.process: Weibull,
    Mmpp.process: Mmpp,
    OnOff.process: OnOff,
    Diurnal.process: Diurnal,
    Spikes.process: Spikes,
    Ramp.process: Ramp,
    Stages.process: Stages,
    Clients.process: Clients,
}
"""Arrival processes by the name that a scenario gives them."""

__all__ = [
    "ARRIVALS",
    "CHUNK",
    "LAST_PS",
    "ArrivalProcess",
    "Clients",
    "Constant",
    "Diurnal",
    "Gamma",
    "Mmpp",
    "OnOff",
    "Poisson",
    "Ramp",
    "Spikes",
    "Stages",
    "Weibull",
    "as_written",
]

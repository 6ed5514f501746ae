"""A trace's traffic as a scenario would give it: laws of lengths, a process of arrivals, and how far each is off."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from kvsim.workload.fit.arrivals import ArrivalFit, fit_arrivals
from kvsim.workload.fit.lengths import LengthFit, fit_lengths
from kvsim.workload.fit.scenario_names import arrival_settings, length_settings
from kvsim.workload.statistics.arrivals import Arrivals
from kvsim.workload.statistics.inspect import Inspection

Kind = Literal["quantiles", "mixture", "single"]


@dataclass(frozen=True)
class WorkloadFit:
    """`settings` is the workload section; the fits are all that were tried, those in it first."""

    trace: str
    requests: int
    settings: dict[str, Any]
    prompt: list[LengthFit]
    output: list[LengthFit]
    arrivals: list[ArrivalFit]
    measured: Arrivals | None
    chosen: dict[str, str]

    def record(self) -> dict[str, Any]:
        """Plain values ready for JSON."""
        return asdict(self) | {"workload": self.settings}


def fit_workload(found: Inspection, kind: Kind = "quantiles") -> WorkloadFit:
    """Fit all laws, and choose: lengths of this kind, arrivals by the nearest gaps among what a scenario can say.

    A modulated process is chosen before them where a scenario can say it and the trace clusters. A trace without times
    gets no rate: the section then needs one.
    """
    samples: dict[str, Sequence[int]] = {"prompt_tokens": found.prompts, "output_tokens": found.outputs}
    fits = {key: fit_lengths(sample) for key, sample in samples.items()}
    processes = fit_arrivals(found.times_ps, found.arrivals) if found.arrivals is not None else []
    rate = found.arrivals.rate_per_s if found.arrivals is not None else None
    preferred = _by_preference(processes, found.arrivals)
    settings, chosen = settings_of(rate, preferred, len(found.prompts), fits, samples, kind)
    return WorkloadFit(
        trace=found.trace,
        requests=len(found.prompts),
        settings=settings,
        prompt=fits["prompt_tokens"],
        output=fits["output_tokens"],
        arrivals=processes,
        measured=found.arrivals,
        chosen=chosen,
    )


def settings_of(
    rate_per_s: float | None,
    processes: Sequence[ArrivalFit],
    requests: int,
    lengths: Mapping[str, Sequence[LengthFit]],
    samples: Mapping[str, Sequence[int]],
    kind: Kind,
) -> tuple[dict[str, Any], dict[str, str]]:
    """The workload section, and the names of what was chosen: of each the first that a scenario can say."""
    settings: dict[str, Any] = {}
    chosen: dict[str, str] = {}
    if rate_per_s:
        settings["rate"] = f"{rate_per_s:.6g}/s"
        for fit in processes:
            arrivals = arrival_settings(fit, rate_per_s)
            if arrivals is not None:
                settings["arrivals"], chosen["arrivals"] = arrivals, fit.process
                break
    settings["requests"] = requests
    for key, fits in lengths.items():
        for length in _of_kind(fits, kind):
            law = length_settings(length, min(samples[key]), max(samples[key]))
            if law is not None:
                settings[key], chosen[key] = law, length.law
                break
    return settings, chosen


def _of_kind(fits: Sequence[LengthFit], kind: Kind) -> list[LengthFit]:
    """Those of the kind first, then the grid, which every scenario can say."""
    wanted = [fit for fit in fits if fit.law == kind or (kind == "single" and fit.law not in ("quantiles", "mixture"))]
    return [*wanted, *(fit for fit in fits if fit not in wanted)]


def _by_preference(fits: Sequence[ArrivalFit], measured: Arrivals | None) -> list[ArrivalFit]:
    """The modulated one first where counts cluster far more than its gaps' spread alone would have them."""
    if measured is None or measured.idc is None or measured.cv is None or measured.idc <= _CLUSTERS * measured.cv**2:
        return list(fits)
    return sorted(fits, key=lambda fit: fit.process != "mmpp")


_CLUSTERS = 1.5
"""How many times cv^2, which a renewal process has over long times, the IDC must be."""

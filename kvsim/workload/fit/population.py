"""A ServeGen population's traffic as a scenario would give it: all clients together, as one.

Lengths are those of all requests. Gaps are of a gamma law with the median CV of clients' windows by rate: clients that
come and go make more than that.
"""

from typing import TYPE_CHECKING, Any

from kvsim.errors import InputError
from kvsim.workload.fit.arrivals import ArrivalFit
from kvsim.workload.fit.lengths import fit_lengths
from kvsim.workload.fit.workload import Kind, WorkloadFit, settings_of
from kvsim.workload.statistics.population import Laws, PopulationStatistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROMPT_FIELDS = ("input_tokens", "text_tokens")
"""What a prompt's length is called: of language models, and of multimodal ones (whose images come on top)."""
OUTPUT_FIELD = "output_tokens"
_SAMPLE = 10_000
"""Quantiles of a law that stand for it."""


def fit_population(found: PopulationStatistics, laws: Laws, kind: Kind = "quantiles") -> WorkloadFit:
    """Fit all laws and choose those of this kind. InputError where the clients tell no lengths."""
    prompt_field = next((name for name in PROMPT_FIELDS if laws.law(name)), None)
    if prompt_field is None or not laws.law(OUTPUT_FIELD):
        raise InputError(f"{found.trace}: no client has {' or '.join(PROMPT_FIELDS)} and {OUTPUT_FIELD} to fit")
    samples = {
        "prompt_tokens": _quantiles(laws.law(prompt_field)),
        "output_tokens": _quantiles(laws.law(OUTPUT_FIELD)),
    }
    fits = {key: fit_lengths(sample) for key, sample in samples.items()}
    arrivals = [ArrivalFit("poisson", {}, None, 1.0)]
    if found.cv is not None:
        arrivals.insert(0, ArrivalFit("gamma", {"cv": found.cv}, None, found.cv * found.cv))
    requests = max(1, round(found.rate_per_s * found.span_s))
    settings, chosen = settings_of(found.rate_per_s or None, arrivals, requests, fits, samples, kind)
    return WorkloadFit(
        trace=found.trace,
        requests=requests,
        settings=settings,
        prompt=fits["prompt_tokens"],
        output=fits["output_tokens"],
        arrivals=arrivals,
        measured=None,
        chosen=chosen,
    )


def _quantiles(law: dict[float, float]) -> list[int]:
    """Lengths of at least a token at evenly spaced shares of the weight."""
    import numpy as np

    values = np.array(sorted(law))
    weights = np.array([law[value] for value in values])
    weights, values = weights[values >= 1], values[values >= 1]
    reached: NDArray[Any] = np.cumsum(weights) / weights.sum()
    shares = (np.arange(_SAMPLE) + 0.5) / _SAMPLE
    at = np.minimum(np.searchsorted(reached, shares), len(values) - 1)
    lengths: list[int] = np.rint(values[at]).astype(int).tolist()
    return lengths

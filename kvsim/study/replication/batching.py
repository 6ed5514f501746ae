"""One long run in place of many: its measured window cut into arrival windows, each a batch that is drained.

Only what single requests tell can be cut like this.
"""

import numpy as np

from kvsim.errors import InputError
from kvsim.metrics.histogram import PERCENTILES
from kvsim.metrics.result import Result
from kvsim.study.replication.runs.observing import LATENCIES, Observing
from kvsim.study.replication.runs.replicate import Replicate
from kvsim.study.statistics.batches import FINER, arrival_windows, batch_correlation
from kvsim.study.statistics.intervals import Array


def batches_of(result: Result, observing: Observing, count: int) -> list[Replicate]:
    """The run as so many replicates: the latencies of the requests that arrive in each window.

    InputError where the measured window is not one stretch of time, or where a batch has no request.
    """
    start_s, end_s = result.metrics["window_s"]
    if result.scenario_resolved["window.until"]["value"] == "saturated" or end_s <= start_s:
        raise InputError(
            f"--batches {count}: the measured window of {result.name} is no single stretch of time to be cut; leave "
            "out window.until: saturated, or take --replications"
        )
    requests = observing.by_request()
    windows = arrival_windows(requests["arrival_s"], (start_s, end_s), count)
    made = []
    for number in range(count):
        inside = windows == number
        if not inside.any():
            raise InputError(
                f"--batches {count}: no request of {result.name} arrives in some of them; take fewer batches or more "
                "requests"
            )
        latencies = {name: _present(requests[name][inside]) for name in LATENCIES}
        metrics = {name: _spread(values) for name, values in latencies.items() if values.size}
        made.append(
            Replicate(
                seed=result.seed,
                metrics=metrics,
                latencies=latencies,
                waiting=np.empty(0),
                present=np.empty(0),
                arrivals=int(inside.sum()),
                settles=False,
            )
        )
    return made


def correlation(run: Replicate, count: int) -> float | None:
    """How the TTFT of neighbouring batches correlates; None where there are too few requests to tell."""
    series = run.latencies.get("ttft_s", np.empty(0))
    return float(batch_correlation(series, count)) if series.size >= count * FINER else None


def _spread(values: Array) -> dict[str, float]:
    percentiles = {f"p{percent}": float(np.percentile(values, percent)) for percent in PERCENTILES}
    return {"mean": float(values.mean()), **percentiles}


def _present(values: Array) -> Array:
    return values[~np.isnan(values)]

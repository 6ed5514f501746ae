"""What a scraper would have read: Prometheus text at the end of a run, or OpenMetrics with a look every so often.

The first is what `/metrics` of a server would have shown (text format 0.0.4, without times); the second has times,
seconds since the run began, as if that had been in 1970, and is what `promtool tsdb create-blocks-from openmetrics`
takes. Both are measured sides of `kvsim compare-run`.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from kvsim.errors import InputError
from kvsim.metrics.result import Result
from kvsim.reporting.exports.families import Family, Series, families
from kvsim.reporting.exports.interface import Export, Files, Options, Source
from kvsim.study.recorded.measured import Column

MOST_MOMENTS = 100_000
"""Looks at a run: more are no longer a scrape but the tables, which CSV has."""


def _files(source: Source, options: Options) -> Files:
    result = source.recorded(PROMETHEUS.name, "requests", "steps", "memory", "events", "preemptions")
    times_s = moments(result, options.every_s)
    yield "metrics.txt", text(result) if times_s is None else open_metrics(result, times_s)


def moments(result: Result, every_s: float | None) -> Column | None:
    """From the start of the run to its end, every so many seconds; None where the end alone is asked for."""
    if every_s is None:
        return None
    end_s = float(result.metrics["simulated_s"])
    looks = math.ceil(end_s / every_s)
    if looks > MOST_MOMENTS:
        raise InputError(
            f"--every {every_s:g}s: are {looks:,} looks at a run of {end_s:,.1f} s; take at least "
            f"{end_s / MOST_MOMENTS:.2g}s, for {MOST_MOMENTS:,}"
        )
    return np.append(np.arange(looks) * every_s, end_s)


def text(result: Result) -> Iterator[str]:
    """The text format, as at the end of the run."""
    end_s = np.array([float(result.metrics["simulated_s"])])
    for family in families(result, end_s):
        name = f"{family.name}_total" if family.kind == "counter" else family.name
        yield from _head(name, family)
        for series in family.series:
            yield from _samples(family, series, 0)


def open_metrics(result: Result, times_s: Column) -> Iterator[str]:
    """OpenMetrics, as at each of these moments."""
    for family in families(result, times_s):
        yield from _head(family.name, family)
        for series in family.series:
            for moment, time_s in enumerate(times_s):
                if not np.isnan(series.values[moment]):
                    yield from _samples(family, series, moment, f" {float(time_s)!r}")
    yield "# EOF\n"


def _head(name: str, family: Family) -> Iterator[str]:
    yield f"# HELP {name} {family.meaning}\n# TYPE {name} {family.kind}\n"


def _samples(family: Family, series: Series, moment: int, stamp: str = "") -> Iterator[str]:
    name, value = family.name, float(series.values[moment])
    if series.counts is None:
        total = "_total" if family.kind == "counter" else ""
        if not math.isnan(value):
            yield f"{name}{total}{_labels(series.labels)} {value!r}{stamp}\n"
        return
    counts = series.counts[moment]
    for edge, count in zip((*family.edges, math.inf), counts, strict=True):
        edge_text = "+Inf" if math.isinf(edge) else repr(float(edge))
        yield f"{name}_bucket{_labels({**series.labels, 'le': edge_text})} {float(count)!r}{stamp}\n"
    yield f"{name}_count{_labels(series.labels)} {float(counts[-1])!r}{stamp}\n"
    yield f"{name}_sum{_labels(series.labels)} {value!r}{stamp}\n"


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


PROMETHEUS = Export(
    name="prometheus",
    meaning="Prometheus text with vLLM's names, at the end of the run or --every so often",
    files=_files,
    over_time=True,
)

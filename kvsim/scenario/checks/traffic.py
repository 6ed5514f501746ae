"""Whether a workload says all it needs, and nothing that means nothing."""

import os
from collections.abc import Iterator
from typing import Any

from kvsim.scenario.checks.laws import arrival_mistakes, length_mistakes
from kvsim.scenario.checks.recorded import recorded_mistakes
from kvsim.scenario.checks.references import trace_reference
from kvsim.scenario.checks.sessions import session_mistakes
from kvsim.scenario.messages import MISSING, Mistake, Origins, suggestion
from kvsim.scenario.reading.loading import Plain
from kvsim.scenario.schema.generated.arrivals import OWN_RATE
from kvsim.units import parse_duration

GENERATED = (
    *("arrivals", "preset", "lengths_of", "prompt_tokens", "output_tokens"),
    *("prefix", "layers", "dataset"),
)
"""The keys of `workload` that only generated traffic has; of `arrivals`, those without sessions."""


def workload_mistakes(workload: Plain, has_horizon: bool, origins: Origins) -> Iterator[Mistake]:
    """Yield what is missing in `workload`, or given beside a trace or a distribution that it means nothing to."""
    trace = workload.get("trace")
    if trace is not None:
        yield from recorded_mistakes(workload, GENERATED)
        if isinstance(trace, str) and trace:
            yield from _trace(trace, origins)
    else:
        for key in _needed(workload):
            if key not in workload:
                yield Mistake(
                    f"workload.{key}",
                    MISSING,
                    "is missing",
                    f"generated traffic needs {_EXAMPLES[key]}; or give workload.trace",
                )
        if "requests" not in workload and not has_horizon and not _ends(workload):
            yield Mistake(
                "workload.requests",
                MISSING,
                "is missing",
                "generated traffic needs an end: requests: 1000, or a horizon",
            )
        for key, default in (("format", None), ("on_bad_row", "error"), ("sort", False), ("read", None)):
            if key == "read" and "lengths_of" in workload:
                continue
            if workload.get(key, default) != default:
                yield Mistake(f"workload.{key}", workload[key], "is about a trace", "remove it, or give workload.trace")
    if isinstance(arrivals := workload.get("arrivals"), dict):
        yield from arrival_mistakes(arrivals, workload)
    yield from _preset(workload, origins)
    for key in ("prompt_tokens", "output_tokens"):
        lengths = workload.get(key)
        if isinstance(lengths, dict):
            yield from length_mistakes(lengths, f"workload.{key}")

    yield from session_mistakes(workload)
    yield from _warm(workload)
    yield from _reshape(workload.get("reshape"))
    yield from _prefix(workload)


def class_mistakes(slo: Any, workload: Plain) -> Iterator[Mistake]:
    """Yield classes of service with goals that no kind of client has."""
    classes = slo.get("classes") if isinstance(slo, dict) else None
    mix = workload.get("mix")
    # A trace without a mix brings classes of its own.
    if not isinstance(classes, dict) or ("trace" in workload and mix is None):
        return
    kinds = [kind.get("slo_class") for kind in mix if isinstance(kind, dict)] if isinstance(mix, list) else []
    known = [name for name in kinds if isinstance(name, str) and name]
    for name in classes:
        if name not in known:
            remedy = suggestion(name, known) if known else "give slo_class to the kinds of client in workload.mix"
            yield Mistake(f"slo.classes.{name}", MISSING, "no kind of client in workload.mix is of this class", remedy)


def _warm(workload: Plain) -> Iterator[Mistake]:
    """A warm start of nothing, of texts that nobody shares, or of all that was to come."""
    warm = workload.get("warm")
    if not isinstance(warm, dict):
        return
    shared, requests, all_requests = warm.get("shared"), warm.get("requests"), workload.get("requests")
    if requests is None and shared in (None, False):
        remedy = "give requests: 500, or shared: true; or leave workload.warm out for a cold start"
        yield Mistake("workload.warm", MISSING, "says nothing", remedy)
    if shared is True and not any(key in workload for key in ("prefix", "layers", "dataset")):
        remedy = "give workload.prefix, layers or dataset, or warm it with requests"
        yield Mistake("workload.warm.shared", True, "is given, and no texts are shared that are known", remedy)
    if isinstance(requests, int) and isinstance(all_requests, int) and requests >= all_requests:
        remedy = f"ask for more than {requests} requests"
        yield Mistake("workload.warm.requests", requests, f"leaves none of {all_requests} to arrive", remedy)


def _prefix(workload: Plain) -> Iterator[Mistake]:
    """A system prompt that no prompt is long enough for."""
    prefix, lengths = workload.get("prefix"), workload.get("prompt_tokens")
    if not isinstance(prefix, dict) or not isinstance(lengths, dict):
        return
    tokens, longest = prefix.get("tokens"), lengths.get("value", lengths.get("max"))
    if isinstance(tokens, int) and isinstance(longest, int) and tokens >= longest:
        problem = f"leaves nothing of prompts of at most {longest} tokens, which include it"
        fewer = f"give at most {longest - 1}" if longest > 1 else "leave workload.prefix out"
        yield Mistake("workload.prefix.tokens", tokens, problem, f"{fewer}, or give longer prompts")


_EXAMPLES = {
    "rate": "a rate, for example rate: 8/s",
    "prompt_tokens": "prompt lengths, for example {distribution: lognormal, mean: 512, sigma: 0.7}",
    "output_tokens": "output lengths, for example output_tokens: 128",
}


def _needed(workload: Plain) -> list[str]:
    """The keys without which generated traffic cannot be."""
    arrivals = workload.get("arrivals")
    process = arrivals.get("process") if isinstance(arrivals, dict) else None
    needed = [] if process in OWN_RATE or "clients" in workload else ["rate"]
    return needed if "lengths_of" in workload else [*needed, "prompt_tokens", "output_tokens"]


def _reshape(reshape: Any) -> Iterator[Mistake]:
    """A window that ends before it begins, and a share of nothing."""
    if not isinstance(reshape, dict):
        return
    if reshape.get("share") in (0, "0%"):
        yield Mistake("workload.reshape.share", reshape["share"], "keeps nothing", "give a share above 0")
    start, until = (_duration(reshape.get(key)) for key in ("start", "until"))
    if start is not None and until is not None and until <= start:
        problem = f"is not after start, {reshape['start']}"
        yield Mistake("workload.reshape.until", reshape["until"], problem, "the window must not be empty")


def _duration(value: object) -> int | None:
    try:
        return parse_duration(value)
    except ValueError:  # told by pydantic, or not given at all
        return None


def _ends(workload: Plain) -> bool:
    """Whether arrivals end by themselves."""
    reshape = workload.get("reshape")
    if isinstance(reshape, dict) and "until" in reshape:
        return True
    arrivals = workload.get("arrivals")
    return isinstance(arrivals, dict) and arrivals.get("process") == "stages" and not arrivals.get("repeat")


def _preset(workload: Plain, origins: Origins) -> Iterator[Mistake]:
    """A name that no preset has, or lengths given twice."""
    name = workload.get("preset")
    if isinstance(name, str) and name:
        from kvsim.workload.presets import length_presets

        if name not in length_presets():
            names = list(length_presets())
            yield Mistake("workload.preset", name, "is no preset of lengths", suggestion(name, names))
    rows = workload.get("lengths_of")
    if rows is None:
        return
    for key in ("prompt_tokens", "output_tokens", "preset"):
        if key in workload:
            yield Mistake(f"workload.{key}", MISSING, "is given beside lengths_of", f"keep {key} or lengths_of")
    if isinstance(rows, str) and rows:
        yield from _trace(rows, origins, "workload.lengths_of")


def _trace(trace: str, origins: Origins, key: str = "workload.trace") -> Iterator[Mistake]:
    from kvsim.workload.trace import PACKAGED

    path = trace_reference(trace, key, origins)
    if trace in PACKAGED or os.path.isfile(path):
        return
    if os.path.isdir(path) and key == "workload.trace":
        return  # Some traces are: a file for each session.
    if os.path.isdir(path):
        yield Mistake(key, trace, "is a folder", "name the trace file in it")
        return
    base = "the working folder" if not os.path.dirname(path) else os.path.dirname(path)
    yield Mistake(
        key,
        trace,
        f"is neither a packaged trace nor a file (looked in {base})",
        suggestion(trace, list(PACKAGED)),
    )

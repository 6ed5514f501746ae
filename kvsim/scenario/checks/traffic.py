"""Whether a workload says all it needs, and nothing that means nothing."""

import os
from collections.abc import Iterator

from kvsim.scenario.checks.references import trace_reference
from kvsim.scenario.loading import Plain
from kvsim.scenario.messages import MISSING, Mistake, Origins, alternatives, suggestion

GENERATED = ("arrivals", "prompt_tokens", "output_tokens", "prefix")
"""The keys of `workload` that only generated traffic has."""


def workload_mistakes(workload: Plain, has_horizon: bool, origins: Origins) -> Iterator[Mistake]:
    """Yield what is missing in `workload`, or given beside a trace or a distribution that it means nothing to."""
    trace = workload.get("trace")
    if trace is not None:
        for key in GENERATED:
            if key in workload:
                yield Mistake(
                    f"workload.{key}",
                    MISSING,
                    "a trace brings its own",
                    f"remove it, or workload.trace ({trace})",
                )
        if isinstance(trace, str) and trace:
            yield from _trace(trace, origins)
    else:
        for key in ("rate", "prompt_tokens", "output_tokens"):
            if key not in workload:
                yield Mistake(
                    f"workload.{key}",
                    MISSING,
                    "is missing",
                    f"generated traffic needs {_EXAMPLES[key]}; or give workload.trace",
                )
        if "requests" not in workload and not has_horizon:
            yield Mistake(
                "workload.requests",
                MISSING,
                "is missing",
                "generated traffic needs an end: requests: 1000, or a horizon",
            )
        for key, default in (("format", None), ("on_bad_row", "error"), ("sort", False)):
            if workload.get(key, default) != default:
                yield Mistake(f"workload.{key}", workload[key], "is about a trace", "remove it, or give workload.trace")
    arrivals = workload.get("arrivals")
    if isinstance(arrivals, dict):
        process = arrivals.get("process", "poisson")
        if process == "gamma" and "cv" not in arrivals:
            yield Mistake("workload.arrivals.cv", MISSING, "is missing", "gamma arrivals need cv, for example cv: 2")
        elif process in ("poisson", "constant") and "cv" in arrivals:
            yield Mistake(
                "workload.arrivals.cv",
                arrivals["cv"],
                f"means nothing to {process} arrivals",
                "remove it, or write process: gamma",
            )
    for key in ("prompt_tokens", "output_tokens"):
        lengths = workload.get(key)
        if isinstance(lengths, dict):
            yield from _lengths(lengths, f"workload.{key}")

    yield from _prefix(workload)


def _prefix(workload: Plain) -> Iterator[Mistake]:
    """A system prompt that no prompt is long enough for."""
    prefix, lengths = workload.get("prefix"), workload.get("prompt_tokens")
    if not isinstance(prefix, dict) or not isinstance(lengths, dict):
        return
    tokens, longest = prefix.get("tokens"), lengths.get("value", lengths.get("max"))
    if isinstance(tokens, int) and isinstance(longest, int) and tokens >= longest:
        problem = f"leaves nothing of prompts of at most {longest} tokens, which include it"
        yield Mistake("workload.prefix.tokens", tokens, problem, f"give at most {longest - 1}, or longer prompts")


_EXAMPLES = {
    "rate": "a rate, for example rate: 8/s",
    "prompt_tokens": "prompt lengths, for example {distribution: lognormal, mean: 512, sigma: 0.7}",
    "output_tokens": "output lengths, for example output_tokens: 128",
}


def _trace(trace: str, origins: Origins) -> Iterator[Mistake]:
    from kvsim.workload.trace import PACKAGED

    key = "workload.trace"
    path = trace_reference(trace, key, origins)
    if trace in PACKAGED or os.path.isfile(path):
        return
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


def _lengths(lengths: Plain, key: str) -> Iterator[Mistake]:
    from kvsim.scenario.schema.traffic import DISTRIBUTIONS, LengthSettings

    name = lengths.get("distribution")
    if not isinstance(name, str) or name not in DISTRIBUTIONS:
        return
    needed, allowed = DISTRIBUTIONS[name]
    for group in needed:
        given = [word for word in group if word in lengths]
        if not given:
            yield Mistake(f"{key}.{group[0]}", MISSING, "is missing", f"{name} lengths need {alternatives(group)}")
        for word in given[1:]:
            yield Mistake(
                f"{key}.{word}",
                lengths[word],
                f"is given beside {given[0]}",
                f"keep one of {alternatives(group)}",
            )
    known = {word for group in needed for word in group} | set(allowed)
    for word in lengths:
        if word in LengthSettings.model_fields and word not in known and word != "distribution":
            remedy = f"{name} lengths take {', '.join(sorted(known))}"
            yield Mistake(f"{key}.{word}", lengths[word], f"means nothing to {name} lengths", remedy)
    low, high = lengths.get("min"), lengths.get("max")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        yield Mistake(f"{key}.min", low, f"is above max, {high}", "min must be at most max")
        return
    if all(any(word in lengths for word in group) for group in needed) and set(lengths) <= known | {"distribution"}:
        yield from _law(name, {word: lengths[word] for word in lengths if word != "distribution"}, key)


def _law(name: str, parameters: Plain, key: str) -> Iterator[Mistake]:
    """What only the law itself can tell of its parameters, such as how long a length may be."""
    from kvsim.workload.lengths import LENGTHS

    try:
        LENGTHS[name](**parameters)
    except ValueError as error:
        word, colon, problem = str(error).partition(": ")
        yield Mistake(f"{key}.{word}" if colon else key, MISSING, problem if colon else word)

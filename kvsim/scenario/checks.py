"""What one key alone cannot tell: names the catalogue does not know, and keys that contradict one another.

The checks look at plain values, before and whatever pydantic says, so that one load reports every mistake. A
value of the wrong type is left to pydantic.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from kvsim.errors import InputError
from kvsim.scenario.loading import Plain
from kvsim.scenario.messages import MISSING, NO_TEXT, TEXT, Mistake, Origin, Origins, alternatives, is_text, suggestion
from kvsim.scenario.policies import engine_policies

GENERATED = ("arrivals", "prompt_tokens", "output_tokens")
"""The keys of `workload` that only generated traffic has."""


def check(data: Plain, origins: Origins) -> Iterator[Mistake]:
    """Yield every mistake between the keys of a scenario."""
    yield from _finite(data, "")
    yield from _written(data, "")
    yield from _names(data, origins)
    yield from _engine(data, origins)
    yield from _timing(data.get("timing"))
    pool = data.get("pool")
    if isinstance(pool, dict) and len(pool) != 1:
        given = alternatives(sorted(pool)).replace(" or ", " and ") or "nothing"
        yield Mistake("pool", MISSING, f"{given} is given", "give exactly one of blocks, tokens or memory")
    workload = data.get("workload")
    if isinstance(workload, dict):
        yield from _workload(workload, "horizon" in data, origins)


def place_of_path(text: str, key: str, origins: Origins) -> str:
    """Return a path that stands in the scenario, relative to the file that holds it (`--set`: the working
    folder)."""
    origin = origins.get(key, Origin("default"))
    folder = os.path.dirname(origin.file) if origin.line else ""
    return os.path.join(folder, os.path.expanduser(text))


def is_path(text: str) -> bool:
    """Say whether the text can only be a path, not a name: it is rooted, starts with a dot, or names a JSON
    file."""
    return text.startswith((".", "/", "~", "\\")) or text.lower().endswith(".json")


def model_reference(name: str, key: str, origins: Origins) -> str:
    """Return what the catalogue is asked for: the name, or the path of a config.json where there is one."""
    path = place_of_path(name, key, origins)
    if is_path(name):
        return path if is_path(path) else os.path.join(".", path)
    if not os.path.exists(path):
        return name
    from kvsim.catalog.models import model

    try:
        return model(name).name
    except InputError:
        return os.path.join(os.curdir, path)


def trace_reference(trace: str, key: str, origins: Origins) -> str:
    """Return what the workload is asked for: the name of a packaged trace, or the path of a file."""
    from kvsim.workload.trace import PACKAGED

    return trace if trace in PACKAGED else place_of_path(trace, key, origins)


def _finite(value: Any, key: str) -> Iterator[Mistake]:
    if isinstance(value, dict):
        for word, inner in value.items():
            yield from _finite(inner, f"{key}.{word}" if key else word)
    elif isinstance(value, list):
        for inner in value:
            yield from _finite(inner, key)
    elif isinstance(value, float) and not math.isfinite(value):
        yield Mistake(key, value, "is not a finite number", "write a number, with its unit where it has one")


def _written(value: Any, key: str) -> Iterator[Mistake]:
    """Texts that no file can hold: halves of a character, as a wrong escape or a wrong encoding leaves them."""
    if isinstance(value, dict):
        for word, inner in value.items():
            yield from _written(inner, f"{key}.{word}" if key else word)
    elif isinstance(value, list):
        for inner in value:
            yield from _written(inner, key)
    elif isinstance(value, str) and not is_text(value):
        yield Mistake(key, ascii(value), NO_TEXT, TEXT)


def _names(data: Plain, origins: Origins) -> Iterator[Mistake]:
    from kvsim.catalog.footprint import Footprint
    from kvsim.catalog.gpus import gpu
    from kvsim.catalog.models import model
    from kvsim.scenario.schema.fields import MOST

    name, gpu_name = _text(data, "model", "name"), _text(data, "gpu")
    ranks = data.get("tensor_parallel", 1)
    if name:
        try:
            found = model(model_reference(name, "model.name", origins))
            if _whole(ranks) and 0 < ranks <= MOST:
                Footprint(found, tensor_parallel=ranks)
        except InputError as error:
            yield Mistake("model.name", MISSING, str(error))
        except ValueError as error:
            yield Mistake("tensor_parallel", MISSING, str(error).removeprefix("tensor_parallel: "))
    if gpu_name:
        try:
            gpu(gpu_name)
        except InputError as error:
            yield Mistake("gpu", MISSING, str(error))


def _engine(data: Plain, origins: Origins) -> Iterator[Mistake]:
    from kvsim.catalog.engines import profile
    from kvsim.catalog.models import model
    from kvsim.scenario.schema import EngineSettings

    engine = data.get("engine", {})
    if not isinstance(engine, dict):
        return
    name = engine.get("profile", EngineSettings.model_fields["profile"].default)
    if not isinstance(name, str) or not name:
        return
    try:
        rules = profile(name)
    except InputError as error:
        yield Mistake("engine.profile", MISSING, str(error))
        return
    yield from _context(engine.get("max_model_len"), data, origins)
    yield from engine_policies(engine, rules, data)
    budget = engine.get("max_num_batched_tokens", rules.max_num_batched_tokens)
    sequences = engine.get("max_num_seqs", rules.max_num_seqs)
    if _whole(budget) and _whole(sequences) and budget < sequences:
        key = "max_num_batched_tokens" if "max_num_batched_tokens" in engine else "max_num_seqs"
        yield Mistake(
            f"engine.{key}", engine.get(key), f"leaves {budget} tokens a step for {sequences} sequences",
            "max_num_batched_tokens must be at least max_num_seqs",
        )  # fmt: skip
    # A profile whose prompts come whole takes as many tokens a step as the longest has.
    whole = engine.get("chunked_prefill", rules.chunked_prefill) is False
    if not whole or ("max_num_batched_tokens" not in engine and not rules.chunked_prefill):
        return
    longest = engine.get("max_model_len")
    if longest is None and (model_name := _text(data, "model", "name")):
        try:
            longest = model(model_reference(model_name, "model.name", origins)).max_context
        except InputError:
            return
    if _whole(budget) and _whole(longest) and budget < longest:
        key = "chunked_prefill" if "chunked_prefill" in engine else "profile"
        problem = f"computes a prompt in one step of {budget} tokens, but max_model_len is {longest}"
        remedy = f"set engine.max_num_batched_tokens to {longest} or more, or lower engine.max_model_len"
        yield Mistake(f"engine.{key}", engine.get(key, name), problem, remedy)


def _context(limit: Any, data: Plain, origins: Origins) -> Iterator[Mistake]:
    from kvsim.catalog.models import model

    name = _text(data, "model", "name")
    if not _whole(limit) or not name:
        return
    try:
        known = model(model_reference(name, "model.name", origins))
    except InputError:
        return
    if limit > known.max_context:
        problem = f"is more than the context of {known.name}, {known.max_context}"
        yield Mistake("engine.max_model_len", limit, problem, f"give {known.max_context} or less, or leave it out")


def _timing(timing: Any) -> Iterator[Mistake]:
    parameters = {key: value for key, value in timing.items() if key != "name"} if isinstance(timing, dict) else {}
    if not parameters:
        return
    from kvsim.timing.roofline import roofline_parameters

    for name, value in parameters.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                roofline_parameters({name: value})
            except ValueError as error:
                known = [field.name for field in fields(roofline_parameters())]
                if name in known:
                    yield Mistake(f"timing.{name}", MISSING, str(error).removeprefix(f"{name} is "))
                else:
                    remedy = suggestion(name, known)
                    yield Mistake(f"timing.{name}", value, "is given for an unknown key", remedy)


def _workload(workload: Plain, has_horizon: bool, origins: Origins) -> Iterator[Mistake]:
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


def _text(data: Plain, *path: str) -> str:
    value: Any = data
    for word in path:
        value = value.get(word) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

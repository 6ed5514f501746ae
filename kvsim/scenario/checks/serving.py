"""Whether model, card, engine and step times go together."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from kvsim.errors import InputError
from kvsim.scenario.checks.policies import engine_policies
from kvsim.scenario.checks.references import is_whole, model_reference, place_of_path, text_at
from kvsim.scenario.messages import MISSING, Mistake, Origins, suggestion
from kvsim.scenario.reading.loading import Plain


def name_mistakes(data: Plain, origins: Origins) -> Iterator[Mistake]:
    """Yield the names that the catalogue does not know, and ranks that the model cannot be split over."""
    from kvsim.catalog.footprint import Footprint
    from kvsim.catalog.gpus import gpu
    from kvsim.catalog.models import model
    from kvsim.scenario.schema.fields import MOST

    name, gpu_name = text_at(data, "model", "name"), text_at(data, "gpu")
    ranks = data.get("tensor_parallel", 1)
    if name:
        try:
            found = model(model_reference(name, "model.name", origins))
            if is_whole(ranks) and 0 < ranks <= MOST:
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


def engine_mistakes(data: Plain, origins: Origins) -> Iterator[Mistake]:
    """Yield limits and rules of the engine that contradict one another."""
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
    flush = engine.get("flush")
    if isinstance(flush, dict) and flush.get("at") is None and flush.get("every") is None:
        remedy = "give at, for example at: [10min], or every: 10min"
        yield Mistake("engine.flush", MISSING, "says no time", remedy)
    budget = engine.get("max_num_batched_tokens", rules.max_num_batched_tokens)
    sequences = engine.get("max_num_seqs", rules.max_num_seqs)
    # SGLang's budgets are for prompts alone, and the first prompt of a pass may exceed them.
    bound = engine.get("scheduler", rules.scheduler) != "sglang"
    if bound and is_whole(budget) and is_whole(sequences) and budget < sequences:
        key = "max_num_batched_tokens" if "max_num_batched_tokens" in engine else "max_num_seqs"
        yield Mistake(
            f"engine.{key}", engine.get(key), f"leaves {budget} tokens a step for {sequences} sequences",
            "max_num_batched_tokens must be at least max_num_seqs",
        )  # fmt: skip
    # A profile whose prompts come whole takes as many tokens a step as the longest has.
    whole = engine.get("chunked_prefill", rules.chunked_prefill) is False
    if not (whole and bound) or ("max_num_batched_tokens" not in engine and not rules.chunked_prefill):
        return
    longest = engine.get("max_model_len")
    if longest is None and (model_name := text_at(data, "model", "name")):
        try:
            longest = model(model_reference(model_name, "model.name", origins)).max_context
        except InputError:
            return
    if is_whole(budget) and is_whole(longest) and budget < longest:
        key = "chunked_prefill" if "chunked_prefill" in engine else "profile"
        problem = f"computes a prompt in one step of {budget} tokens, but max_model_len is {longest}"
        remedy = f"set engine.max_num_batched_tokens to {longest} or more, or lower engine.max_model_len"
        yield Mistake(f"engine.{key}", engine.get(key, name), problem, remedy)


def _context(limit: Any, data: Plain, origins: Origins) -> Iterator[Mistake]:
    from kvsim.catalog.models import model

    name = text_at(data, "model", "name")
    if not is_whole(limit) or not name:
        return
    try:
        known = model(model_reference(name, "model.name", origins))
    except InputError:
        return
    if limit > known.max_context:
        problem = f"is more than the context of {known.name}, {known.max_context}"
        yield Mistake("engine.max_model_len", limit, problem, f"give {known.max_context} or less, or leave it out")


def timing_mistakes(data: Plain, origins: Origins) -> Iterator[Mistake]:
    """Yield parameters that step times do not have, or not of that value, and calibrations of other GPUs."""
    timing = data.get("timing")
    if not isinstance(timing, dict):
        return
    parameters = {key: value for key, value in timing.items() if key not in ("name", "file")}
    yield from _calibration(timing, text_at(data, "gpu"), origins)
    if timing.get("name") == "calibrated":
        for name, value in parameters.items():
            remedy = "leave it out, or use the timing roofline, which has parameters"
            yield Mistake(f"timing.{name}", value, "is given for calibrated, which is fitted", remedy)
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


def _calibration(timing: Plain, gpu_name: str, origins: Origins) -> Iterator[Mistake]:
    """What is wrong with the file of a calibration: it has one and needs none, it is none, it is of another GPU."""
    from kvsim.catalog.gpus import gpu

    file = timing.get("file")
    if not isinstance(file, str) or not file:
        return
    if timing.get("name") != "calibrated":
        remedy = "leave it out, or use the timing calibrated, which is fitted"
        yield Mistake("timing.file", file, "is given for the roofline, which has no file", remedy)
        return
    from kvsim.timing.fitting.calibration import read

    try:
        found = read(Path(place_of_path(file, "timing.file", origins)))
        card = gpu(gpu_name).name
    except InputError as error:
        # An unknown GPU is told by its own key.
        if "calibration" in str(error):
            yield Mistake("timing.file", MISSING, str(error))
        return
    if card not in found.gpus:
        remedy = f"give gpu: {' or '.join(found.gpus)}" if found.gpus else "fit something"
        yield Mistake("timing.file", file, f"is a calibration of {', '.join(found.gpus)}, not of {card}", remedy)

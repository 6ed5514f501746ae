"""What presets, datasets and the engine's profile stand for, written out where nobody gives anything else."""

from collections.abc import Mapping
from typing import Any

from kvsim.errors import InputError
from kvsim.scenario.reading.loading import Plain
from kvsim.scenario.reading.merging import KINDS
from kvsim.scenario.schema import EngineSettings


def written_out(workload: Plain) -> Plain:
    """The workload with what its preset and its dataset say, if they are known ones; what is given stays."""
    return _with_dataset(_with_preset(workload))


def _with_preset(workload: Plain) -> Plain:
    name = workload.get("preset")
    if not isinstance(name, str):
        return workload
    from kvsim.workload.presets import length_presets

    entry = length_presets().get(name)
    if entry is None:
        return workload
    written = {**workload}
    for of in ("prompt_tokens", "output_tokens"):
        written[of] = _law(name, of, workload.get(of))
    sessions = workload.get("sessions")
    if isinstance(sessions, dict):
        for of, key in (("turns", "turns"), ("new_tokens", "new_tokens"), ("think_s", "think")):
            if of in entry:
                sessions = {**sessions, key: _law(name, of, sessions.get(key))}
        written["sessions"] = sessions
    return written


def _law(name: str, of: str, given: Any) -> Any:
    """The law of a preset, with what is given changed about it; another law where that is given."""
    if given is None:
        given = {}
    if not isinstance(given, dict) or "distribution" in given or "value" in given:
        return given
    return {"distribution": "preset", "preset": name, **({} if of == "think_s" else {"of": of}), **given}


def _with_dataset(workload: Plain) -> Plain:
    dataset = workload.get("dataset")
    if not isinstance(dataset, dict):
        return workload
    from kvsim.workload.layers.benchmarks import FORMS

    name = dataset.get("name")
    if not isinstance(name, str) or name not in FORMS:
        return workload
    try:
        form = FORMS[name](**{word: value for word, value in dataset.items() if word != "name"})
    except (TypeError, ValueError):  # told by the checks
        return workload
    lengths = {
        key: {"distribution": "constant", "value": tokens}
        for key, tokens in (("prompt_tokens", form.prompt_tokens), ("output_tokens", form.output_tokens))
    }
    requests = {} if form.requests is None else {"requests": form.requests}
    return {**lengths, **requests, **workload}


def completed_allocator(data: Mapping[str, Any]) -> object:
    """The allocator given, completed by what the profile says of the same kind; the profile's where none is."""
    from kvsim.catalog.engines import profile

    name = EngineSettings.model_fields["profile"].default
    if isinstance(data.get("engine"), dict):
        name = data["engine"].get("profile", name)
    try:
        own: Mapping[str, Any] = profile(name).allocator if isinstance(name, str) else {}
    except InputError:  # told by the checks
        own = {}
    given = data.get("allocator", {})
    if not isinstance(given, dict):
        return given
    word, default = KINDS["allocator"]
    kind = own.get(word, default)
    return {**own, **given} if given.get(word, kind) == kind else given

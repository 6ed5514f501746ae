"""`workload.preset` written out: the laws that it stands for, where nobody gives others."""

from typing import Any

from kvsim.scenario.loading import Plain


def of_preset(workload: Plain) -> Plain:
    """The workload with the laws of its preset, if it has a known one; what is given changes or replaces them."""
    name = workload.get("preset")
    if not isinstance(name, str):
        return workload
    from kvsim.workload.presets import length_presets

    if name not in length_presets():
        return workload
    laws = {of: _law(name, of, workload.get(of)) for of in ("prompt_tokens", "output_tokens")}
    return {**workload, **laws}


def _law(name: str, of: str, given: Any) -> Any:
    if given is None:
        given = {}
    if not isinstance(given, dict) or "distribution" in given:
        return given
    return {"distribution": "preset", "preset": name, "of": of, **given}

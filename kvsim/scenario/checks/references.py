"""What a scenario refers to, read from its plain values: models and traces, by a name or by a path relative to the file
that holds it."""

import os
from typing import Any

from kvsim.errors import InputError
from kvsim.scenario.messages import Origin, Origins
from kvsim.scenario.reading.loading import Plain


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


def text_at(data: Plain, *path: str) -> str:
    """Return the text under the nested keys of `path`; empty where there is none."""
    value: Any = data
    for word in path:
        value = value.get(word) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def is_whole(value: object) -> bool:
    """Say whether the value is a whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)

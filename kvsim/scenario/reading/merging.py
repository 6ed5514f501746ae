"""Layers of a scenario: plain values with the place each was written, and how one is laid over another.

Mappings merge key by key. A mapping that names another kind (another allocator, distribution, arrival process
or form of pool) replaces the whole; `null` gives a key back to its default.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from kvsim.scenario.messages import Origins
from kvsim.scenario.reading.loading import Plain

SHORTHAND = {
    "model": "name",
    "engine": "profile",
    "allocator": "name",
    "timing": "name",
    "fleet.router": "name",
    "workload.arrivals": "process",
    "workload.cancel": "after",
    "workload.dataset": "name",
    "workload.sessions.think": "value",
    "workload.sessions.history": "keep",
    "workload.sessions.on_failure": "then",
    "workload.clients.think": "value",
}
"""Keys whose text alone stands for a mapping: `allocator: paged` is `allocator: {name: paged}`."""

LENGTHS = (
    "workload.prompt_tokens",
    "workload.output_tokens",
    "workload.sessions.turns",
    "workload.sessions.new_tokens",
    "workload.sessions.agents.count",
    "workload.sessions.agents.turns",
)
"""Keys where a number alone is a constant length."""

KINDS: dict[str, tuple[str, str | None]] = {
    "allocator": ("name", "paged"),
    "timing": ("name", "roofline"),
    "workload.arrivals": ("process", "poisson"),
    "workload.sessions.think": ("distribution", "constant"),
    "workload.sessions.history": ("keep", "whole"),
    "workload.clients.think": ("distribution", "constant"),
    "workload.dataset": ("name", None),
} | dict.fromkeys(LENGTHS, ("distribution", None))
"""The key that says of which kind a mapping is, and the kind where it is absent; options of one kind mean
nothing to another."""


@dataclass(slots=True)
class Layer:
    """Plain values with the origin of every dotted key."""

    data: Plain = field(default_factory=dict)
    origins: Origins = field(default_factory=dict)

    def under(self, over: "Layer") -> "Layer":
        """Return this layer with `over` laid on top; neither is changed."""
        merged = Layer(_copy(self.data), dict(self.origins))
        _merge(merged, merged.data, over.data, over, "")
        if "" in over.origins:
            merged.origins[""] = over.origins[""]
        return merged


def over_with_nulls(below: Layer, over: Layer) -> Layer:
    """Merge two layers that both still wait to be laid on a third: a null stays, for it has something to
    undo."""
    merged = below.under(over)
    for key, value in leaves_of(over.data):
        if value is None:
            _put(merged.data, key.split("."), None)
            merged.origins[key] = over.origins[key]
    return merged


def expanded(layer: Layer) -> Layer:
    """Return the layer with every shorthand written out; the long form keeps the place of the short one."""
    data, origins = _copy(layer.data), dict(layer.origins)
    for key, inner in SHORTHAND.items():
        value = _get(data, key.split("."))
        if isinstance(value, str):
            _put(data, key.split("."), {inner: value})
            origins[f"{key}.{inner}"] = replace(origins[key], short=True)
    for key in LENGTHS:
        value = _get(data, key.split("."))
        if isinstance(value, int | float) and not isinstance(value, bool):
            _put(data, key.split("."), {"distribution": "constant", "value": value})
            origins[f"{key}.distribution"] = origins[f"{key}.value"] = replace(origins[key], short=True)
    return Layer(data, origins)


def _merge(target: Layer, into: Plain, over: Plain, source: Layer, prefix: str) -> None:
    for word, value in over.items():
        key = f"{prefix}.{word}" if prefix else word
        old = into.get(word)
        if isinstance(old, dict) and isinstance(value, dict) and not _another_kind(key, old, value):
            _merge(target, old, value, source, key)
            target.origins.setdefault(key, source.origins[key])
            continue
        for stale in [known for known in target.origins if known == key or known.startswith(f"{key}.")]:
            del target.origins[stale]
        if value is None:
            into.pop(word, None)
            continue
        target.origins[key] = source.origins[key]
        if isinstance(value, dict):
            into[word] = {}
            _merge(target, into[word], value, source, key)
        else:
            into[word] = value


def _another_kind(key: str, old: Plain, new: Plain) -> bool:
    if key == "pool":
        # What only takes keys back says of no other way to give the size.
        return any(value is not None for value in new.values())
    kind, default = KINDS.get(key, ("", None))
    return kind in new and new[kind] != old.get(kind, default)


def keys_of(data: Plain, prefix: str = "") -> list[str]:
    """Return every dotted key of nested data, branches included."""
    keys = [""] if not prefix else []
    for word, value in data.items():
        key = f"{prefix}.{word}" if prefix else str(word)
        keys.append(key)
        if isinstance(value, dict):
            keys.extend(keys_of(value, key))
    return keys


def leaves_of(data: Plain, prefix: str = "") -> list[tuple[str, Any]]:
    """Return every dotted key that holds no mapping, with its value."""
    leaves: list[tuple[str, Any]] = []
    for word, value in data.items():
        key = f"{prefix}.{word}" if prefix else word
        leaves.extend(leaves_of(value, key) if isinstance(value, dict) else [(key, value)])
    return leaves


def nested(path: list[str], value: Any) -> Plain:
    """Return mappings within mappings that hold `value` at `path`."""
    for word in reversed(path):
        value = {word: value}
    return dict(value)


def _get(data: Any, path: list[str]) -> Any:
    for word in path:
        data = data.get(word) if isinstance(data, dict) else None
    return data


def _put(data: Plain, path: list[str], value: Any) -> None:
    for word in path[:-1]:
        if not isinstance(data.get(word), dict):
            data[word] = {}
        data = data[word]
    data[path[-1]] = value


def _copy(value: Any) -> Any:
    return {key: _copy(inner) for key, inner in value.items()} if isinstance(value, dict) else value

"""What a scenario says: the files it extends, the file, a variant and `--set`, weakest first, laid over each
other."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kvsim.errors import InputError
from kvsim.scenario.messages import NO_TEXT, TEXT, Mistake, Origin, Origins, is_text
from kvsim.scenario.reading.loading import Document, Plain, parse_value, read_document
from kvsim.scenario.reading.merging import Layer, expanded, keys_of, leaves_of, nested, over_with_nulls

_FILE_ONLY = ("extends", "variants")
_NOT_INHERITED = ("name", "description")


@dataclass(slots=True)
class Layers:
    """A scenario file with what it extends: the common `base`, the `variants` in file order, the `texts` by
    file."""

    file: str
    base: Layer
    variants: dict[str, Layer]
    texts: dict[str, str]
    mistakes: list[Mistake]

    def combined(self, variant: str | None, overrides: Layer) -> Layer:
        """Return base, variant and overrides as one layer."""
        layer = self.base if variant is None else self.base.under(self.variants[variant])
        return layer.under(overrides)


def read_layers(file: str) -> Layers:
    """Read a scenario file and the files it extends; InputError for a file that cannot be read and for a
    ring."""
    return _read(file, [])


def layers_of(data: Plain, name: str) -> Layers:
    """Return the layers of a scenario made in Python; `name` stands for the file in messages."""
    document = Document(name, "", data, {})
    origins = {key: Origin("file", name) for key in keys_of(data)}
    return _layers(document, origins, Layers(name, Layer(), {}, {}, []))


def read_overrides(overrides: Sequence[str], option: str = "--set") -> tuple[Layer, list[Mistake]]:
    """Return the layer of `KEY=VALUE` texts, later ones winning, and what is wrong with them.

    `option` is the one that they were given with.
    """
    layer, mistakes = Layer(), []
    for text in overrides:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not is_text(text):
            mistakes.append(Mistake("", ascii(text), NO_TEXT, TEXT, option))
            continue
        if not equals or not key or not all(key.split(".")):
            wrong = Mistake("", text, "is no override", "write KEY=VALUE, for example workload.rate=12/s", option)
            mistakes.append(wrong)
            continue
        if wrong_key := _file_only(key, value, option):
            mistakes.append(wrong_key)
            continue
        try:
            plain = parse_value(value)
        except InputError as error:
            mistakes.append(Mistake(key, value, "is not a YAML value", f"quote it ({error})", option))
            continue
        layer = over_with_nulls(layer, _change(key, plain, Origin(option, detail=text)))
    return layer, mistakes


def layer_of_changes(changes: Mapping[str, Any], origin: Origin) -> tuple[Layer, list[Mistake]]:
    """Return the layer of plain values by dotted key, all written at `origin`, and what is wrong with them."""
    layer, mistakes = Layer(), []
    for key, value in changes.items():
        if not all(key.split(".")):
            wrong = Mistake("", key, "is no dotted key", "name one of `kvsim schema`, such as workload.rate")
            mistakes.append(replace(wrong, place=origin.place))
        elif wrong_key := _file_only(key, value, origin.place):
            mistakes.append(wrong_key)
        else:
            layer = over_with_nulls(layer, _change(key, value, origin))
    return layer, mistakes


def _file_only(key: str, value: object, place: str) -> Mistake | None:
    if key.split(".")[0] not in _FILE_ONLY:
        return None
    return Mistake(key, value, "cannot be set here", "write it in the scenario file", place)


def _change(key: str, value: Any, origin: Origin) -> Layer:
    change = nested(key.split("."), value)
    return expanded(Layer(change, {word: origin for word in keys_of(change) if word != ""}))


def _read(file: str, chain: list[str]) -> Layers:
    real = os.path.realpath(file)
    ring = [os.path.realpath(earlier) for earlier in chain]
    if real in ring:
        names = [*chain[ring.index(real) :], file]
        raise InputError(
            f"{chain[-1]}: extends: {' -> '.join(names)} is a ring; a scenario cannot extend itself, directly or not"
        )
    document = read_document(file)
    below = Layers(file, Layer(), {}, {}, [])
    parent = document.data.get("extends")
    if isinstance(parent, str) and parent:
        path = os.path.normpath(os.path.join(os.path.dirname(file), parent))
        if not os.path.exists(path):
            line = document.lines["extends"]
            raise InputError(f"{file}:{line}: extends: {parent} is not there; give a path relative to this file")
        below = _read(path, [*chain, file])
    elif parent is not None:
        wrong = Mistake(
            "extends",
            parent,
            "is not a path",
            "name one scenario file",
            f"{file}:{document.lines['extends']}",
        )
        document.mistakes.append(wrong)
    origins = {key: Origin("file", file, line) for key, line in document.lines.items()}
    origins[""] = Origin("file", file, 1)
    return _layers(document, origins, below)


def _layers(document: Document, origins: Origins, below: Layers) -> Layers:
    """Lay a document over what it extends."""
    body = {key: value for key, value in document.data.items() if key not in _FILE_ONLY}
    own = {key: origin for key, origin in origins.items() if key.split(".")[0] not in _FILE_ONLY}
    inherited = Layer(
        {key: value for key, value in below.base.data.items() if key not in _NOT_INHERITED},
        {
            key: replace(origin, kind="extends")
            for key, origin in below.base.origins.items()
            if key not in _NOT_INHERITED
        },
    )
    base = inherited.under(expanded(Layer(body, own)))
    mistakes = [*below.mistakes, *document.mistakes]
    variants = dict(below.variants)
    for name, layer in _variants(document, origins, mistakes).items():
        if layer is None:
            variants.pop(name, None)
        else:
            variants[name] = over_with_nulls(variants[name], layer) if name in variants else layer
    if "variants" in document.data and document.data["variants"] is None:
        variants = {}
    texts = {**below.texts, document.file: document.text}
    return Layers(document.file, base, variants, texts, mistakes)


def _variants(document: Document, origins: Origins, mistakes: list[Mistake]) -> dict[str, Layer | None]:
    given = document.data.get("variants")
    if given is None:
        return {}
    place = origins["variants"].place
    if not isinstance(given, dict):
        mistakes.append(Mistake("variants", given, "is not a mapping", "write NAME: {KEY: VALUE}", place))
        return {}
    found: dict[str, Layer | None] = {}
    for name, changes in given.items():
        prefix = f"variants.{name}"
        where = origins[prefix]
        if not isinstance(changes, dict | None) or "/" in name or name.startswith("."):
            problem, remedy = "is not a mapping of changes", "write NAME: {KEY: VALUE}"
            if isinstance(changes, dict | None):
                changes, problem, remedy = name, "is no name of a variant", "use letters, digits, '-' and '_'"
            mistakes.append(Mistake(prefix, changes, problem, remedy, where.place))
            continue
        if changes is None:
            found[name] = None
            continue
        layer = Layer()
        for key, value in changes.items():
            line = origins.get(f"{prefix}.{key}", where)
            if key.split(".")[0] in (*_FILE_ONLY, "name"):
                mistakes.append(
                    Mistake(f"{prefix}.{key}", value, "cannot be set in a variant", "move it up", line.place)
                )
                continue
            change = nested(key.split("."), value)
            if clash := next((leaf for leaf, _ in leaves_of(change) if leaf in layer.origins), None):
                problem = f"is given a second time in this variant (as {clash})"
                mistakes.append(Mistake(f"{prefix}.{key}", value, problem, "keep one of the two", line.place))
                continue
            places = {}
            for word in keys_of(change):
                origin = origins.get(f"{prefix}.{word}", line)
                places[word] = Origin("variant", origin.file, origin.line, name)
            layer = over_with_nulls(layer, expanded(Layer(change, places)))
        found[name] = layer
    return found

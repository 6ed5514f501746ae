"""One YAML file to a plain dict, with the line of every key kept beside it.

YAML 1.2 (`1e9` is a number, `no` a word), without tags, merge keys or a second document: what a scenario does
not need is refused rather than half understood.
"""

import math
import os
import re
from dataclasses import dataclass, field
from typing import Any

from kvsim.errors import InputError
from kvsim.scenario.messages import NO_TEXT, TEXT, Mistake, is_text, show

Plain = dict[str, Any]

_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Bytes that stand in no text, and near the start of nearly every other file."""

_DEEPEST = 20
"""A scenario nests about five levels; the limit turns an alias that holds itself into a message."""

_MOST_VALUES = 100_000
"""Aliases of aliases grow exponentially; no scenario written by people comes near this many values."""


_MOST_DIGITS = 400
"""No number of a scenario comes near; a longer one is a text."""

_MOST_BYTES = 4 * 2**20
"""A scenario has some hundred bytes, and with hundreds of variants some hundred thousand."""


@dataclass(slots=True)
class Document:
    """A file as read: its `text`, the `data` as plain values, and `lines` (dotted key to line, from 1)."""

    file: str
    text: str
    data: Plain
    lines: dict[str, int]
    mistakes: list[Mistake] = field(default_factory=list)


def read_document(file: str) -> Document:
    """Read and parse a scenario file; InputError when it cannot be read or is not one YAML mapping.

    Duplicate keys and keys that are no words are kept as `mistakes` of the document, to be told with the
    others.
    """
    return parse_document(file, _read_text(file))


def parse_document(file: str, text: str) -> Document:
    """Parse the text of a scenario; `file` is the name for messages."""
    node = _compose(file, text)
    if node is None:
        raise InputError(f"{file}: the file is empty; a scenario is a YAML mapping that starts with, say, model: NAME")
    if node.id != "mapping":
        raise InputError(
            f"{file}:{node.start_mark.line + 1}: {show(_text_of(node))} is not a mapping; "
            "a scenario is a list of lines such as model: NAME"
        )
    document = Document(file, text, {}, {})
    document.data = _Reader(document).mapping(node, "", 0)
    return document


def parse_value(text: str) -> Any:
    """Return the plain value of a piece of YAML, as `--set KEY=VALUE` gives it; InputError when it is not
    YAML."""
    document = Document("--set", text, {}, {})
    node = _compose("--set", text)
    value = None if node is None else _Reader(document).value(node, "", 0)
    if document.mistakes:
        raise InputError(document.mistakes[0].text({}))
    return value


def _read_text(file: str) -> str:
    try:
        # Before it is opened: opening a pipe waits for somebody to write into it.
        if os.path.exists(file) and not os.path.isdir(file) and not os.path.isfile(file):
            raise InputError(f"{file}: is a device or a pipe; give the path of a scenario file")
        with open(file, "rb") as stream:
            raw = stream.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise InputError(f"{file}: has more than {_MOST_BYTES:,} bytes, and no scenario has; name a YAML file")
    except IsADirectoryError:
        inside = sorted(name for name in os.listdir(file) if name.endswith((".yaml", ".yml")))
        hint = f"; name one of its files, such as {os.path.join(file, inside[0])}" if inside else "; name a YAML file"
        raise InputError(f"{file}: this is a folder, not a scenario file{hint}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{file}: cannot be read ({reason}); give the path of a readable scenario file") from None
    if _NO_TEXT.search(raw):
        raise InputError(f"{file}: is not a YAML text but a binary file; name a scenario, a YAML file saved as UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{file}:{line}: this is not UTF-8 text; save the file as UTF-8") from None


def _compose(file: str, text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        # A parser that ran into the end of the file points behind the last line; the user has no such line.
        line = min(line, max(1, len(text.splitlines())))
        raise InputError(f"{file}:{line}: not valid YAML: {error.problem or error.context}") from None
    except (YAMLError, RecursionError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{file}: not valid YAML: {reason}") from None


class _Reader:
    """Turns YAML nodes into plain values and notes lines and mistakes in a document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._nodes = 0

    def mapping(self, node: Any, prefix: str, depth: int) -> Plain:
        data: Plain = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            word = key_node.value if key_node.id == "scalar" else None
            if word is None or not key_node.tag.endswith((":str", ":int", ":float")):
                shown = word if word is not None else "a list or mapping"
                self._wrong(
                    prefix,
                    shown,
                    "is no key" if word != "<<" else "is no key here",
                    "use extends: FILE to build on another scenario" if word == "<<" else "keys are words",
                    line,
                )
                continue
            if not is_text(word):
                self._wrong(prefix, ascii(word), f"as a key {NO_TEXT}", TEXT, line)
                continue
            key = f"{prefix}.{word}" if prefix else word
            if word in data:
                first = self._document.lines[key]
                self._wrong(
                    key,
                    _text_of(value_node),
                    f"is given a second time (first on line {first})",
                    "keep one of the two",
                    line,
                )
                continue
            self._document.lines[key] = line
            data[word] = self.value(value_node, key, depth + 1)
        return data

    def value(self, node: Any, key: str, depth: int) -> Any:
        line = node.start_mark.line + 1
        self._nodes += 1
        if self._nodes > _MOST_VALUES:
            raise InputError(f"{self._document.file}:{line}: more than {_MOST_VALUES:,} values; do aliases multiply?")
        if depth > _DEEPEST:
            self._wrong(key, "a value", f"is nested more than {_DEEPEST} deep", "flatten it", line)
            return None
        if node.id == "mapping":
            return self.mapping(node, key, depth)
        if node.id == "sequence":
            return [self.value(item, key, depth + 1) for item in node.value]
        return self._scalar(node, key, line)

    def _scalar(self, node: Any, key: str, line: int) -> Any:
        kind, text = node.tag.rpartition(":")[2], node.value
        if kind == "null":
            return None
        if kind == "bool" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        try:
            if kind == "int" and len(text) <= _MOST_DIGITS:
                return _integer(text)
            if kind == "float":
                return _number(text)
        except ValueError:
            return text
        if node.tag.startswith("!"):
            self._wrong(key, f"{node.tag} {text}", "has a YAML tag", "write the plain value", line)
        return text

    def _wrong(self, key: str, value: object, problem: str, remedy: str, line: int) -> None:
        place = f"{self._document.file}:{line}" if self._document.file != "--set" else "--set"
        self._document.mistakes.append(Mistake(key, value, problem, remedy, place))


def _text_of(node: Any) -> str:
    return node.value if node.id == "scalar" else f"a {node.id}"


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    base = {"0x": 16, "0o": 8, "0b": 2}.get(digits.lstrip("+-")[:2].lower(), 10)
    return int(digits, base)


def _number(text: str) -> float:
    word = text.replace("_", "").lower()
    if word.endswith(".nan"):
        return math.nan
    if word.endswith(".inf"):
        return -math.inf if word.startswith("-") else math.inf
    return float(word)

"""From the words of a command to settings and a list of flags."""

from dataclasses import replace
from typing import Any

from kvsim.capacity.arguments.command import Engine, EngineCommand, Flag
from kvsim.capacity.arguments.shell import invocation
from kvsim.capacity.arguments.table import Entry, closest, find
from kvsim.capacity.arguments.values import READERS, SWITCHES, UNCHUNKED
from kvsim.errors import InputError

_SPECULATIVE = {"model": "draft_model", "method": "speculative_method", "num_speculative_tokens": "speculative_tokens"}
"""Keys of vLLM's --speculative-config, and the settings that say the same."""


def parse_command(text: str) -> EngineCommand:
    """Read a pasted command: `vllm serve ...`, `python -m sglang.launch_server ...`, `docker run ...` of either.

    Environment in front, quotes, lines that go on, `--flag=value`, `--no-flag`, `--flag.key value` and the
    engines' short names are understood. A flag that is not known is listed as not modelled. Raises InputError
    where no engine is named, a word belongs to no flag, or a value is none of its flag's.
    """
    found = invocation(text)
    reader = _Reader(found.engine, found.arguments)
    while reader.words:
        reader.next()
    settings = reader.settings
    speculative = settings.pop("speculative", None)
    if isinstance(speculative, dict):
        settings |= {_SPECULATIVE[key]: value for key, value in speculative.items() if key in _SPECULATIVE}
    return EngineCommand(
        engine=found.engine,
        version=found.version,
        model=settings.pop("model", None),
        settings=settings,
        flags=tuple(reader.flags),
        environment=found.environment,
    )


class _Reader:
    """Takes words off the front of a command."""

    def __init__(self, engine: Engine, words: list[str]) -> None:
        self.engine = engine
        self.words = list(words)
        self.settings: dict[str, Any] = {}
        self.flags: list[Flag] = []

    def next(self) -> None:
        """Take a flag with its value, or the model."""
        word = self.words.pop(0)
        if not _is_flag(word):
            self._model(word)
            return
        name, equals, value = word.partition("=")
        if name.startswith("-O") and name[2:].isdigit():  # -O3
            name, equals, value = "-O", "=", name[2:]
        given = value if equals else None
        entry, negated, path = self._find(name)
        if entry is None:
            self._unknown(name, given)
        elif entry.kind in ("switch", "off"):
            self._switch(name, entry, given, negated)
        else:
            self._valued(name, entry, given, path)

    def _model(self, word: str) -> None:
        if self.engine != "vllm" or "model" in self.settings:
            after = f" after {self.flags[-1].name}" if self.flags else ""
            raise InputError(
                f"engine arguments: {word!r}{after} belongs to no flag; paste one command, and quote values with blanks"
            )
        entry = find(self.engine, "--model")
        assert entry is not None
        self._add("MODEL", word, entry)
        self.settings["model"] = word

    def _find(self, name: str) -> tuple[Entry | None, bool, list[str]]:
        """The flag, whether `--no-` stands before it, and the keys behind its dots."""
        entry = find(self.engine, name)
        if entry is not None:
            return entry, False, []
        if name.startswith(("--no-", "--no_")):
            entry = find(self.engine, f"--{name[5:]}")
            return (entry, True, []) if entry is not None and entry.kind == "switch" else (None, False, [])
        head, *path = name.split(".")
        entry = find(self.engine, head) if path else None
        return (entry, False, path) if entry is not None and entry.kind == "json" else (None, False, [])

    def _unknown(self, name: str, given: str | None) -> None:
        near = closest(self.engine, name)
        why = f"not a flag that kvsim knows; the closest is {near}" if near else "not a flag that kvsim knows"
        if given is None and self.words and not _is_flag(self.words[0]):
            given = self.words.pop(0)
        self.flags.append(Flag(name=name, value=given, status="not modelled", why=why))

    def _switch(self, name: str, entry: Entry, given: str | None, negated: bool) -> None:
        if given is None and self.words and self.words[0].lower() in SWITCHES:
            given = self.words.pop(0)
        if given is not None and given.lower() not in SWITCHES:
            raise _wrong(name, given, "no value, or true or false")
        on = given is None or SWITCHES[given.lower()]
        self._add(name, given, entry)
        if entry.key is not None:
            self.settings[entry.key] = on != (negated or entry.kind == "off")

    def _valued(self, name: str, entry: Entry, given: str | None, path: list[str]) -> None:
        if entry.kind == "list":
            words = [given] if given is not None else []
            while self.words and not _is_flag(self.words[0]):
                words.append(self.words.pop(0))
            self._add(name, " ".join(words), entry)
            return
        if given is None and self.words and not _is_flag(self.words[0]):
            given = self.words.pop(0)
        if entry.kind == "maybe":
            self._add(name, given, entry)
            return
        if given is None:
            raise InputError(f"engine arguments: {name} has no value; write it behind the flag, or leave the flag out")
        if entry.key is None:  # nothing hangs on it, and older releases write some of these in other ways
            self._add(name, given, entry)
            return
        if path:
            self._add(name, given, entry)
            self._set_inside(entry.key, path, given)
            return
        try:
            value = READERS[entry.kind](given)
        except ValueError as error:
            raise _wrong(name, given, str(error)) from None
        if entry.kind == "chunk" and value == UNCHUNKED:
            entry, value = replace(entry, key="enable_chunked_prefill", scenario="engine.chunked_prefill"), False
        self._add(name, given, entry)
        if entry.key is not None and value is not None:
            self.settings[entry.key] = value

    def _set_inside(self, setting: str, path: list[str], given: str) -> None:
        """`--flag.key value`: one key of a JSON value."""
        inside: dict[str, Any] = self.settings
        for key in (setting, *path[:-1]):
            key = key.replace("-", "_")
            if not isinstance(inside.get(key), dict):
                inside[key] = {}
            inside = inside[key]
        try:
            inside[path[-1].replace("-", "_")] = READERS["json"](given)
        except ValueError:  # a bare word
            inside[path[-1].replace("-", "_")] = given

    def _add(self, name: str, value: str | None, entry: Entry) -> None:
        self.flags.append(
            Flag(name=name, value=value, status=entry.status, why=entry.why, key=entry.key, scenario=entry.scenario)
        )


def _is_flag(word: str) -> bool:
    """Whether a word begins a flag; a negative number is a value."""
    return word.startswith("-") and len(word) > 1 and not word[1].isdigit() and word[1] != "."


def _wrong(name: str, value: str, right: str) -> InputError:
    return InputError(f"engine arguments: {name} {value!r} is wrong; write {right}")

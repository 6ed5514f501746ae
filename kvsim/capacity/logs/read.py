"""From a file to a StartupLog: line by line, whatever its size, prefixes, colours and bytes."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import IO

from kvsim.capacity.logs import sglang, trtllm, vllm
from kvsim.capacity.logs.rules import ANY_ENGINE, Line, Notes, Rule, argument_names
from kvsim.capacity.logs.startup import Engine, StartupLog
from kvsim.errors import InputError

ENGINES: dict[Engine, ModuleType] = {"vllm": vllm, "sglang": sglang, "trtllm": trtllm}

_LONGEST_LINE_BYTES = 1 << 20
"""The rest of a longer line is skipped, so that a file without line ends does not fill the memory."""

# The escape itself is often lost, or spelled out, on the way into a file or an issue.
_COLOUR = re.compile(r"(?:\x1b|#033)\[[\d;?]*[A-Za-z]|\[\d{1,2}(?:;\d{1,2})*m")

_PARALLEL = r"(?:DP|PP|TP|PCP|DCP|CP|EP)\d+"
_RANK = re.compile(
    rf"\((?:VllmWorker|Worker|EngineCore)[_ ](?P<named>{_PARALLEL}(?:[_ ]{_PARALLEL})*)\b"
    rf"|(?:^|\r)\[[^\]]* (?P<bracketed>{_PARALLEL}(?: {_PARALLEL})*)\]"
    r"|\(VllmWorker rank=(?P<numbered>\d+)|\[gpu_id=(?P<gpu>\d+)\]|\[RANK (?P<mpi>\d+)\]"
    r"|\((?:VllmWorkerProcess|RayWorker\w*) pid=(?P<process>\d+)"
)


def read_log(source: str | os.PathLike[str]) -> StartupLog:
    """Read a start-up log of vLLM, SGLang or TensorRT-LLM: a path, or the text itself where it has several lines.

    The engine is told by its lines. Where the log holds several starts, the one that came up counts, else the
    last. Raises InputError where the file cannot be read, or holds no line of any of the engines.
    """
    if isinstance(source, str) and "\n" in source:
        return _read(source.split("\n"), "the log")
    path = Path(source)
    try:
        with path.open("rb") as file:
            return _read(_lines(file), str(path))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); give the start-up log of an engine as a file"
        ) from None


def _read(lines: Iterable[str], name: str) -> StartupLog:
    reader = _Reader()
    for number, text in enumerate(lines, start=1):
        reader.take(number, text)
        if reader.serves:
            break  # what follows is traffic
    if reader.engine is None:
        looked_for = "; ".join(f"`{module.EXAMPLE}` ({key})" for key, module in ENGINES.items())
        raise InputError(
            f"{name}: no start-up log of vLLM, SGLang or TensorRT-LLM: none of their lines was found, such as "
            f"{looked_for}"
        )
    return _finished(reader.engine, reader.notes)


class _Reader:
    """Hands each line to the rules: to every engine's until one knows the line, to that engine's alone since."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.notes = Notes()
        self.serves = False

    def take(self, number: int, text: str) -> None:
        for engine in ENGINES if self.engine is None else (self.engine,):
            for rule, match, line in _matches(ENGINES[engine].RULES, number, text):
                self.engine = engine
                if rule.restarts and (self.notes.pool_is_sized or self.notes.reason is not None):
                    self.notes = Notes(gpu=self.notes.gpu)
                self.notes.take(rule, match, line, argument_names(engine))
            if self.engine is not None:
                break
        for rule, match, line in _matches(ANY_ENGINE, number, text):
            self.notes.take(rule, match, line, {})
            # Other services may share the log: the engine's own server comes up after its pool.
            self.serves |= rule.ready and self.notes.pool_is_sized


def _matches(rules: Iterable[Rule], number: int, text: str) -> Iterator[tuple[Rule, re.Match[str], Line]]:
    """The rules that the line matches. Most lines of a log hold no hint, so that nothing more is done with them."""
    hinted = [rule for rule in rules if rule.hint in text]
    if hinted:
        line = _line(number, text)
        for rule in hinted:
            match = rule.pattern.search(line.text)
            if match is not None:
                yield rule, match, line


def _finished(engine: Engine, notes: Notes) -> StartupLog:
    for numbers in notes.ranks.values():
        ENGINES[engine].derive(numbers)
    return StartupLog(
        engine=engine,
        version=notes.version,
        model=notes.model,
        gpu=notes.gpu,
        settings=notes.settings,
        ranks=notes.ranks,
        started=notes.started,
        reason_class=notes.reason_class,
        reason=None if notes.reason is None else notes.reason.text,
        reason_line_number=None if notes.reason is None else notes.reason.number,
    )


def _lines(file: IO[bytes]) -> Iterator[str]:
    while start := file.readline(_LONGEST_LINE_BYTES):
        yield start.decode("utf-8", errors="replace")
        rest = start
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(_LONGEST_LINE_BYTES)


def _line(number: int, text: str) -> Line:
    clean = _COLOUR.sub("", text).strip()
    match = _RANK.search(clean)
    if match is None:
        return Line(number, clean, "")
    name = match["named"] or match["bracketed"]
    return Line(number, clean, re.sub(r"[_ ]", "_", name) if name else f"rank {match[match.lastgroup or 0]}")

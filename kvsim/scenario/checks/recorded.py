"""Whether what a workload says beside a trace goes together with it."""

from collections.abc import Iterable, Iterator
from typing import Any

from kvsim.scenario.messages import MISSING, Mistake
from kvsim.scenario.reading.loading import Plain

_OF_A_TRACE = ("loop", "think", "on_failure")
"""Keys of `workload.sessions` that say something of recorded ones."""


def recorded_mistakes(workload: Plain, generated: Iterable[str]) -> Iterator[Mistake]:
    """Yield what a trace brings along itself, of the keys of `generated` traffic and of sessions."""
    trace, sessions, clients = workload["trace"], workload.get("sessions"), workload.get("clients")
    by = _word(workload.get("reshape"), "by")
    in_sessions = sessions is not None or clients is not None
    remedy = f"remove it, or workload.trace ({trace})"
    for key in generated:
        if key in workload and not (key == "arrivals" and in_sessions):
            yield Mistake(f"workload.{key}", MISSING, "a trace brings its own", remedy)
    if isinstance(sessions, dict):
        from kvsim.scenario.schema.generated.sessions import HistorySettings, SessionSettings

        for word, value in sessions.items():
            if word not in SessionSettings.model_fields or word in _OF_A_TRACE:
                continue
            if value is None or (word == "history" and _says_nothing(value, HistorySettings)):
                continue
            yield Mistake(f"workload.sessions.{word}", MISSING, "a trace brings its own", remedy)
    if _word(workload.get("read"), "answers") == "repeated" and not in_sessions and by != "session":
        remedy = "give workload.sessions, for example {loop: open}"
        yield Mistake("workload.read.answers", "repeated", "is about sessions, which are not followed here", remedy)
    if in_sessions and workload.get("sort") is True:
        problem = "means nothing to sessions: their calls come when they come, whatever the order of the rows"
        yield Mistake("workload.sort", True, problem, "remove it")
    times = _word(workload.get("reshape"), "rate_times")
    if times not in (None, 1, 1.0):
        for key in ("rate", "arrivals", "clients"):
            if key in workload:
                remedy = f"keep one of them: {key} says how often requests come already"
                yield Mistake("workload.reshape.rate_times", times, f"is given beside {key}", remedy)
    if in_sessions and by == "request":
        problem = "would tear sessions apart"
        yield Mistake("workload.reshape.by", by, problem, "write session, or leave it out")
    if by == "session" and not in_sessions and workload.get("sort") is True:
        yield Mistake("workload.sort", True, "means nothing where whole sessions are taken", "remove it")


def _says_nothing(value: Any, part: type[Any]) -> bool:
    """A mapping that holds its defaults alone, as a scenario that is written out does."""
    defaults = {word: field.default for word, field in part.model_fields.items()}
    return isinstance(value, dict) and all(defaults.get(word, MISSING) == given for word, given in value.items())


def _word(mapping: Any, key: str) -> Any:
    return mapping.get(key) if isinstance(mapping, dict) else None

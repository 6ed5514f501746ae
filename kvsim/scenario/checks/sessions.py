"""Whether what a workload says of sessions, clients and shared texts goes together."""

from collections.abc import Iterator
from typing import Any

from kvsim.scenario.checks.laws import length_mistakes
from kvsim.scenario.messages import MISSING, Mistake
from kvsim.scenario.reading.loading import Plain


def session_mistakes(workload: Plain) -> Iterator[Mistake]:
    """Yield what is given twice or in vain, and laws of sessions and layers that lack something."""
    yield from _shared_once(workload)
    yield from _layers(workload.get("layers"))
    yield from _dataset(workload.get("dataset"))
    sessions, clients = workload.get("sessions"), workload.get("clients")
    if isinstance(clients, dict):
        for key in ("rate", "arrivals"):
            if key in workload:
                remedy = "remove it, or workload.clients: a loop of clients sends as fast as it is answered"
                yield Mistake(f"workload.{key}", MISSING, "means nothing to a loop of clients", remedy)
        if isinstance(sessions, dict):
            if sessions.get("loop") == "open":
                problem = "goes with no loop of clients, who wait for their answers"
                yield Mistake("workload.sessions.loop", "open", problem, "remove it, or workload.clients")
            if "think" in sessions and "think" in clients:
                yield Mistake("workload.clients.think", MISSING, "is given beside sessions.think", "keep one of them")
    if "lengths_of" in workload and (sessions is not None or clients is not None):
        key = "sessions" if sessions is not None else "clients"
        problem = "draws prompts and outputs from laws of their own, not from rows"
        yield Mistake(f"workload.{key}", MISSING, problem, "give prompt_tokens and output_tokens, not lengths_of")
    drawn = "trace" not in workload
    if "reshape" in workload and drawn and (sessions is not None or clients is not None):
        problem = "is for requests that stand alone, not for sessions that are drawn"
        yield Mistake("workload.reshape", MISSING, problem, "remove it, and change the laws of the sessions")
    by = workload["reshape"].get("by") if isinstance(workload.get("reshape"), dict) else None
    if drawn and by == "session" and sessions is None and clients is None:
        problem = "is for a trace that recorded sessions"
        yield Mistake("workload.reshape.by", by, problem, "remove it: requests that are drawn stand alone")
    for key, holder in (("sessions", sessions), ("clients", clients)):
        think = holder.get("think") if isinstance(holder, dict) else None
        if isinstance(think, dict) and think.get("distribution") == "recorded" and (drawn or key == "clients"):
            problem = "is no law of its own"
            remedy = "give workload.trace" if drawn else "say how long clients pause between two sessions"
            yield Mistake(f"workload.{key}.think.distribution", "recorded", problem, remedy)
    if not isinstance(sessions, dict):
        return
    failure = sessions.get("on_failure")
    if sessions.get("loop") == "open" and isinstance(failure, dict) and failure.get("then", "end") != "end":
        problem = "means nothing where every turn has its time"
        yield Mistake("workload.sessions.on_failure.then", failure["then"], problem, "remove it, or write loop: closed")
    agents = sessions.get("agents")
    for key, holder in (("sessions", sessions), ("sessions.agents", agents)):
        for word in ("turns", "new_tokens", "count"):
            if isinstance(holder, dict) and isinstance(holder.get(word), dict):
                yield from length_mistakes(holder[word], f"workload.{key}.{word}")


def _shared_once(workload: Plain) -> Iterator[Mistake]:
    given = [key for key in ("prefix", "layers", "dataset") if key in workload]
    for key in given[1:]:
        yield Mistake(f"workload.{key}", MISSING, f"is given beside {given[0]}", f"keep {given[0]} or {key}")


def _layers(layers: Any) -> Iterator[Mistake]:
    if not isinstance(layers, list):
        return
    for number, layer in enumerate(layers, 1):
        for word in ("tokens", "count"):
            if isinstance(layer, dict) and isinstance(layer.get(word), dict):
                yield from length_mistakes(layer[word], f"workload.layers.{number}.{word}")


def _dataset(dataset: Any) -> Iterator[Mistake]:
    """An option of another load generator."""
    if not isinstance(dataset, dict):
        return
    import inspect

    from kvsim.scenario.schema.generated.layers import DatasetSettings
    from kvsim.workload.layers.benchmarks import FORMS

    name = dataset.get("name")
    if not isinstance(name, str) or name not in FORMS:
        return
    known = list(inspect.signature(FORMS[name]).parameters)
    for word, value in dataset.items():
        if word in DatasetSettings.model_fields and word not in (*known, "name"):
            remedy = f"{name} takes {', '.join(known)}"
            yield Mistake(f"workload.dataset.{word}", value, f"is no option of {name}", remedy)

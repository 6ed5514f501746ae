"""The requests of a vLLM case: what each asks, and what the recording will tell of it."""

from typing import Any

from kvsim.content import Content
from kvsim.engine.replay.case import FIRST_OUTPUT_STREAM, MOST, Record, is_whole, prompt_of, shown, stream_run
from kvsim.errors import InputError
from kvsim.request import Sequence

_REQUEST = {
    "id": "a text, another for each request",
    "arrival_step": "a whole number, 0 or more",
    "prompt": "a list of segments",
    "output_len": "a whole number, 1 or more",
}
"""What a request needs, and in what form."""


def truths_of(requests: list[Any], max_model_len: int) -> list["Truth"]:
    """The requests of a case, in its order."""
    truths = [Truth(entry, index, max_model_len) for index, entry in enumerate(requests)]
    names: dict[str, int] = {}
    for index, truth in enumerate(truths):
        first = names.setdefault(truth.name, index)
        if first != index:
            raise InputError(
                f"request {index} of the case: id is {shown(truth.name)}, which request {first} has already"
            )
    # Where nothing else decides, the engine orders requests by their ids, which are texts.
    for number, truth in enumerate(sorted(truths, key=lambda truth: truth.name)):
        truth.sequence.id = number
    return truths


class Truth:
    """What the recording will tell of one request."""

    def __init__(self, entry: object, index: int, max_model_len: int) -> None:
        where = f"request {index} of the case"
        if not isinstance(entry, dict):
            raise InputError(f"{where} is {shown(entry)}; it must be an object with {', '.join(_REQUEST)}")
        for key, form in _REQUEST.items():
            if key not in entry:
                raise InputError(f"{where}: {key} is missing; it must be {form}")
        self.name = entry["id"]
        if not isinstance(self.name, str):
            raise InputError(f"{where}: id is {shown(self.name)}; it must be {_REQUEST['id']}")
        self.arrival = _number(entry, "arrival_step", where, 0)
        wanted = _number(entry, "output_len", where, 1)
        prompt = prompt_of(entry["prompt"], where)
        self.prompt = prompt.tokens
        if self.prompt < 1:
            raise InputError(f"{where}: prompt has no tokens; it must have at least one")
        if self.prompt >= max_model_len:
            raise InputError(
                f"{where}: prompt has {self.prompt:,} tokens; max_model_len {max_model_len:,} leaves no "
                "room for an output"
            )
        self.abort_step = None if entry.get("abort_step") is None else _number(entry, "abort_step", where, 0)
        """The step before which the client gives it up."""
        accept = entry.get("accept", [])
        if not isinstance(accept, list) or not all(is_whole(drafts, 0, MOST) for drafts in accept):
            raise InputError(f"{where}: accept is {shown(accept)}; it must be a list of whole numbers, 0 or more")
        self.allowed = min(wanted, max_model_len - self.prompt)
        self.content = Content(prompt.runs)
        """Its prompt and all of its output."""
        stream = _number(entry, "out_stream", where, 0) if "out_stream" in entry else FIRST_OUTPUT_STREAM + index
        self.content.append(stream_run(stream, 0, self.allowed))
        priority = _number(entry, "priority", where, -MOST) if "priority" in entry else 0
        self.sequence = Sequence(index, self.prompt, wanted, arrival_ps=self.arrival, priority=priority)
        self.first_sched: int | None = None
        self.first_tok: int | None = None
        self.done: int | None = None
        self.hits: list[int] = []
        self.preempted = 0
        self.computed = 0
        self.output = 0
        self._accept = accept
        self._verified = 0

    def accepts(self) -> int:
        """How many drafts its next verification accepts, if there are as many. Mutates."""
        if not self._accept:
            return 0
        self._verified += 1
        accepted: int = self._accept[(self._verified - 1) % len(self._accept)]
        return accepted

    def record(self) -> Record:
        """The request's line in the summary."""
        return {
            "arrival": self.arrival,
            "prompt": self.prompt,
            "first_sched": self.first_sched,
            "first_tok": self.first_tok,
            "done": self.done,
            "hits": self.hits,
            "preempt": self.preempted,
            "computed": self.computed,
            "output": self.output,
        }


def _number(entry: Record, key: str, where: str, least: int) -> int:
    value = entry[key]
    if not is_whole(value, least, MOST):
        form = _REQUEST.get(key, "a whole number" if least < 0 else "a whole number, 0 or more")
        raise InputError(f"{where}: {key} is {shown(value)}; it must be {form}")
    return value

"""ShareGPT: a JSON list of conversations between people and a model, in words.

`[{"id": ..., "conversations": [{"from": "human" | "gpt" | "system", "value": ...}, ...]}]`. Every answer of the model
is a request, whose prompt is all that was said before. There are no times.
"""

from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

from kvsim.workload.readers.base import Links
from kvsim.workload.readers.files.json_values import document_objects
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.texts.base import TextReader
from kvsim.workload.readers.texts.wording import Wording

_ID, _TURNS = "id", "conversations"
_MODEL = ("gpt", "chatgpt", "assistant", "bing", "bard")


class ShareGptReader(TextReader):
    """A row is a conversation."""

    format: ClassVar[str] = "sharegpt"
    columns: ClassVar[tuple[str, ...]] = (_TURNS,)

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Answers in file order."""
        wording, links = Wording(intake), Links(intake)
        for conversation in document_objects(source.lines(), intake):
            id = str(conversation.get(_ID, intake.row))
            turns = _turns(conversation, intake)
            if turns is not None and links.is_new(id, _ID):
                yield from _answers(id, turns, wording, links)


def _answers(id: str, turns: list[tuple[str, str]], wording: Wording, links: Links) -> Iterator[TraceRequest]:
    said: list[Hashable] = []
    held = 0
    for number, (who, text) in enumerate(turns):
        tokens = wording.tokens(text)
        if who in _MODEL and said:
            request = wording.request(f"{id}/{number}", said, len(tokens))
            if request is not None:
                request.session = id
                request.new_prompt_tokens = len(said) - held
                request.after = links.goes_on(id, request.id)
                held = len(said) + len(tokens)
                yield request
        said.extend(tokens)


def _turns(conversation: dict[str, Any], intake: Intake) -> list[tuple[str, str]] | None:
    turns = conversation.get(_TURNS)
    if isinstance(turns, list):
        pairs = [(turn.get("from"), turn.get("value")) if isinstance(turn, dict) else (None, None) for turn in turns]
        if all(isinstance(who, str) and isinstance(text, str) for who, text in pairs):
            return [(str(who), str(text)) for who, text in pairs]
    intake.bad(_TURNS, turns, "no conversation", "write a list of {from, value}")
    return None

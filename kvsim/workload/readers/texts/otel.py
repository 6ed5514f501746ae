"""OpenTelemetry spans of GenAI calls: JSON documents of spans with messages, answers and times (inference-perf).

`{"trace_id", "spans": [{"span_id", "start_time", "end_time", "attributes": {"gen_ai.input.messages", ...}}]}`. Where a
span tells its token counts (`gen_ai.usage.*`) these are taken, else the texts are counted. A call goes on from the last
of its session that had ended when it began.
"""

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from kvsim.workload.readers.base import Links
from kvsim.workload.readers.files.json_values import document_objects
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import After, TraceRequest
from kvsim.workload.readers.texts.base import TextReader
from kvsim.workload.readers.texts.wording import Wording, messages_text
from kvsim.workload.readers.values.clock import RIGHT, WallClock

_SPANS, _ID, _PARENT, _START, _END = "spans", "span_id", "parent_span_id", "start_time", "end_time"
_MESSAGES, _ANSWER = "gen_ai.input.messages", "gen_ai.output.text"
_PROMPT, _OUTPUT, _MODEL = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.request.model"
_SESSIONS = ("exgentic.session.id", "gen_ai.conversation.id", "session.id")


class OtelReader(TextReader):
    """A row is a span; those that are no calls to a model are left out and counted."""

    format: ClassVar[str] = "otel"
    columns: ClassVar[tuple[str, ...]] = (_SPANS,)
    time_unit: ClassVar[str] = "wall clock"

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Calls in file order."""
        wording, links, clock = Wording(intake), Links(intake), WallClock()
        ends: dict[str, list[tuple[int, str]]] = {}
        for document in document_objects(source.lines(), intake):
            spans = document.get(_SPANS)
            if not isinstance(spans, list) or not all(isinstance(span, dict) for span in spans):
                intake.bad(_SPANS, spans, "no list of spans", "write a list of objects")
                continue
            there = {str(span.get(_ID)) for span in spans}
            intake.row -= 1
            for span in spans:
                intake.row += 1
                request = _call(span, str(document.get("trace_id", "")), there, wording, clock, intake)
                if request is not None and links.is_new(request.id, _ID):
                    _go_on(request, ends.setdefault(request.session, []))
                    yield request


def _call(
    span: dict[str, Any], trace: str, there: set[str], wording: Wording, clock: WallClock, intake: Intake
) -> TraceRequest | None:
    told = span.get("attributes")
    attributes: dict[str, Any] = told if isinstance(told, dict) else {}
    if _MESSAGES not in attributes:
        intake.drop("a span that is no call to a model")
        return None
    parent = span.get(_PARENT)
    if parent is not None and (str(parent) not in there or parent == span.get(_ID)):
        intake.bad(_PARENT, parent, "no span of this trace has this id", "write the id of another span, or null")
        return None
    times = []
    for column in (_START, _END):
        text = span.get(column)
        try:
            times.append(clock.read_ps(text if isinstance(text, str) else ""))
        except ValueError as reason:
            intake.bad(column, text, str(reason), RIGHT)
            return None
    text = _messages(attributes[_MESSAGES])
    answer = attributes.get(_ANSWER)
    if text is None or not isinstance(answer, str):
        right = "write a JSON list of messages, and the answer's text"
        intake.bad(_MESSAGES if text is None else _ANSWER, attributes[_MESSAGES], "no messages, or no answer", right)
        return None
    output = attributes.get(_OUTPUT)
    request = wording.request(
        f"{trace}/{span.get(_ID, intake.row)}",
        wording.tokens(text),
        output if type(output) is int and output > 0 else len(wording.tokens(answer)),
    )
    if request is None:
        return None
    prompt = attributes.get(_PROMPT)
    if type(prompt) is int and prompt > 0 and prompt != request.prompt_tokens:
        # The server's own count; blocks of our count do not lie where its blocks do.
        request.prompt_tokens, request.blocks, request.block_tokens = prompt, (), 0
    request.arrival_ps, request.duration_ps = times[0], max(0, times[1] - times[0])
    request.session = next((str(attributes[name]) for name in _SESSIONS if attributes.get(name)), trace)
    if attributes.get(_MODEL) is not None:
        request.tags = {"model": str(attributes[_MODEL])}
    return request


def _go_on(request: TraceRequest, ends: list[tuple[int, str]]) -> None:
    """Link a call to the last of its session that had ended. Mutates."""
    assert request.arrival_ps is not None
    before = max((end for end in ends if end[0] <= request.arrival_ps), default=None)
    if before is not None:
        request.after = (After(before[1], request.arrival_ps - before[0]),)
    ends.append((request.arrival_ps + (request.duration_ps or 0), request.id))


def _messages(value: object) -> str | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return messages_text(value)

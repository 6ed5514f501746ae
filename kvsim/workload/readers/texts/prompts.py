"""JSON lines of prompts in words: vLLM's custom data sets, OpenAI's batches and messages, aiperf's single turns.

vLLM: `{"prompt": ..., "output_tokens"?: ...}`. OpenAI: `{"custom_id", "body": {"messages", "max_tokens"}}`, or the body
alone. aiperf: `{"text", "timestamp" | "delay" (ms)?, "session_id"?, "output_length"?}`.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from kvsim.workload.readers.base import Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.texts.base import TextReader
from kvsim.workload.readers.texts.wording import Wording, content_text, messages_text
from kvsim.workload.readers.values.times import ps_of

_MILLISECONDS = 3
_RIGHT = "write milliseconds, 0 or more"
_LENGTHS = ("output_length", "output_tokens", "max_completion_tokens", "max_tokens")


class PromptsReader(TextReader):
    """What the three forms share: a text, and how long its answer is."""

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Prompts in file order."""
        wording, links = Wording(intake), Links(intake)
        for row in json_lines.objects(source.lines(), intake):
            body = row.get("body", row)
            text = self._text(body) if isinstance(body, dict) else None
            if text is None:
                intake.bad(self.columns[0], body, "no prompt", f"write {self.columns[0]}, in words")
                continue
            output = wording.output_tokens(body, *_LENGTHS)
            request = (
                wording.request(str(row.get("custom_id", intake.row)), wording.tokens(text), output) if output else None
            )
            if request is None or not links.is_new(request.id, "custom_id"):
                continue
            if body.get("model") is not None:
                request.tags = {"model": str(body["model"])}
            if self._add_times(request, row, links, intake):
                yield request

    def _text(self, body: dict[str, Any]) -> str | None:
        return content_text(body.get(self.columns[0]))

    def _add_times(self, request: TraceRequest, row: dict[str, Any], links: Links, intake: Intake) -> bool:
        return True


class VllmCustomReader(PromptsReader):
    """vLLM's custom data set."""

    format: ClassVar[str] = "vllm-custom"
    columns: ClassVar[tuple[str, ...]] = ("prompt",)


class OpenAiBatchReader(PromptsReader):
    """OpenAI's batch file, or one chat completion a line."""

    format: ClassVar[str] = "openai-batch"
    columns: ClassVar[tuple[str, ...]] = ("messages",)

    def recognises(self, head: Head) -> bool:
        """A body, or messages."""
        return "body" in head.keys or "messages" in head.keys

    def _text(self, body: dict[str, Any]) -> str | None:
        return messages_text(body.get("messages"))


class AiperfSingleTurnReader(PromptsReader):
    """aiperf's single turns; rows of a session do not see each other's texts."""

    format: ClassVar[str] = "aiperf-single-turn"
    columns: ClassVar[tuple[str, ...]] = ("text",)
    time_unit: ClassVar[str] = "milliseconds"

    def _add_times(self, request: TraceRequest, row: dict[str, Any], links: Links, intake: Intake) -> bool:
        request.session = "" if row.get("session_id") is None else str(row["session_id"])
        delay_ps = ps_of(row.get("delay", 0), _MILLISECONDS)
        if delay_ps is None or delay_ps < 0:
            intake.bad("delay", row["delay"], "no wait", _RIGHT)
            return False
        if row.get("timestamp") is not None:
            request.arrival_ps = json_lines.read_time_ps(row, "timestamp", _MILLISECONDS, _RIGHT, intake)
            if request.arrival_ps is None:
                return False
        if request.session:
            request.after = links.goes_on(request.session, request.id, delay_ps)
        return True

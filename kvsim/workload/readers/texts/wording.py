"""Texts as tokens: by a tokenizer that was handed in, or by a ratio of characters a token.

By a ratio, a token is a run of characters: lengths are estimates, and what prompts have in common is exact.
Chat templates are not applied: a prompt is its messages one behind the other.
"""

from collections.abc import Hashable, Sequence
from math import ceil
from typing import Any

from kvsim.workload.lengths import LONGEST
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.values.chain import BLOCK_TOKENS, chained_blocks

ESTIMATED = "token counts are estimates, {ratio:g} characters a token"
CAPS = "outputs were taken to be as long as the client allows (max_tokens)"
TOLD = "outputs are {tokens} tokens each, as told: the trace has none"


class Wording:
    """Counts and cuts the texts of one pass over a trace. InputError at once where nobody said how."""

    def __init__(self, intake: Intake) -> None:
        self._options = intake.options
        self._intake = intake
        if self._options.tokenizer is None and self._options.chars_per_token is None:
            raise intake.wrong(
                "the trace holds text, not token counts; say how many characters a token has (--chars-per-token 4), "
                "or give a tokenizer (--tokenizer MODULE:FUNCTION)"
            )

    def tokens(self, text: str) -> Sequence[Hashable]:
        """The tokens of a text, whatever stands for one."""
        if self._options.tokenizer is not None:
            return self._options.tokenizer(text)
        ratio = self._options.chars_per_token
        assert ratio is not None
        self._intake.note(ESTIMATED.format(ratio=ratio))
        cuts = [int(number * ratio) for number in range(ceil(len(text) / ratio) + 1)]
        return [text[start:end] for start, end in zip(cuts, cuts[1:], strict=False)]

    def request(self, id: str, prompt: Sequence[Hashable], output: int) -> TraceRequest | None:
        """A request with the blocks of its prompt; None after an empty prompt was handed to `intake.bad`."""
        if not prompt or not output:
            what = "an empty prompt" if not prompt else "an empty output"
            self._intake.bad(None, id, what, "write some text")
            return None
        if len(prompt) > LONGEST:
            self._intake.bad(None, id, "more tokens than any context window", f"write at most {LONGEST} tokens")
            return None
        size = self._options.block_tokens or BLOCK_TOKENS
        return TraceRequest(id, len(prompt), output, blocks=chained_blocks(prompt, size), block_tokens=size)

    def output_tokens(self, row: dict[str, Any], *columns: str) -> int:
        """Tokens of an answer that is not there: told by a column, by a cap, or by the options; else 0, and bad."""
        for column in columns:
            value = row.get(column)
            if type(value) is int and 0 < value <= LONGEST:
                if column.startswith("max_"):
                    self._intake.note(CAPS)
                return value
            if value is not None:
                right = "write a whole number of tokens, at least 1"
                self._intake.bad(column, value, "no number of tokens", right)
                return 0
        told = self._options.output_tokens
        if told is not None:
            self._intake.note(TOLD.format(tokens=told))
            return told
        right = "say how long they are (--output-tokens 128)"
        self._intake.bad(columns[0], None, "the trace does not tell how long outputs are", right)
        return 0


def content_text(content: object) -> str | None:
    """The text of a message: a string, or a list of parts with texts (others are left out); None if it is neither."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [part.get("text", "") if isinstance(part, dict) else None for part in content]
    return None if not all(isinstance(text, str) for text in texts) else "".join(str(text) for text in texts)


def messages_text(messages: object) -> str | None:
    """The texts of a list of messages, one behind the other; None if it is no such list."""
    if not isinstance(messages, list) or not messages:
        return None
    texts = [content_text(message.get("content", "")) if isinstance(message, dict) else None for message in messages]
    return None if any(text is None for text in texts) else "\n".join(str(text) for text in texts)

"""What prompts are made of, as they come: runs of the streams that they share, or of their own."""

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kvsim.content import Run, own_stream
from kvsim.request import Request


class PromptLog:
    """The runs of every prompt that came, in the order in which they came; 40 bytes a run.

    Equal runs are equal tokens (see `kvsim.content`): what two prompts have in common is what their first runs have.
    """

    def __init__(self) -> None:
        self.request = array("q")
        self.start = array("q")
        self.stream = array("q")
        self.offset = array("q")
        self.tokens = array("q")

    def __len__(self) -> int:
        return len(self.request)

    def add(self, request: Request) -> None:
        """This request has come. Mutates."""
        own = (Run(own_stream(request.id), 0, request.prompt_tokens),)
        start = 0
        for run in own if request.content is None else request.content.part(0, request.prompt_tokens):
            self.request.append(request.id)
            self.start.append(start)
            self.stream.append(run.stream)
            self.offset.append(run.offset)
            self.tokens.append(run.tokens)
            start += run.tokens

    def through(self, requests: Iterable[Request]) -> Iterator[Request]:
        """The same requests, each noted when it is taken."""
        for request in requests:
            self.add(request)
            yield request

    def behind(self, after: Callable[..., Iterable[Request]]) -> Callable[..., Iterable[Request]]:
        """The same rule of who comes because a request ended, and each of those noted too."""

        def noted(*given: Any) -> Iterable[Request]:
            return self.through(after(*given))

        return noted

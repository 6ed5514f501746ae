"""What the prompts of recorded calls hold: the blocks that the trace names, or the history of their session."""

from collections.abc import Callable, Iterable, Sequence

from kvsim.content import Content, Layers, Run, own_stream
from kvsim.workload.layers.stack import SESSION
from kvsim.workload.readers.request import BlockId, TraceRequest
from kvsim.workload.trace.contents import block_content, prompt_layers


class Contents:
    """Makes the content of one call after the other, in the order of the trace.

    Blocks have the sizes that their calls tell; without any, a call that says how many of its prompt's tokens are new
    begins with as much of its session's history as the rest is. Else nothing is known of it: its prompt is like no
    other's. What only call k has is the stream `own_stream(k)`.
    """

    def __init__(self) -> None:
        self._numbers: dict[BlockId, int] = {}
        self.block_tokens = 0
        self.by_history = False
        """Some prompts are told by what they add to their sessions."""

    def of(self, number: int, request: TraceRequest, history: Sequence[Run]) -> Content | None:
        """The prompt of call `number`; `history` is the conversation that it goes on with, answer included.

        None: nothing is known of it.
        """
        if request.blocks:
            self.block_tokens = self.block_tokens or request.block_tokens
            prompt = request.prompt_tokens
            return block_content(number, prompt, request.keyed_blocks, request.block_tokens, self._numbers)
        if request.new_prompt_tokens is None:
            return None
        self.by_history = True
        content = Content()
        left = request.prompt_tokens - max(1, request.new_prompt_tokens)
        for run in history:
            if left <= 0:
                break
            content.append(run._replace(tokens=min(run.tokens, left)))
            left -= run.tokens
        content.append(Run(own_stream(number), content.tokens, request.prompt_tokens - content.tokens))
        return content

    def read(self) -> None:
        """All prompts have been made: what told their blocks apart is needed no more. Mutates."""
        self._numbers.clear()

    def layers(self, prompts: Iterable[tuple[Content, str]]) -> Layers:
        """Which layer of sharing tokens belong to, by the pattern of the blocks and by who wrote them."""
        found = prompt_layers(prompts, self.block_tokens) if self.block_tokens else Layers()
        if not self.by_history:
            return found
        return Layers(lambda stream: SESSION if stream < 0 else None, found.heads, found.spans)


def renamed(content: Content, name: Callable[[int], int]) -> Content:
    """The same, where what was call k's alone is that of request `name(k)`."""
    return Content(
        run if run.stream >= 0 else run._replace(stream=own_stream(name((-1 - run.stream) // 2)))
        for run in content.runs
    )

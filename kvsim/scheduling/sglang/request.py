"""A request as SGLang's scheduler sees it, and the batches in which it is computed."""

from dataclasses import dataclass, field

from kvsim.content import Content, Run
from kvsim.memory.radix.node import Node
from kvsim.memory.radix.pool import SlotPool


def most_output(prompt_tokens: int, context: int, pool: SlotPool) -> int:
    """Output tokens that SGLang lets a request make at most, decided before it is queued (0 or less: it is refused).

    Prompt and output stay below the context, and fit an empty pool with a page to spare.
    """
    below = min(context - 1, pool.slots - 1) - prompt_tokens - 1
    return min(below, pool.slots - pool.ceil(prompt_tokens) - pool.page_size - 1)


@dataclass(slots=True, eq=False, kw_only=True)
class Request:
    """One request; its content is the prompt and what it has generated so far."""

    name: str
    content: Content
    prompt_tokens: int
    max_new: int
    """Output tokens after which it stops."""
    output: Run
    """Where its output tokens come from: the j-th is token j of this run's stream, from the run's offset on."""
    ignore_eos: bool = False
    priority: int = 0

    outputs: int = 0
    """Output tokens that the scheduler has seen."""
    prefix: int = 0
    """Tokens computed before the chunk at hand: those found cached, and earlier chunks."""
    end: int = 0
    """Where the chunk at hand ends."""
    filled: int = 0
    """Tokens of the content that its last prefill, or mixed step, was made from."""
    committed: int = 0
    """Tokens for which it has slots."""
    protected: int = 0
    """How many of them, from the start, are the tree's."""
    inserted: int = 0
    """How many it has brought to the tree, or found there, since it was admitted."""
    matched: int = 0
    """Tokens that the last look into the tree found, all but the last token at most."""
    found: Node | None = None
    """Where that look ended."""
    locked: Node | None = None
    """The node that it protects."""
    holds: bool = False
    """It has a row, and slots."""
    middle_chunks: int = 0
    """Chunks in flight after which its prompt is still not computed."""
    retracted: bool = False
    """It lost its slots and waits; what is still in flight for it does not count."""
    finished: bool = False
    arrived: int = 0
    """Its place among all that ever began to wait."""
    arrived_processed: int = 0
    """Prompt tokens that the scheduler had run when it began to wait."""

    @property
    def tokens(self) -> int:
        """Prompt and output so far."""
        return self.content.tokens

    @property
    def left(self) -> int:
        """Output tokens still to come."""
        return self.max_new - self.outputs

    def emit(self, tokens: int = 1) -> None:
        """More output tokens; the last one that it may make finishes it. Mutates."""
        self.content.append(Run(self.output.stream, self.output.offset + self.outputs, tokens))
        self.outputs += tokens
        self.finished = self.outputs >= self.max_new


@dataclass(slots=True, eq=False)
class Batch:
    """Requests that run together; the running batch is one, kept from pass to pass."""

    requests: list[Request] = field(default_factory=list)
    full: bool = False
    """Nobody is admitted until one of them leaves."""
    prefills: bool = False
    decoding: frozenset[Request] = frozenset()
    """Members that decode in a prefill."""
    chunked: Request | None = None
    """The member whose prompt goes on in the next pass."""
    extended: int = 0
    """Tokens of its last prefill."""

    def drop(self, gone: set[Request]) -> bool:
        """Leave out those in `gone` and those that finished; True if anybody left. Mutates."""
        before = len(self.requests)
        self.requests = [request for request in self.requests if not (request.finished or request in gone)]
        return len(self.requests) < before

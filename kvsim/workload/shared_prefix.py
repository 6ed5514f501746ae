"""System prompts: what the prompts of generated traffic begin with alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvsim.content import Content, Layers, Run, own_stream
from kvsim.workload.arguments import check_whole
from kvsim.workload.arrivals import CHUNK
from kvsim.workload.lengths import Zipf

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass(frozen=True, kw_only=True)
class SharedPrefix:
    """Every prompt begins with one of `groups` system prompts of `tokens` tokens, and goes on like no other.

    The k-th of them (from 1) is drawn with weight k**-`theta`: 0 is evenly. ValueError on a number that cannot be.
    """

    tokens: int
    groups: int = 1
    theta: float = 0.0

    def __post_init__(self) -> None:
        check_whole("tokens", self.tokens, 1)
        check_whole("groups", self.groups, 1)
        self._law()

    def _law(self) -> Zipf:
        return Zipf(theta=self.theta, min=1, max=self.groups)

    def draws(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[int]:
        """Which system prompt each request has, as numbers from 0, without end."""
        return (number - 1 for number in self._law().lengths(generator, chunk))

    def prompt_tokens(self, drawn: int) -> int:
        """The length of a prompt that was drawn as so long: it holds its system prompt and one token more."""
        return max(drawn, self.tokens + 1)

    def content(self, group: int, request: int, prompt_tokens: int) -> Content:
        """What the prompt of request number `request` is, whose system prompt is number `group`."""
        rest = Run(own_stream(request), self.tokens, prompt_tokens - self.tokens)
        return Content((Run(group, 0, self.tokens), rest))

    def layers(self) -> Layers:
        """The one system prompt is everybody's; of several each is that of a group of requests."""
        layer = "system" if self.groups == 1 else "group"
        return Layers(lambda stream: layer if stream >= 0 else None)

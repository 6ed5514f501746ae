"""What a cache holds before a run begins: the texts that prompts share, or what earlier requests have left behind."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from kvsim.content import Content, Run
from kvsim.request import Request
from kvsim.workload.arguments import check_whole
from kvsim.workload.layers.stack import Stack

MOST_TEXTS = 100_000
"""So many beginnings of prompts at most are put into a cache."""


@dataclass(frozen=True, kw_only=True)
class Warm:
    """`shared`: the texts of the layers, the commonest used last; then the prompts and outputs of the first `requests`
    requests, which do not arrive: the traffic begins behind them. ValueError where it is neither.
    """

    requests: int = 0
    shared: bool = False

    def __post_init__(self) -> None:
        check_whole("requests", self.requests, 0)
        if not self.requests and not self.shared:
            raise ValueError("warm: give requests, or shared: true")


def shared_requests(stack: Stack, most_tokens: int) -> Iterator[Request]:
    """Requests for the shared beginnings of prompts alone, the commonest last, until they are `most_tokens` tokens.

    A prompt begins with one text of each layer, from the outermost up to the first layer that brings several texts, or
    that every turn brings anew.
    """
    layers = 0
    for layer in stack.layers:
        if layer.count != 1 or layer.each != "session":
            break
        layers += 1
    if not layers:
        return
    chosen: list[list[Run]] = []
    known: set[Run] = set()
    tokens = 0
    for texts in _commonest_first([(layer.texts, layer.theta) for layer in stack.layers[:layers]]):
        runs = stack.texts(texts)
        new = [run for run in runs if run not in known]
        tokens += sum(run.tokens for run in new)
        if chosen and (tokens > most_tokens or len(chosen) >= MOST_TEXTS):
            break
        known.update(new)
        chosen.append(runs)
    for runs in reversed(chosen):
        content = Content(runs)
        yield Request(0, 0, content.tokens, 1, content=content)


def _commonest_first(layers: list[tuple[int, float]]) -> Iterator[tuple[int, ...]]:
    """Combinations of a text (by number) of each layer, of so many texts with weights k**-theta, by falling weight."""
    first = (0,) * len(layers)
    waiting = [(-1.0, first)]
    seen = {first}
    while waiting:
        weight, texts = heappop(waiting)
        yield texts
        for place, (count, theta) in enumerate(layers):
            number = texts[place] + 1
            following = (*texts[:place], number, *texts[place + 1 :])
            if number < count and following not in seen:
                seen.add(following)
                heappush(waiting, (weight * (number / (number + 1)) ** theta, following))

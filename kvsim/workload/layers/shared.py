"""A layer of texts, of which every request, or every session, has one or several."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Literal

from kvsim.workload.arguments import check_not_negative, check_whole
from kvsim.workload.arrivals import CHUNK
from kvsim.workload.lengths import Constant, LengthDistribution, Zipf

if TYPE_CHECKING:
    from numpy.random import Generator

MOST_TEXTS = 1_000_000
"""The lengths of all texts of a layer are kept in memory, 8 bytes each."""

_DRAWS = 100
"""Draws for each text of a request, to find as many different ones as it has."""

Picks = tuple[int, ...]
"""Numbers of texts, from 0, in the order in which they stand in the prompt."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """`texts` texts, each as long as `tokens` says (a number, or a law drawn once for each text).

    A request has `count` different ones, the k-th text (from 1) drawn with weight k**-`theta` (0: evenly), or all by
    turns with `pick` "in-turn". With `order` "fixed" they stand in the order of their numbers, so that two requests
    with the same texts begin alike; "drawn" leaves them as they come, as a retriever's ranking does. `each` says
    whether a session keeps what its first turn has, or whether every turn brings its own, behind the history.
    `name` is what figures call the layer. ValueError on a number that cannot be.
    """

    name: str
    tokens: int | LengthDistribution
    texts: int = 1
    theta: float = 0.0
    count: int | LengthDistribution = 1
    pick: Literal["drawn", "in-turn"] = "drawn"
    order: Literal["drawn", "fixed"] = "drawn"
    each: Literal["session", "turn"] = "session"

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("name: a layer needs one; got an empty text")
        for argument in ("tokens", "count"):
            if not isinstance(getattr(self, argument), LengthDistribution):
                check_whole(argument, getattr(self, argument), 1)
        check_whole("texts", self.texts, 1, MOST_TEXTS)
        check_not_negative("theta", self.theta)
        for argument, allowed in (("pick", "drawn in-turn"), ("order", "drawn fixed"), ("each", "session turn")):
            if getattr(self, argument) not in allowed.split():
                right = allowed.replace(" ", " or ")
                raise ValueError(f"{argument}: must be {right}; got {getattr(self, argument)!r}")
        if isinstance(self.count, int) and self.count > self.texts:
            raise ValueError(f"count: must be at most texts = {self.texts}; got {self.count}")

    def lengths(self, generator: "Generator") -> list[int] | None:
        """The tokens of every text; None where all are as long."""
        if isinstance(self.tokens, LengthDistribution):
            drawn: list[int] = self.tokens.draw(generator, self.texts).tolist()
            return drawn
        return None

    @cached_property
    def _law(self) -> Zipf:
        return Zipf(theta=self.theta, min=1, max=self.texts)

    def picks(self, generator: "Generator", chunk: int = CHUNK, *, turn: int = 0) -> Iterator[Picks]:
        """The texts of one request after the other, without end; the same whatever the `chunk`.

        Texts by turns begin with that of number `turn` (over and over again), so that sessions do not all begin alike.
        """
        if self.pick == "in-turn":
            numbers: Iterator[int] = islice(cycle(range(self.texts)), turn % self.texts, None)
        else:
            law = self._law
            if isinstance(self.count, int) and self.count == 1:
                return ((number - 1,) for number in law.lengths(generator, chunk))
            *children, generator = generator.spawn(2)
            numbers = (number - 1 for number in law.lengths(children[0], chunk))
        if isinstance(self.count, LengthDistribution):
            counts = self.count.lengths(generator, chunk)
        else:
            counts = Constant(value=self.count).lengths(generator, chunk)
        return (self._different(numbers, min(count, self.texts)) for count in counts)

    def _different(self, numbers: Iterator[int], count: int) -> Picks:
        found: dict[int, None] = {}
        for number in islice(numbers, _DRAWS * count):
            found[number] = None
            if len(found) == count:
                break
        # A steep law hardly ever draws its rarest texts; where it must, the most popular of those left stand in.
        rest = (number for number in range(self.texts) if number not in found)
        found.update(dict.fromkeys(islice(rest, count - len(found))))
        return tuple(sorted(found)) if self.order == "fixed" else tuple(found)

    def describe(self) -> dict[str, Any]:
        """The parameters, as plain values."""
        told = {name: getattr(self, name) for name in ("name", "texts", "theta", "pick", "order", "each")}
        for name in ("tokens", "count"):
            value = getattr(self, name)
            told[name] = value.describe() if isinstance(value, LengthDistribution) else value
        return told
